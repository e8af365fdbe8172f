package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/oci/doctor"
)

func toolsCommand(s *console.Streams) *cli.Command {
	command := func(name, usage, args string, do func(context.Context, Options, savedtools.Store) error) *cli.Command {
		return command(name, usage, args, stateSettings, action(s, func(ctx context.Context, o Options) error {
			return do(ctx, o, openSavedTools(o.Settings))
		}))
	}
	return group("tools", "show, export and remove the tools that code has saved in this project",
		command("list", "show the saved tools of this project", "", toolsList),
		command("show", "show saved tools with their source", "NAME…", toolsShow),
		command("rm", "remove saved tools", "NAME…", toolsRemove),
		command("export", "print saved tools, or all of them, as one Python module", "[NAME…]", toolsExport),
	)
}

// openSavedTools returns the tools of the project that contains the working
// directory.
func openSavedTools(s settings.Settings) savedtools.Store {
	return savedtools.Open(s.Dirs.Tools(), currentProject())
}

func toolsList(_ context.Context, o Options, saved savedtools.Store) error {
	tools, problems := saved.List()
	err := errors.Join(problems...)
	if len(tools) == 0 && err != nil && !o.JSON {
		return err
	}
	none, next := "no tools are saved in "+projectName(saved), "code saves a function with runtime.save_tool(function)"
	columns := []console.Column{{Name: "TOOL"}, {Name: "SAVED"}, {Name: "DESCRIPTION"}}
	return errors.Join(printRows(o, tools, none, next, columns, func(t savedtools.Tool) []string {
		return []string{t.Name + console.OneLine(t.Signature, descriptionWidth), savedOn(t), firstLine(t.Doc)}
	}), err)
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

func toolsShow(_ context.Context, o Options, saved savedtools.Store) error {
	var tools []savedtools.Tool
	for _, name := range o.Args {
		t, err := saved.Show(name)
		if err != nil {
			return hintAtTools(err)
		}
		tools = append(tools, t)
	}
	if o.JSON {
		return console.PrintJSON(o.Streams, tools)
	}
	color := console.ColorsFor(o.Out)
	for i, t := range tools {
		if i > 0 {
			fmt.Fprintln(o.Stdout())
		}
		about := "# " + t.Name
		if on := savedOn(t); on != "" {
			about += ", saved " + on
		}
		if len(t.Imports) > 0 {
			about += ", needs " + strings.Join(t.Imports, ", ")
		}
		source := console.Shown(o.Out, strings.Trim(t.Source, "\n"))
		fmt.Fprintf(o.Stdout(), "%s\n%s\n", color.Cyan(console.Plain(about)), source)
	}
	return nil
}

// A removedTool is a row of tools rm.
type removedTool struct {
	Name string `json:"name"`
}

func toolsRemove(ctx context.Context, o Options, saved savedtools.Store) error {
	return eachArgument(ctx, o, func(name string) (*removedTool, string, error) {
		if err := saved.Remove(name); err != nil {
			return nil, "", hintAtTools(err)
		}
		return &removedTool{name}, "removed: " + name + "\n", nil
	})
}

func toolsExport(_ context.Context, o Options, saved savedtools.Store) error {
	var text strings.Builder
	if err := saved.Export(&text, o.Args...); err != nil {
		return hintAtTools(err)
	}
	return printRow(o, map[string]string{"module": text.String()}, "%s", console.Shown(o.Out, text.String()))
}

// hintAtTools adds to the error of an unknown name where to look: tools are
// kept by project.
func hintAtTools(err error) error {
	if errors.Is(err, savedtools.ErrNotExist) {
		return &console.ExitError{Code: console.ExitFail, Err: &doctor.HintError{Err: err, Hint: "tools are kept by project; in its folder: toolcell tools list"}}
	}
	return err
}
