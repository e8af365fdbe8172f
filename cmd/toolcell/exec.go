package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/toolcell/toolcell/bridge"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/repl"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/urfave/cli/v2"
)

// execName is the command that hands arguments on.
const execName = "exec"

func execCommand(s *console.Streams) *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "c", Usage: "the `CODE` to run"},
		&cli.BoolFlag{Name: "i", Usage: "prompt for code and run it in one session; -c or a file run first"},
		&cli.StringSliceFlag{Name: "server", Usage: "`NAME` of a server that the code may call, or *, or a host of the policy, as https://HOST; may be repeated"},
		&cli.BoolFlag{Name: "offline", Usage: "fetch no image and no packages, as --pull never"},
		&cli.BoolFlag{Name: "plan", Usage: "dry run: list the calls that write, make none of them"},
		&cli.BoolFlag{Name: "json", Usage: "print the result as one JSON object when the run is over, instead of its output"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no notes and logs on stderr"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "notes about this host each time, not only when they are new"},
	}
	return &cli.Command{
		Name:      execName,
		Usage:     "run Python as run_python does, from a shell",
		ArgsUsage: "[-i] [-c CODE | FILE | -] [ARGUMENT…]",
		Description: "Output goes to standard output and error as the code writes it, and the exit code is the\n" +
			"code's; 128+n if signal n ended it. Flags come before the file; all that follows it is in\n" +
			"sys.argv. Standard input is the code's if the code comes from -c or a file. With --output\n" +
			"the result is printed as an MCP client would get it.",
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
	switch {
	case c.Bool("json") && (conf.OutputNamed || c.Bool("i")):
		return console.Usagef("give --json without --output and -i")
	case c.Bool("quiet") && c.Bool("verbose"):
		return console.Usagef("give either --quiet or --verbose, not both")
	}
	if c.Bool("offline") {
		conf.Pull = rootfs.PullNever
	}
	if c.IsSet("timeout") {
		conf.MaxTimeout = max(conf.MaxTimeout, conf.Timeout) // the maximum is for models
	}
	if c.Bool("i") {
		return execPrompt(c, s, conf)
	}
	code, err := readScript(c, s.In)
	if err != nil {
		return err
	}
	log := shellLogger(c, conf, s.Err)
	a, err := openForShell(c, s, conf, log, slog.New(belowError{log.Handler()})) // notePolicy says the error
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	progress := console.NewProgress(s.Err, quiet(c))
	defer progress.Close()
	req := shellRequest(c, conf, code, progress)
	req.Code = code.text
	asker := newTerminalAsker(s, progress)
	if asker.canAsk() {
		req.Ask = asker.ask
	}
	giveStdin(&req, code, s, progress, asker)
	ctx, cancel := context.WithCancelCause(c.Context)
	defer cancel(nil)
	live := !conf.OutputNamed && !c.Bool("json")
	run := a.bridge.Run
	if live {
		run = showLive(ctx, s, &req, cancel, progress, run)
	}
	r := run(ctx, req)
	progress.Close()
	notePolicy(log, a.policy, r)
	if err := writeError(ctx); err != nil {
		return err
	}
	if live {
		err = printResult(hostNotesFor(c, conf)(code.explain(r)), s, c.Bool("quiet"))
	} else {
		err = printWhole(c, s, conf, code.explain(r))
		printFiles(r, s)
	}
	if err != nil {
		return err
	}
	return exitError(r)
}

// printWhole prints a result in a form that has its output, too.
func printWhole(c *cli.Context, s *console.Streams, conf settings.Settings, r *bridge.Result) error {
	if c.Bool("json") {
		return console.PrintJSONObject(s, r)
	}
	_, err := fmt.Fprintln(s.Out, console.Filtered(s.Out, r.WithoutHostNotes().Text(conf.Output)))
	return err
}

// giveStdin gives the code the standard input that is left for it. At a terminal
// nothing is read before the code wants a line: the shell may be meant.
func giveStdin(req *bridge.Request, code script, s *console.Streams, progress *console.Progress, asker *terminalAsker) {
	switch {
	case !code.stdinLeft:
	case console.Terminal(s.In):
		req.Input = func(ctx context.Context) (string, error) {
			defer asker.take(ctx)()
			progress.Hide() // what is typed has the line
			line, err := console.ReadLine(ctx, s.In)
			if err != nil && line == "" {
				return "", err
			}
			return line + "\n", nil
		}
	default:
		req.Stdin = s.In
	}
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
	log := shellLogger(c, conf, s.Err)
	a, err := openForShell(c, s, conf, log, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	for _, name := range c.StringSlice("server") {
		if name == "*" || hosts.IsTarget(name) {
			continue
		}
		if _, err := a.proxy.Lookup(name); err != nil {
			return &console.ExitError{Code: console.ExitUsage, Err: forShell(err)}
		}
	}
	ctx, cancel := context.WithCancelCause(c.Context)
	defer cancel(nil)
	progress := console.NewProgress(s.Err, quiet(c))
	defer progress.Close()
	req := shellRequest(c, conf, first, progress)
	run := showLive(ctx, s, &req, cancel, progress, a.bridge.Run)
	asker := newTerminalAsker(s, progress)
	if asker.canAsk() {
		req.Ask = asker.ask
	}
	due := hostNotesFor(c, conf)
	show := func(r *bridge.Result) {
		if err := printResult(due(first.explain(r)), s, c.Bool("quiet")); err != nil {
			cancel(err)
		}
	}
	greet := func(ctx context.Context) string {
		defer progress.Hide()
		return console.Filtered(s.Err, a.images.Greeting(ctx, req.Progress)) // a registry may say why
	}
	err = repl.Run(ctx, repl.Options{
		Streams: s, Run: run, Complete: a.bridge.Complete, Request: req, First: first.text,
		Greeting: greet, History: conf.HistoryFile(), Quiet: c.Bool("quiet"),
		Ask: asker.askAtPrompt, Show: show, ExitError: exitError,
	})
	if err := writeError(ctx); err != nil {
		return err
	}
	return err
}

// openForShell opens the app to run code for the user of a shell.
func openForShell(c *cli.Context, s *console.Streams, conf settings.Settings, log, policyLog *slog.Logger) (*app, error) {
	found, err := discoverForShell(conf, log)
	if err != nil {
		return nil, err
	}
	if err := found.askTrust(c.Context, s); err != nil {
		return nil, err
	}
	warnOfSlips(log)
	found.noteProblems(c, s, c.StringSlice("server"))
	return openApp(conf, appOptions{log: log, policyLog: policyLog, refreshImage: newRefresher(c, log, true).refresh, compilePackages: newCompiler(c, log, true).compile, servers: found})
}

// quiet reports whether only results and errors are to be printed.
func quiet(c *cli.Context) bool { return c.Bool("quiet") || c.Bool("json") }

func shellRequest(c *cli.Context, conf settings.Settings, code script, progress *console.Progress) bridge.Request {
	req := bridge.Request{
		File: code.file, Argv: code.argv, Servers: c.StringSlice("server"), Progress: console.RunProgress(progress, quiet(c)),
		Plan: c.Bool("plan"), Running: func(func()) { progress.Hide() },
	}
	if c.IsSet("timeout") {
		req.Timeout = conf.Timeout
	}
	return req
}

// exitError returns the error that ends the program with the exit code of a run:
// the code's own where there is one.
func exitError(r *bridge.Result) error {
	var hint *doctor.HintError
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
