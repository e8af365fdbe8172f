package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/runcell/runcell/bridge"
	"github.com/runcell/runcell/oci"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

func execCommand(s *streams) *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "c", Usage: "the `CODE` to run"},
		&cli.StringSliceFlag{Name: "server", Usage: "`NAME` of a server that the code may call, or *; may be repeated"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no notes on stderr"},
	}
	return &cli.Command{
		Name:      "exec",
		Usage:     "run Python as run_python does, from a shell",
		ArgsUsage: "[-c CODE | FILE | -]",
		Description: "Output goes to standard output and error as the code writes it, and the exit code is the\n" +
			"code's. With --output the result is printed as an MCP client would get it.",
		Flags:        append(flags, settingFlags()...),
		OnUsageError: usageError,
		Action:       func(c *cli.Context) error { return execAction(c, s) },
	}
}

func execAction(c *cli.Context, s *streams) (err error) {
	settings, err := readSettings(c)
	if err != nil {
		return err
	}
	if !c.IsSet("log-level") {
		settings.LogLevel = slog.LevelWarn // a shell user wants the output alone
	}
	code, err := codeToRun(c, s.in)
	if err != nil {
		return err
	}
	log := newLogger(settings, s.err)
	found, err := findServers(settings, log)
	if err != nil {
		return err
	}
	if err := found.ask(c.Context, s); err != nil {
		return err
	}
	found.report()
	p, err := open(settings, log, newRefresher(c, true, log).start, found, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	req := bridge.Request{Code: code, Servers: c.StringSlice("server"), Progress: pullProgress(s.err)}
	if c.IsSet("timeout") {
		req.Timeout = settings.Timeout
	}
	ctx, cancel := context.WithCancelCause(c.Context)
	defer cancel(nil)
	if !settings.OutputNamed {
		// As in any pipeline, what nobody reads is not worth going on for.
		broken := func() { cancel(unix.EPIPE) }
		req.Stdout, req.Stderr = pipe{s.out, broken}, pipe{s.err, broken}
	}
	r := p.bridge.Run(ctx, req)
	if errors.Is(context.Cause(ctx), unix.EPIPE) {
		return &exitError{code: 128 + int(unix.SIGPIPE)}
	}
	if settings.OutputNamed {
		fmt.Fprintln(s.out, r.Text(settings.Output))
	} else {
		printResult(r, s, c.Bool("quiet"))
	}
	if !c.Bool("quiet") {
		printLeavings(r, s)
	}
	return exitOf(r)
}

// A pipe tells when its reader is gone.
type pipe struct {
	*os.File
	broken func()
}

func (p pipe) Write(b []byte) (int, error) {
	n, err := p.File.Write(b)
	if errors.Is(err, unix.EPIPE) {
		p.broken()
	}
	return n, err
}

// printResult prints what the streams have not shown yet.
func printResult(r *bridge.Result, s *streams, quiet bool) {
	if r.Result != "" {
		fmt.Fprintln(s.out, r.Result)
	}
	if r.IsError() && r.Status != bridge.StatusError {
		fmt.Fprintf(s.err, "runcell: %s: %s\n", r.Status, r.Error)
		for _, l := range r.Stack {
			fmt.Fprintf(s.err, "  %s\n", l)
		}
		if r.Hint != "" {
			fmt.Fprintf(s.err, "hint: %s\n", r.Hint)
		}
	} else if r.ExitCode != nil && *r.ExitCode > 128 {
		fmt.Fprintf(s.err, "runcell: %s\n", r.Error) // a shell says so too
	} else if r.Hint != "" {
		fmt.Fprintf(s.err, "hint: %s\n", r.Hint)
	}
	for _, l := range r.CallLines() {
		fmt.Fprintf(s.err, "runcell: %s\n", l)
	}
	for _, n := range r.Notes {
		if !quiet {
			fmt.Fprintf(s.err, "runcell: note: %s\n", n)
		}
	}
}

// printLeavings says where the files and pictures of a run are.
func printLeavings(r *bridge.Result, s *streams) {
	for _, l := range r.Leavings() {
		fmt.Fprintf(s.err, "runcell: kept %s (%s)\n", l.Path, l.Text)
	}
}

// exitOf gives the exit code of a run: the code's own where there is one.
func exitOf(r *bridge.Result) error {
	var hint *oci.HintError
	switch {
	case !r.IsError():
		return nil
	case r.ExitCode != nil && *r.ExitCode != 0:
		return &exitError{code: *r.ExitCode}
	case r.Status == bridge.StatusValidation:
		return &exitError{code: exitUsage}
	case errors.As(r.Cause(), &hint):
		return &exitError{code: exitHost}
	}
	return &exitError{code: exitFail}
}

// codeToRun reads the code from where the command line says, standard input
// if it says nothing.
func codeToRun(c *cli.Context, in *os.File) (string, error) {
	switch {
	case c.IsSet("c") && c.Args().Present():
		return "", usagef("give either -c CODE or a file, not both")
	case c.IsSet("c"):
		return c.String("c"), nil
	case c.NArg() > 1:
		return "", usagef("give one file, got %q", strings.Join(c.Args().Slice(), " "))
	case c.NArg() == 1 && c.Args().First() != "-":
		b, err := os.ReadFile(c.Args().First())
		if err != nil {
			return "", &exitError{exitUsage, fmt.Errorf("reading the code: %w", err)}
		}
		return string(b), nil
	case c.NArg() == 0 && terminal(in):
		return "", usagef("there is no code: give -c CODE, a file, or - and type")
	}
	b, err := io.ReadAll(io.LimitReader(in, 16<<20))
	if err != nil {
		return "", fmt.Errorf("reading the code from standard input: %w", err)
	}
	return string(b), nil
}
