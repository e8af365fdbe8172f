package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/toolcell/toolcell/bridge"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/repl"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/oci"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// execName is the command that hands arguments on.
const execName = "exec"

func execCommand(s *console.Streams) *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "c", Usage: "the `CODE` to run"},
		&cli.BoolFlag{Name: "i", Usage: "prompt for code and run it in one session; -c or a file run first"},
		&cli.StringSliceFlag{Name: "server", Usage: "`NAME` of a server that the code may call, or *; may be repeated"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no notes on stderr"},
	}
	return &cli.Command{
		Name:      execName,
		Usage:     "run Python as run_python does, from a shell",
		ArgsUsage: "[-i] [-c CODE | FILE | -] [-- ARGUMENT…]",
		Description: "Output goes to standard output and error as the code writes it, and the exit code is the\n" +
			"code's; 128+n if signal n ended it. What follows -- is in sys.argv. With --output the result\n" +
			"is printed as an MCP client would get it.",
		Flags:        append(flags, settings.Flags()...),
		OnUsageError: usageError,
		Action:       func(c *cli.Context) error { return execAction(c, s) },
	}
}

func execAction(c *cli.Context, s *console.Streams) (err error) {
	conf, err := settings.Read(c)
	if err != nil {
		return err
	}
	if !c.IsSet("log-level") {
		conf.LogLevel = slog.LevelWarn // a shell user wants the output alone
	}
	if c.Bool("i") {
		return execPrompt(c, s, conf)
	}
	code, err := readScript(c, s.In)
	if err != nil {
		return err
	}
	a, err := openForShell(c, s, conf)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	req := shellRequest(c, s, conf, code.argv)
	req.Code = code.text
	ctx, cancel := context.WithCancelCause(c.Context)
	defer cancel(nil)
	run := a.bridge.Run
	if !conf.OutputNamed {
		// As in any pipeline, the run ends when its output has no reader.
		run = showLive(ctx, s, &req, func() { cancel(unix.EPIPE) }, run)
	}
	r := run(ctx, req)
	if errors.Is(context.Cause(ctx), unix.EPIPE) {
		return &console.ExitError{Code: console.Stopped{Signal: unix.SIGPIPE}.Code()}
	}
	if conf.OutputNamed {
		if _, err := fmt.Fprintln(s.Out, console.Filtered(s.Out, r.Text(conf.Output))); err != nil {
			return err
		}
	} else {
		printResult(r, s, c.Bool("quiet"))
	}
	if !c.Bool("quiet") {
		printFiles(r, s)
	}
	return exitError(r)
}

// execPrompt is exec -i. Code from the command line runs first, in the session.
func execPrompt(c *cli.Context, s *console.Streams, conf settings.Settings) (err error) {
	if conf.OutputNamed {
		return console.Usagef("give either -i or --output, not both")
	}
	first, err := readScript(c, s.In)
	if err != nil {
		return err
	}
	// The user may think for long, and no other session needs the place.
	conf.Sessions, conf.SessionIdle = 1, 30*24*time.Hour
	a, err := openForShell(c, s, conf)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	for _, name := range c.StringSlice("server") {
		if _, err := a.proxy.Lookup(name); err != nil && name != "*" {
			return &console.ExitError{Code: console.ExitUsage, Err: err}
		}
	}
	ctx, cancel := context.WithCancelCause(c.Context)
	defer cancel(nil)
	req := shellRequest(c, s, conf, first.argv)
	run := showLive(ctx, s, &req, func() { cancel(unix.EPIPE) }, a.bridge.Run)
	show := func(r *bridge.Result) {
		printResult(r, s, c.Bool("quiet"))
		if !c.Bool("quiet") {
			printFiles(r, s)
		}
	}
	err = repl.Run(ctx, repl.Options{
		Streams: s, Run: run, Request: req, First: first.text,
		Image: conf.Image, History: conf.HistoryFile(), Quiet: c.Bool("quiet"),
		Show: show, ExitError: exitError,
	})
	if errors.Is(context.Cause(ctx), unix.EPIPE) {
		return &console.ExitError{Code: console.Stopped{Signal: unix.SIGPIPE}.Code()}
	}
	return err
}

// openForShell opens the app to run code for the user of a shell.
func openForShell(c *cli.Context, s *console.Streams, conf settings.Settings) (*app, error) {
	log := newLogger(conf, s.Err)
	found, err := discoverServers(conf, log)
	if err != nil {
		return nil, err
	}
	if err := found.askTrust(c.Context, s); err != nil {
		return nil, err
	}
	found.logProblems()
	return openApp(conf, appOptions{log: log, refreshImage: newDetachedRefresher(c, log).start, servers: found})
}

func shellRequest(c *cli.Context, s *console.Streams, conf settings.Settings, argv []string) bridge.Request {
	req := bridge.Request{Argv: argv, Servers: c.StringSlice("server"), Progress: console.PullProgress(s.Err)}
	if c.IsSet("timeout") {
		req.Timeout = conf.Timeout
	}
	return req
}

// A runFunc runs code, as bridge.Server.Run does.
type runFunc func(context.Context, bridge.Request) *bridge.Result

// showLive lets req write its output to the streams at once, and returns run with
// what is to be done after each run: colors do not last longer than their code.
// Broken is called when a stream has no reader.
func showLive(ctx context.Context, s *console.Streams, req *bridge.Request, broken func(), run runFunc) runFunc {
	out, errs := liveWriter{s.Out, ctx, broken}, liveWriter{s.Err, ctx, broken}
	shownOut, shownErr := console.NewFilter(s.Out, out), console.NewFilter(s.Err, errs)
	req.Stdout, req.Stderr = shownOut, shownErr
	return func(ctx context.Context, req bridge.Request) *bridge.Result {
		r := run(ctx, req)
		out.writeLast(shownOut.End())
		errs.writeLast(shownErr.End())
		return r
	}
}

// A liveWriter writes output of the code at once. It calls broken when its
// reader is gone; a reader that does not read blocks nothing once ctx has ended.
type liveWriter struct {
	file   *os.File
	ctx    context.Context
	broken func()
}

func (l liveWriter) Write(b []byte) (int, error) {
	wrote, kept := make(chan error, 1), bytes.Clone(b)
	go func() {
		_, err := l.file.Write(kept)
		wrote <- err
	}()
	select {
	case err := <-wrote:
		if errors.Is(err, unix.EPIPE) {
			l.broken()
		}
		return len(b), err
	case <-l.ctx.Done():
		return 0, context.Cause(l.ctx)
	}
}

// lastWrite bounds what is written after the user has stopped a run: a terminal
// may be stopped as well.
const lastWrite = 200 * time.Millisecond

// writeLast writes what ends the output, also if ctx has ended.
func (l liveWriter) writeLast(b []byte) {
	if len(b) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), lastWrite)
	defer cancel()
	_, _ = liveWriter{l.file, ctx, l.broken}.Write(b) // a reader that is gone was noticed before
}

// printResult prints the parts of the result that the streams have not shown
// yet.
func printResult(r *bridge.Result, s *console.Streams, quiet bool) {
	if r.Result != "" {
		fmt.Fprintln(s.Out, console.Filtered(s.Out, r.Result))
	}
	shown := func(text string) string { return console.Shown(s.Err, text) }
	color, stopped := console.ColorsFor(s.Err), s.Signals.Received() != nil
	switch {
	case stopped: // the user knows
	case r.IsError() && r.Status != bridge.StatusError:
		fmt.Fprintf(s.Err, "%s %s: %s\n", color.Red("toolcell:"), r.Status, shown(r.Error))
		for _, l := range r.Stack {
			fmt.Fprintf(s.Err, "  %s\n", shown(l))
		}
	case r.ExitCode != nil && *r.ExitCode > 128:
		fmt.Fprintf(s.Err, "%s %s\n", color.Red("toolcell:"), shown(r.Error)) // as a shell does
	}
	if r.Hint != "" && !stopped {
		fmt.Fprintf(s.Err, "%s %s\n", color.Cyan("hint:"), shown(r.Hint))
	}
	for _, l := range r.CallLines() {
		fmt.Fprintf(s.Err, "toolcell: %s\n", shown(l))
	}
	for _, n := range r.Notes {
		if !quiet && !stopped {
			fmt.Fprintf(s.Err, "%s %s\n", color.Yellow("toolcell: note:"), shown(n))
		}
	}
}

// printFiles says where the files and pictures of a run are.
func printFiles(r *bridge.Result, s *console.Streams) {
	for _, l := range r.LocalFiles() {
		fmt.Fprintf(s.Err, "toolcell: kept %s (%s)\n", console.Shown(s.Err, l.Path), console.Shown(s.Err, l.Text))
	}
}

// exitError returns the error that ends the program with the exit code of a run:
// the code's own where there is one.
func exitError(r *bridge.Result) error {
	var hint *oci.HintError
	switch {
	case !r.IsError():
		return nil
	case r.ExitCode != nil && *r.ExitCode != 0:
		return &console.ExitError{Code: *r.ExitCode}
	case r.Status == bridge.StatusValidation:
		return &console.ExitError{Code: console.ExitUsage}
	case errors.As(r.Cause(), &hint):
		return &console.ExitError{Code: console.ExitHost}
	}
	return &console.ExitError{Code: console.ExitFail}
}
