package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/urfave/cli/v2"
)

// toolsSettings are the settings of commands about saved tools.
var toolsSettings = []string{"state-dir"}

func toolsCommand(s *console.Streams) *cli.Command {
	command := func(name, usage, args string, action func(*cli.Context, *console.Streams, savedtools.Store) error) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: args, OnUsageError: usageError,
			Flags: append([]cli.Flag{jsonFlag()}, settings.Flags(toolsSettings...)...),
			Action: func(c *cli.Context) error {
				saved, err := openSavedTools(c)
				if err != nil {
					return err
				}
				return action(c, s, saved)
			},
		}
	}
	return &cli.Command{
		Name: "tools", Usage: "show, export and remove the tools that code has saved in this project",
		OnUsageError: usageError, Action: needSubcommand,
		Subcommands: []*cli.Command{
			command("list", "show the saved tools of this project", "", toolsList),
			command("show", "show saved tools with their source", "NAME…", toolsShow),
			command("rm", "remove saved tools", "NAME…", toolsRemove),
			command("export", "print saved tools, or all of them, as one Python module", "[NAME…]", toolsExport),
		},
	}
}

// openSavedTools returns the tools of the project that contains the working
// directory.
func openSavedTools(c *cli.Context) (savedtools.Store, error) {
	_, d, err := settings.ReadWithDirs(c)
	if err != nil {
		return savedtools.Store{}, err
	}
	return savedtools.Open(d.Tools(), project()), nil
}

func toolsList(c *cli.Context, s *console.Streams, saved savedtools.Store) error {
	if c.Args().Present() {
		return console.Usagef("tools list takes no arguments, got %q", c.Args().First())
	}
	tools, problems := saved.List()
	err := errors.Join(problems...)
	if c.Bool("json") {
		return errors.Join(console.PrintJSON(s, tools), err)
	}
	if len(tools) == 0 && err == nil {
		printNone(s, "no tools are saved in "+projectName(saved), "code saves a function with runtime.save_tool(function)")
		return nil
	}
	var rows [][]string
	for _, t := range tools {
		rows = append(rows, []string{t.Name + console.OneLine(t.Signature, descriptionWidth), savedOn(t), firstLine(t.Doc)})
	}
	return errors.Join(console.PrintTable(s.Out, []console.Column{{Name: "TOOL"}, {Name: "SAVED"}, {Name: "DESCRIPTION"}}, rows), err)
}

func projectName(saved savedtools.Store) string {
	if p := saved.Project(); p != "" {
		return p
	}
	return "this place, which is no project"
}

func savedOn(t savedtools.Tool) string {
	if t.Saved.IsZero() {
		return ""
	}
	return t.Saved.Local().Format(time.DateTime)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return console.OneLine(line, descriptionWidth)
}

func toolsShow(c *cli.Context, s *console.Streams, saved savedtools.Store) error {
	if !c.Args().Present() {
		return console.Usagef("tools show takes names of saved tools; toolcell tools list shows them")
	}
	var tools []savedtools.Tool
	for _, name := range c.Args().Slice() {
		t, err := saved.Show(name)
		if err != nil {
			return hintAtTools(err)
		}
		tools = append(tools, t)
	}
	if c.Bool("json") {
		return console.PrintJSON(s, tools)
	}
	color := console.ColorsFor(s.Out)
	for i, t := range tools {
		if i > 0 {
			fmt.Fprintln(s.Stdout())
		}
		about := "# " + t.Name
		if on := savedOn(t); on != "" {
			about += ", saved " + on
		}
		if len(t.Imports) > 0 {
			about += ", needs " + strings.Join(t.Imports, ", ")
		}
		source := console.Shown(s.Out, strings.Trim(t.Source, "\n"))
		if _, err := fmt.Fprintf(s.Out, "%s\n%s\n", color.Cyan(console.Plain(about)), source); err != nil {
			return err
		}
	}
	return nil
}

func toolsRemove(c *cli.Context, s *console.Streams, saved savedtools.Store) (err error) {
	if !c.Args().Present() {
		return console.Usagef("tools rm takes names of saved tools; toolcell tools list shows them")
	}
	var removed []map[string]string
	for _, name := range c.Args().Slice() {
		if rmErr := saved.Remove(name); rmErr != nil {
			err = errors.Join(err, hintAtTools(rmErr))
			continue
		}
		removed = append(removed, map[string]string{"name": name})
		if !c.Bool("json") {
			fmt.Fprintf(s.Stdout(), "removed: %s\n", name)
		}
	}
	if c.Bool("json") {
		err = errors.Join(err, console.PrintJSON(s, removed))
	}
	return err
}

func toolsExport(c *cli.Context, s *console.Streams, saved savedtools.Store) error {
	var text strings.Builder
	if err := saved.Export(&text, c.Args().Slice()...); err != nil {
		return hintAtTools(err)
	}
	if c.Bool("json") {
		return console.PrintJSON(s, []map[string]string{{"module": text.String()}})
	}
	_, err := io.WriteString(s.Out, console.Shown(s.Out, text.String()))
	return err
}

// hintAtTools adds to the error of an unknown name where to look: tools are
// kept by project.
func hintAtTools(err error) error {
	if errors.Is(err, savedtools.ErrNotExist) {
		return &console.ExitError{Code: console.ExitFail, Err: &doctor.HintError{Err: err, Hint: "tools are kept by project; in its folder: toolcell tools list"}}
	}
	return err
}
