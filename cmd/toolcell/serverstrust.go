package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
)

// discoverySettings are the settings of commands that only look for servers.
var discoverySettings = []string{"state-dir", "servers-config", "log-level", "allow-self-server"}

func serversTrustCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name: "trust", Usage: "let a project's config file start the servers in it, as long as it stays as it is", ArgsUsage: "FILE…",
		Flags: flags(discoverySettings), Action: action(s, func(_ context.Context, o Options) error { return eachProjectFile(o, trustFile) }),
	}
}

func serversUntrustCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name: "untrust", Usage: "stop trusting a project's config file", ArgsUsage: "FILE…",
		Flags: flags(discoverySettings), Action: action(s, func(_ context.Context, o Options) error { return eachProjectFile(o, untrustFile) }),
	}
}

// A trustRow is a row of servers trust and servers untrust.
type trustRow struct {
	File    string `json:"file"`
	Trusted bool   `json:"trusted"`
	Changed bool   `json:"changed"` // by this command
}

// eachProjectFile runs action on every file that the command line names. Its
// messages are for people: with --json the rows are printed instead.
func eachProjectFile(o Options, action func(out io.Writer, f *discovered, file string) (trustRow, error)) error {
	if len(o.Args) == 0 {
		return console.Usagef("%s takes the path of a config file, such as .mcp.json", o.Command)
	}
	var rows []trustRow
	out := o.Stdout()
	if o.JSON {
		out = io.Discard
	}
	for _, arg := range o.Args {
		found, err := discoverForShell(o, shellLogger(o))
		if err != nil {
			return err
		}
		file, err := filepath.Abs(arg)
		if err != nil {
			return err
		}
		if dir, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil {
			file = filepath.Join(dir, filepath.Base(file))
		}
		row, err := action(out, found, file)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if o.JSON {
		return console.PrintJSON(o.Streams, rows)
	}
	return nil
}

func trustFile(out io.Writer, f *discovered, file string) (trustRow, error) {
	if _, err := os.Stat(file); err != nil {
		return trustRow{}, fmt.Errorf("trusting %s: %w", file, errors.Unwrap(err)) // without the path again
	}
	f.options.Dir = clientconfig.ProjectOf(file)
	if f.options.Dir == "" {
		return trustRow{}, fmt.Errorf("trusting %s: it is no config file of a project; the file must be in its place, such as .mcp.json or .cursor/mcp.json in the project's directory", file)
	}
	config := clientconfig.Discover(f.options)
	for _, p := range config.Projects {
		if p.Path != file {
			continue
		}
		if err := f.trust.Set(file, p.Sum, true); err != nil {
			return trustRow{}, fmt.Errorf("trusting %s: %w", file, err)
		}
		fmt.Fprintf(out, "trusted as it is now: %s\n", file)
		showStarts(out, p)
		return trustRow{file, true, true}, nil
	}
	for _, p := range config.Problems {
		if p.Source == file && !p.Skipped {
			return trustRow{}, fmt.Errorf("trusting %s: %s", file, p.Reason)
		}
	}
	fmt.Fprintf(out, "nothing to do: %s is trusted already, or starts nothing that needs it\n", file)
	return trustRow{file, true, false}, nil
}

func untrustFile(out io.Writer, f *discovered, file string) (trustRow, error) {
	was, err := f.trust.Forget(file)
	if err != nil {
		return trustRow{}, fmt.Errorf("taking trust from %s: %w", file, err)
	}
	if !was {
		fmt.Fprintf(out, "nothing to do: %s was not trusted\n", file)
		return trustRow{file, false, false}, nil
	}
	fmt.Fprintf(out, "no longer trusted: %s\n", file)
	return trustRow{file, false, true}, nil
}
