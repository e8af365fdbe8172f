package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/oci"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// runCommandLine executes one command line and returns the exit code. Errors are printed
// here and nowhere else.
func runCommandLine(args []string, stdin *os.File, stdout, stderr *os.File) int {
	ctx, signals, stop := console.WatchSignals(context.Background())
	defer stop()
	// If the reader is gone, the write should fail; SIGPIPE must not end us at
	// once and leave sandboxes behind. Not signal.Ignore, which our children would
	// inherit.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	settings.LeaveRemovedFolder()
	settings.CompletePath()
	app := newCommandLine(&console.Streams{In: stdin, Out: stdout, Err: stderr, Signals: signals})
	typed := findCommand(app, args)
	ordered, err := typed.flagsFirst()
	if err == nil {
		err = app.RunContext(ctx, ordered)
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

// brokenPipe reports whether the reader of our output is gone. That is not an
// error to print: the reader wanted no more.
func brokenPipe(err error, stdout *os.File) bool {
	var path *fs.PathError
	return errors.Is(err, unix.EPIPE) && errors.As(err, &path) && path.Path == stdout.Name()
}

func newCommandLine(s *console.Streams) *cli.App {
	cli.HelpPrinter = func(_ io.Writer, _ string, of any) { printHelp(s.Out, of) }
	return &cli.App{
		Name:      "toolcell",
		Usage:     "Python in a rootless sandbox, as an MCP server with one tool",
		UsageText: "toolcell COMMAND [flags]",
		Version:   version,
		Reader:    s.In,
		Writer:    s.Out,
		ErrWriter: s.Err,
		Commands: []*cli.Command{
			serveCommand(s), execCommand(s), imagesCommand(s), serversCommand(s), toolsCommand(s),
			installCommand(s), uninstallCommand(s), doctorCommand(s), versionCommand(s),
			completionCommand(s), completeCommand(s), manCommand(s),
		},
		OnUsageError:    usageError,
		HideVersion:     true,
		Flags:           []cli.Flag{&cli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "print the version"}},
		ExitErrHandler:  func(*cli.Context, error) {}, // printError prints
		CommandNotFound: func(*cli.Context, string) {},
		Action: func(c *cli.Context) error {
			switch {
			case c.Args().Present():
				return noCommand(c.App.Commands, c.Args().First())
			case c.Bool("version"):
				return printVersion(s)
			}
			return cli.ShowAppHelp(c)
		},
	}
}

func usageError(_ *cli.Context, err error, _ bool) error {
	return &console.ExitError{Code: console.ExitUsage, Err: err}
}

// printError prints err for the user, with its cure or the command whose help tells
// more, and returns the exit code.
func printError(w *os.File, err error, command string) int {
	if err == nil {
		return console.ExitOK
	}
	code := console.ExitFail
	var hint *oci.HintError
	if errors.As(err, &hint) {
		code = console.ExitHost
	}
	var exit *console.ExitError
	if errors.As(err, &exit) {
		code = exit.Code
	}
	color := console.ColorsFor(w)
	if err.Error() != "" {
		fmt.Fprintf(w, "%s %s\n", color.Red("toolcell:"), console.Shown(w, err.Error()))
	}
	if advice := oci.Advice(err); advice != "" {
		fmt.Fprintf(w, "%s %s\n", color.Cyan("hint:"), console.Shown(w, advice))
	}
	if code == console.ExitUsage {
		fmt.Fprintln(w, color.Cyan("hint:"), command+" --help")
	}
	return code
}

// jsonFlag is the flag of every command that shows something.
func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print one JSON array of objects"}
}
