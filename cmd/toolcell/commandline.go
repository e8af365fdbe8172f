package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/oci"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// version is set by the linker.
var version = "devel"

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
	app := newCommandLine(&console.Streams{In: stdin, Out: stdout, Err: stderr, Signals: signals})
	err := app.RunContext(ctx, flagsFirst(app, args))
	switch sig := signals.Received(); {
	case err != nil && sig != nil:
		if !console.EndedByUser(err) {
			printError(stderr, err)
		}
		return sig.Code()
	case brokenPipe(err, stdout):
		return console.Stopped{Signal: syscall.SIGPIPE}.Code()
	}
	return printError(stderr, err)
}

// brokenPipe reports whether the reader of our output is gone. That is not an
// error to print: the reader wanted no more.
func brokenPipe(err error, stdout *os.File) bool {
	var path *fs.PathError
	return errors.Is(err, unix.EPIPE) && errors.As(err, &path) && path.Path == stdout.Name()
}

// flagsFirst moves the flags of a command before its arguments: people write
// them in any order, and the cli package wants them first. What follows "--"
// stays where it is. Only exec keeps the "--" itself, to separate its own
// arguments from those of the code.
func flagsFirst(app *cli.App, args []string) []string {
	var command *cli.Command
	at := 1
	for commands := app.Commands; at < len(args); at++ {
		i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(args[at]) })
		if i < 0 {
			break
		}
		command, commands = commands[i], commands[i].Subcommands
	}
	if command == nil || command.SkipFlagParsing {
		return args
	}
	takesValue := map[string]bool{}
	for _, f := range command.Flags {
		if d, ok := f.(cli.DocGenerationFlag); ok && d.TakesValue() {
			for _, name := range f.Names() {
				takesValue[name] = true
			}
		}
	}
	ordered, rest := slices.Clone(args[:at]), []string(nil)
	for ; at < len(args); at++ {
		arg := args[at]
		if arg == "--" {
			if command.Name != execName {
				at++
			}
			rest = append(rest, args[at:]...)
			break
		}
		if arg == "-" || !strings.HasPrefix(arg, "-") {
			rest = append(rest, arg)
			continue
		}
		ordered = append(ordered, arg)
		if takesValue[strings.TrimLeft(arg, "-")] && at+1 < len(args) {
			at++
			ordered = append(ordered, args[at])
		}
	}
	return append(append(ordered, "--"), rest...)
}

func newCommandLine(s *console.Streams) *cli.App {
	return &cli.App{
		Name:      "toolcell",
		Usage:     "Python in a rootless sandbox, as an MCP server with one tool",
		UsageText: "toolcell COMMAND [flags]\n\nOn a terminal start with: toolcell doctor; toolcell exec -c 'print(1+1)'",
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
		ExitErrHandler:  func(*cli.Context, error) {}, // printError prints
		CommandNotFound: func(*cli.Context, string) {},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return console.Usagef("there is no command %q", c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
	}
}

func usageError(_ *cli.Context, err error, _ bool) error {
	return &console.ExitError{Code: console.ExitUsage, Err: err}
}

// printError prints err for the user, with its cure, and returns the exit code.
func printError(w *os.File, err error) int {
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
	if hint != nil {
		fmt.Fprintf(w, "%s %s\n", color.Cyan("hint:"), console.Shown(w, hint.Hint))
	}
	if code == console.ExitUsage {
		fmt.Fprintln(w, color.Cyan("hint:"), "toolcell --help")
	}
	return code
}

// jsonFlag is the flag of every command that shows something.
func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print one JSON array of objects"}
}
