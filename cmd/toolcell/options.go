package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/rootfs"
)

// Options are what commands have from their command lines. Those of a command with flags
// of its own begin with them.
type Options struct {
	*console.Streams
	Command  string // such as "images pull"
	Args     []string
	JSON     bool
	Quiet    bool              // no notes and logs
	Offline  bool              // fetch nothing
	Unused   string            // days, of what prune removes
	Settings settings.Settings // zero for a command without any

	FileError *settings.FileError // of the user's settings, which then do not count, for doctor
	// Mistake is in a setting without which the command goes on. Then all but uiSettings have their defaults.
	Mistake error
}

// stateSettings are the settings of commands that only look at what toolcell keeps.
var stateSettings = []string{"state-dir"}

// action returns that of a command: do with its Options.
func action(s *console.Streams, do func(context.Context, Options) error) cli.ActionFunc {
	return actionWith(s, func(c *cli.Context, o Options) error { return do(c.Context, o) })
}

// doWithoutFile are the commands that a mistake in the user's config.toml does not stop: those that
// answer a question of a run, which goes on, and those that show or remove what there is.
var doWithoutFile = []string{
	doctorName, uiName, "approvals", "approvals list", "approvals show", "approvals approve", "approvals deny", "status", "uninstall", "purge",
	"runs", "runs list", "runs show", "runs follow", "runs stats", "runs export", "runs verify", "runs head", "runs forget",
}

// actionWith is action for a command with flags of its own, which do reads.
func actionWith(s *console.Streams, do func(*cli.Context, Options) error) cli.ActionFunc {
	return func(c *cli.Context) (err error) {
		o := Options{
			Streams: s, Command: strings.TrimPrefix(c.Command.HelpName, c.App.Name+" "), Args: c.Args().Slice(),
			JSON: c.Bool("json"), Quiet: c.Bool("quiet"), Offline: c.Bool("offline"), Unused: c.String("unused"),
		}
		if c.Command.ArgsUsage == "" && len(c.Command.Subcommands) == 0 && len(o.Args) > 0 {
			return noArguments(o)
		}
		if takes, ok := arguments[o.Command]; ok && (len(o.Args) < takes.least || len(o.Args) > takes.most) {
			return console.Usagef("%s takes %s", o.Command, takes.what)
		}
		if slices.ContainsFunc(c.Command.Flags, isSetting) {
			if o, err = o.withSettings(c); err != nil {
				return err
			}
			if o.FileError != nil && o.Command != doctorName { // which has a finding for it
				console.Note(s.Err, o.FileError.Error()+"; going on without the file")
			}
			if o.Mistake != nil {
				console.Note(s.Err, o.Mistake.Error()+"; going on without it")
			}
		}
		return do(c, o)
	}
}

// withSettings returns the options with the settings as they are now.
func (o Options) withSettings(c *cli.Context) (_ Options, err error) {
	o.FileError, o.Mistake = nil, nil
	read := settings.Read
	o.Settings, err = read(c)
	if wrong, ok := errors.AsType[*settings.FileError](err); ok && slices.Contains(doWithoutFile, o.Command) {
		o.FileError, read = wrong, settings.ReadWithoutFile
		o.Settings, err = read(c)
	}
	if err != nil && o.Command == uiName {
		o.Mistake = err
		o.Settings, err = read(c, uiSettings...)
	}
	if o.Offline {
		o.Settings.Pull = rootfs.PullNever
	}
	return o, err
}

// noArguments is the error of arguments that a command does not take, and says what does.
func noArguments(o Options) error {
	instead := map[string]string{
		"serve":        "; to run a script: toolcell exec " + o.Args[0],
		"servers list": "; to look at one server: toolcell servers check NAME",
	}[o.Command]
	return console.Usagef("%s takes no arguments, got %q%s", o.Command, o.Args[0], instead)
}

// arguments are how many a command takes, and what, if it cannot do without any.
var arguments = map[string]struct {
	least, most int
	what        string
}{
	"images pull":       {1, math.MaxInt, "references, such as " + settings.DefaultImage},
	"images inspect":    {1, math.MaxInt, "references or digests of images"},
	"images rm":         {1, math.MaxInt, "references or digests of images"},
	"images refresh":    {1, 1, "one reference"},
	"packages add":      {1, math.MaxInt, "requirements such as 'pandas>=2', or a script"},
	"packages lock":     {1, 1, "a script"},
	"packages show":     {1, 1, "the beginning of an ID; toolcell packages list shows them"},
	"servers login":     {1, 1, "the name of one server"},
	"servers logout":    {1, 1, "the name of one server"},
	"servers search":    {1, math.MaxInt, "a query"},
	"servers call":      {2, math.MaxInt, "a server, a tool and the arguments; " + howToGive},
	"servers sandbox":   {1, 1, "the name of one server"},
	"servers update":    {1, math.MaxInt, "names of servers"},
	"servers set":       {1, 2, "the name of a server and of the input or variable to set"},
	"servers trust":     {1, math.MaxInt, "the path of a config file, such as .mcp.json, or the name of a server"},
	"servers untrust":   {1, math.MaxInt, "the path of a config file, such as .mcp.json, or the name of a server"},
	"settings set":      {2, math.MaxInt, "a setting and its value; toolcell settings list shows them"},
	"settings unset":    {1, math.MaxInt, "names of settings; toolcell settings list shows them"},
	"tools show":        {1, math.MaxInt, "names of saved tools; toolcell tools list shows them"},
	"tools rm":          {1, math.MaxInt, "names of saved tools; toolcell tools list shows them"},
	"approvals show":    {1, 1, "the ID of one question; toolcell approvals list shows them"},
	"approvals approve": {1, 1, "the ID of one question; toolcell approvals list shows them"},
	"approvals deny":    {1, 1, "the ID of one question; toolcell approvals list shows them"},
	"runs show":         {0, 1, "the ID of one run; toolcell runs list shows them"},
	"runs forget":       {1, math.MaxInt, "IDs of runs; toolcell runs list shows them"},
}

// command returns a command with its own flags, --json, and those of settings.
func command(name, usage, args string, names []string, do cli.ActionFunc, own ...cli.Flag) *cli.Command {
	return &cli.Command{Name: name, Usage: usage, ArgsUsage: args, Flags: flags(names, own...), Action: do}
}

// group returns a command that only has subcommands.
func group(name, usage string, subcommands ...*cli.Command) *cli.Command {
	return &cli.Command{Name: name, Usage: usage, Subcommands: subcommands, Action: needSubcommand}
}

// needSubcommand is the action of a command that only has subcommands.
func needSubcommand(c *cli.Context) error {
	if c.Args().Present() {
		return noCommand(c.Command.Subcommands, c.Args().First())
	}
	return cli.ShowSubcommandHelp(c)
}

// jsonFlag is the flag of every command that shows or changes something.
func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print one JSON array of objects"}
}

// flags returns a command's own flags, --json unless it is among them, and those of settings.
func flags(names []string, own ...cli.Flag) []cli.Flag {
	if !slices.ContainsFunc(own, func(f cli.Flag) bool { return f.Names()[0] == "json" }) {
		own = append(own, jsonFlag())
	}
	return append(own, settings.Flags(names...)...)
}

// printRows prints what a command has found: as JSON, as a table, or that there is none
// and what to type next.
func printRows[T any](o Options, rows []T, none, next string, columns []console.Column, cells func(T) []string) error {
	switch {
	case o.JSON:
		return console.PrintJSON(o.Streams, rows)
	case len(rows) == 0:
		return printNone(o.Streams, none, next)
	}
	table := make([][]string, len(rows))
	for i, row := range rows {
		table[i] = cells(row)
	}
	return console.PrintTable(o.Out, columns, table)
}

// printRow prints what a command has done: as JSON, a list of one row, or in words.
func printRow[T any](o Options, row T, format string, args ...any) error {
	if o.JSON {
		return console.PrintJSON(o.Streams, []T{row})
	}
	_, err := fmt.Fprintf(o.Out, format, args...)
	return err
}

// eachArgument does something for each argument and prints what came of it: lines, or a row of
// JSON if there is one. One that fails does not keep it from the others.
func eachArgument[T any](ctx context.Context, o Options, do func(arg string) (row *T, lines string, err error)) error {
	var rows []*T
	var failures []error
	for _, arg := range o.Args {
		row, lines, err := do(arg)
		if err == nil && !o.JSON {
			_, err = io.WriteString(o.Out, lines)
		}
		failures = append(failures, err)
		if row != nil {
			rows = append(rows, row)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if o.JSON {
		failures = append(failures, console.PrintJSON(o.Streams, rows))
	}
	return errors.Join(failures...)
}

// printNone says that there is nothing to show, and what to type next.
func printNone(s *console.Streams, what, next string) error {
	console.Plainly(s.Err, what)
	console.Hint(s.Err, next)
	return nil
}
