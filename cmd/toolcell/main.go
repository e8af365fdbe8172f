// Command toolcell is an MCP server with one tool, run_python, and the small
// container runtime behind it.
//
// main builds the commands, puts the flags in front of the arguments, runs the command and
// prints its error. Each command has a file of its name: its flags, its Options, and the
// function that does it. Those that run code, serve (serve.go) and exec (exec.go), open an
// app (app.go), which wires the packages together; what a run then does begins in
// bridge/run/run.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/doctor"
)

func main() { os.Exit(runCommandLine(os.Args, os.Stdin, os.Stdout, os.Stderr)) }

// runCommandLine executes one command line and returns the exit code. Errors are printed
// here and nowhere else.
func runCommandLine(args []string, stdin *os.File, stdout, stderr *os.File) int {
	ctx, signals, stop := console.WatchSignals(context.Background())
	defer stop()
	// If the reader is gone, the write should fail; SIGPIPE must not end us at
	// once and leave sandboxes behind. Not signal.Ignore, which our children would
	// inherit.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	// net/http logs bytes that a server sends unasked, and they may be a secret.
	keepLog(slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	settings.LeaveRemovedFolder()
	settings.CompletePath()
	s := &console.Streams{In: stdin, Out: stdout, Err: stderr, Signals: signals}
	app := newCommandLine(s)
	typed := findCommand(app, args)
	ordered, err := typed.flagsFirst()
	if err == nil {
		err = contain.Call("running a command", func() error { return app.RunContext(ctx, ordered) })
	}
	if err == nil {
		err = s.WriteError()
	}
	if err != nil && typed.wantsJSON() && !s.JSONPrinted {
		err = errors.Join(err, printFailure(s, typed, err))
	}
	switch sig := signals.Received(); {
	case err != nil && sig != nil:
		if !console.EndedByUser(err) {
			printError(stderr, err, typed.path)
		}
		return sig.Code()
	case brokenPipe(err, stdout):
		return console.Stopped{Signal: syscall.SIGPIPE}.Code()
	}
	return printError(stderr, err, typed.path)
}

// keepLog makes l the log of internal errors, whose stacks must go nowhere else. Nothing
// of the standard logger gets there: SetDefault would pass it on.
func keepLog(l *slog.Logger) {
	slog.SetDefault(l)
	log.SetOutput(io.Discard)
}

// printFailure prints what a program that asked for JSON reads if a command failed
// before it had anything to print: standard output is JSON in any case.
func printFailure(s *console.Streams, typed typedCommand, err error) error {
	if typed.parsed.Name != execName {
		return console.PrintJSON(s, []any{})
	}
	r := run.Result{Status: run.StatusSandbox, Error: err.Error()}
	if exit, ok := errors.AsType[*console.ExitError](err); ok && exit.Code == console.ExitUsage {
		r.Status = run.StatusValidation
	}
	return console.PrintJSONObject(s, r)
}

// brokenPipe reports whether the reader of our output is gone. That is not an
// error to print: the reader wanted no more.
func brokenPipe(err error, stdout *os.File) bool {
	var path *fs.PathError
	return errors.Is(err, unix.EPIPE) && errors.As(err, &path) && path.Path == stdout.Name()
}

func newCommandLine(s *console.Streams) *cli.App {
	cli.HelpPrinter = func(_ io.Writer, _ string, of any) { printHelp(s, of) }
	app := &cli.App{
		Name:      "toolcell",
		Usage:     "Python in a rootless sandbox, as an MCP server with one tool",
		UsageText: "toolcell COMMAND [flags]",
		Version:   version,
		Reader:    s.In,
		Writer:    s.Out,
		ErrWriter: s.Err,
		Commands: []*cli.Command{
			serveCommand(s), execCommand(s), imagesCommand(s), packagesCommand(s), serversCommand(s), toolsCommand(s), approvalsCommand(s), runsCommand(s), uiCommand(s),
			installCommand(s), uninstallCommand(s), upgradeCommand(s), statusCommand(s), purgeCommand(s), settingsCommand(s),
			doctorCommand(s), versionCommand(s),
			completionCommand(s), completeCommand(s), helpCommand(s),
		},
		OnUsageError:    usageError,
		HideVersion:     true,
		Flags:           []cli.Flag{&cli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "print the version"}, cli.HelpFlag},
		ExitErrHandler:  func(*cli.Context, error) {}, // printError prints
		CommandNotFound: func(*cli.Context, string) {},
		Action: func(c *cli.Context) error {
			switch {
			case c.Args().Present():
				return noCommand(c.App.Commands, c.Args().First())
			case c.Bool("version"):
				_, err := fmt.Fprint(s.Out, versionText())
				return err
			}
			return cli.ShowAppHelp(c)
		},
	}
	complete(app.Commands)
	return app
}

// complete gives commands what all of them have. It leaves `toolcell help` as the only
// command of its name: the cli package gives each command a hidden one, help or h, and an
// argument of that name would run it.
func complete(all []*cli.Command) {
	for _, c := range all {
		c.HideHelpCommand, c.OnUsageError = true, usageError
		if c.Name == "list" {
			c.Aliases = []string{"ls"}
		}
		complete(c.Subcommands)
	}
}

func usageError(_ *cli.Context, err error, _ bool) error {
	return &console.ExitError{Code: console.ExitUsage, Err: err, Help: true}
}

// printError prints err for the user, with its hint or, if flags or arguments are wrong,
// the command that prints help, and returns the exit code.
func printError(w *os.File, err error, command string) int {
	if err == nil {
		return console.ExitOK
	}
	code := console.ExitFail
	if _, ok := errors.AsType[*doctor.HintError](err); ok {
		code = console.ExitHost
	}
	var exit *console.ExitError
	if errors.As(err, &exit) {
		code = exit.Code
	}
	if err.Error() != "" {
		console.Error(w, err.Error())
	}
	if advice := doctor.Advice(err); advice != "" {
		console.Hint(w, advice)
	}
	if exit != nil && exit.Help {
		console.Hint(w, command+" --help")
	}
	return code
}
