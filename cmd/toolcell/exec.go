package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/repl"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
	"github.com/toolcell/toolcell/oci/doctor"
)

// execName is the command whose arguments may belong to the code.
const execName = "exec"

// execOptions are those of exec.
type execOptions struct {
	Options
	Code      string // if CodeNamed
	Prompt    bool
	Servers   []string
	Plan      bool
	Verbose   bool
	CodeNamed bool
}

func execCommand(s *console.Streams) *cli.Command {
	own := []cli.Flag{
		&cli.StringFlag{Name: "c", Usage: "the `CODE` to run"},
		&cli.BoolFlag{Name: "i", Usage: "prompt for code and run it in one session; -c or a file run first"},
		&cli.StringSliceFlag{Name: "server", Usage: "`NAME` of a server that the code may call, * for all of them, or a host that the policy allows, as https://HOST or tcp://HOST:PORT; may be repeated"},
		&cli.BoolFlag{Name: "offline", Usage: "fetch no image and no packages, like --pull never"},
		&cli.BoolFlag{Name: "plan", Usage: "dry run: list the calls that write, make none of them"},
		&cli.BoolFlag{Name: "json", Usage: "print the result as one JSON object when the run is over, instead of its output"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print no notes or logs on stderr"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print notes about this host every time, not only new ones"},
	}
	return &cli.Command{
		Name:      execName,
		Usage:     "run Python as run_python does, from a shell",
		ArgsUsage: "[-i] [-c CODE | FILE | -] [ARGUMENT…]",
		Description: "Output appears as the code writes it. The exit code is that of the code, or 128+n if signal n\n" +
			"ended it. Flags come before the file; everything after the file is in sys.argv. Code from -c or\n" +
			"a file can read standard input. With --output the result is printed as an MCP client would\n" +
			"get it.",
		Flags: flags(nil, own...),
		Action: actionWith(s, func(c *cli.Context, o Options) error {
			return execCode(c.Context, execOptions{o, c.String("c"), c.Bool("i"), c.StringSlice("server"), c.Bool("plan"), c.Bool("verbose"), c.IsSet("c")})
		}),
	}
}

func execCode(ctx context.Context, o execOptions) (err error) {
	switch {
	case o.JSON && (o.Settings.Typed("output") || o.Prompt):
		return console.Usagef("give --json without --output and -i")
	case o.Quiet && o.Verbose:
		return console.Usagef("give either --quiet or --verbose, not both")
	case o.Prompt && o.Settings.Typed("output"):
		return console.Usagef("give either -i or --output, not both")
	}
	if o.Settings, err = o.Settings.InProject(currentProject()); err != nil {
		return err
	}
	code, err := readScript(ctx, o)
	if err != nil {
		return err
	}
	limits := &o.Settings.Runs
	if o.Settings.Named("timeout") && !o.Settings.Lowered("max-timeout") {
		limits.MaxTimeout = max(limits.MaxTimeout, limits.Timeout) // the maximum is for models
	}
	if o.Prompt {
		// The user may think for long, and no other session needs the place.
		limits.Sessions, limits.SessionIdle = 1, 30*24*time.Hour
	}
	log := shellLogger(o.Options)
	policyLog := log
	if !o.Prompt {
		policyLog = slog.New(belowError{log.Handler()}) // notePolicy says the error
	}
	found, err := askForServers(ctx, o.Options, log, o.Servers)
	if err != nil {
		return err
	}
	a, err := openApp(o.Settings, appOptions{log: log, policyLog: policyLog, background: detachedWork(log), command: "exec", servers: found})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	progress := console.NewProgress(o.Err, o.silent())
	defer progress.Close()
	asker := newTerminalAsker(o.Streams, progress)
	e := execution{execOptions: o, app: a, code: code, progress: progress, asker: asker, cancel: cancel}
	if o.Prompt {
		return e.prompt(ctx)
	}
	return e.once(ctx, log)
}

// silent reports whether only results and errors are to be printed.
func (o execOptions) silent() bool { return o.Quiet || o.JSON }

// An execution is one call of exec.
type execution struct {
	execOptions
	app      *app
	code     script // that the command line names
	progress *console.Progress
	asker    *terminalAsker
	cancel   context.CancelCauseFunc
}

// once runs the code.
func (e execution) once(ctx context.Context, log *slog.Logger) (err error) {
	req := e.request()
	req.Code = e.code.text
	e.giveStdin(&req)
	live := !e.Settings.Typed("output") && !e.JSON
	do := e.app.runs.Do
	if live {
		do = showLive(ctx, e.Streams, &req, e.cancel, e.progress, do)
	}
	r := do(ctx, req)
	e.progress.Close()
	notePolicy(log, e.app.policy, r)
	if err := writeError(ctx); err != nil {
		return err
	}
	shown := e.code.explain(r)
	switch {
	case live:
		err = printResult(e.withNewNotes(shown), e.Streams, e.Quiet)
	case e.JSON:
		err = console.PrintJSONObject(e.Streams, shown)
		printFiles(r, e.Streams)
	default:
		_, err = fmt.Fprintln(e.Out, console.Filtered(e.Out, bridge.Text(shown.WithoutHostNotes(), e.Settings.Bridge.Output)))
		printFiles(r, e.Streams)
	}
	if err != nil {
		return err
	}
	return exitError(r)
}

// giveStdin gives the code standard input, unless the code itself came from there. At a
// terminal nothing is read until the code asks for a line: the user may be typing for the shell.
func (e execution) giveStdin(req *run.Request) {
	switch {
	case !e.code.stdinLeft:
	case console.Terminal(e.In):
		req.Input = func(ctx context.Context) (string, error) {
			defer e.asker.take(ctx)()
			e.progress.Hide() // the line is for typing
			line, err := console.ReadLine(ctx, e.In)
			if err != nil && line == "" {
				return "", err
			}
			return line + "\n", nil
		}
	default:
		req.Stdin = e.In
	}
}

// prompt is exec -i. Code from the command line runs first, in the session.
func (e execution) prompt(ctx context.Context) error {
	for _, name := range e.Servers {
		if name == "*" || hosts.IsTarget(name) {
			continue
		}
		if _, err := e.app.proxy.Lookup(name); err != nil {
			return &console.ExitError{Code: console.ExitUsage, Err: forShell(err)}
		}
	}
	req := e.request()
	do := showLive(ctx, e.Streams, &req, e.cancel, e.progress, e.app.runs.Do)
	show := func(r *run.Result) {
		if err := printResult(e.withNewNotes(e.code.explain(r)), e.Streams, e.Quiet); err != nil {
			e.cancel(err)
		}
	}
	greet := func(ctx context.Context) string {
		defer e.progress.Hide()
		return console.Filtered(e.Err, e.app.images.Greeting(ctx, req.Progress)) // a registry may say why
	}
	err := repl.Run(ctx, repl.Options{
		Streams: e.Streams, Run: do, Complete: e.app.runs.Complete, Request: req, First: e.code.text,
		Greeting: greet, History: filepath.Join(e.Settings.Dirs.State, "history"), Quiet: e.Quiet,
		Ask: e.asker.askAtPrompt, Show: show, ExitError: exitError,
	})
	if err := writeError(ctx); err != nil {
		return err
	}
	return err
}

// request returns the request of all that runs, without code.
func (e execution) request() run.Request {
	req := run.Request{
		File: e.code.file, Argv: e.code.argv, Servers: e.Servers, Progress: console.RunProgress(e.progress, e.silent()),
		Plan: e.Plan, Running: func(func()) { e.progress.Hide() },
	}
	if e.Settings.Named("timeout") {
		req.Timeout = e.Settings.Runs.Timeout
	}
	if e.asker.canAsk() {
		req.Ask = e.asker.ask
	}
	return req
}

// exitError returns the error that ends the program with the exit code of a run:
// the code's own where there is one.
func exitError(r *run.Result) error {
	var hint *doctor.HintError
	switch {
	case !r.IsError():
		return nil
	case r.ExitCode != nil && *r.ExitCode != 0:
		return &console.ExitError{Code: *r.ExitCode}
	case r.Status == run.StatusValidation:
		return &console.ExitError{Code: console.ExitUsage}
	case errors.As(r.Cause(), &hint):
		return &console.ExitError{Code: console.ExitHost}
	}
	return &console.ExitError{Code: console.ExitFail}
}
