package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/urfave/cli/v2"
)

// The scripts of the shells, in completion/, are as small as can be: each hands
// what was typed to `toolcell __complete` and shows what comes back, a line for
// each candidate, with what it is after a tab. The lines :files and :dirs leave
// it to the shell.
//
//go:embed completion/toolcell.bash
var completeBash string

//go:embed completion/toolcell.zsh
var completeZsh string

//go:embed completion/toolcell.fish
var completeFish string

var completions = map[string]string{"bash": completeBash, "zsh": completeZsh, "fish": completeFish}

func completionCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print what a shell needs to complete commands, flags, servers, images and tools",
		ArgsUsage: "bash|zsh|fish",
		Description: "bash: source <(toolcell completion bash)\n" +
			"zsh:  source <(toolcell completion zsh), after compinit\n" +
			"fish: toolcell completion fish | source",
		OnUsageError: usageError,
		Action: func(c *cli.Context) error {
			text, ok := completions[c.Args().First()]
			if !ok || c.NArg() != 1 {
				return console.Usagef("completion takes the name of one shell: bash, zsh or fish")
			}
			_, err := fmt.Fprint(s.Out, text)
			return err
		},
	}
}

// completeCommand is the command that the scripts call.
func completeCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name: "__complete", Hidden: true, Flags: settings.Flags(discoverySettings...), SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			args := c.Args().Slice()
			if len(args) < 2 {
				return console.Usagef("__complete takes a shell and what was typed")
			}
			words, insert := args[1:], func(value string) string { return value }
			if args[0] == "bash" {
				words, insert = bashWords(args[1], strings.Join(args[2:], ""))
			}
			t := typed{c: c, commands: c.App.Commands}
			for _, found := range t.complete(words) {
				if _, err := fmt.Fprintf(s.Out, "%s\t%s\n", insert(found.value), console.OneLine(found.about, 60)); err != nil {
					return err
				}
			}
			if t.paths != "" {
				fmt.Fprintln(s.Out, t.paths)
			}
			return nil
		},
	}
}

// A candidate is a possible completion of a word.
type candidate struct{ value, about string }

// Values that the shell completes itself.
const (
	filePaths   = ":files"
	folderPaths = ":dirs"
)

// typed is a command line up to the word that is to be completed.
type typed struct {
	c        *cli.Context
	path     string         // of the command: "servers tools"
	commands []*cli.Command // that may follow
	flags    []cli.Flag
	args     []string // the command's own
	paths    string
}

// complete returns candidates for the last word.
func (t *typed) complete(words []string) []candidate {
	var value cli.Flag // that the next word is the value of
	last := len(words) - 1
	for _, w := range words[:last] {
		switch {
		case value != nil:
			value = nil
		case w == "--":
			t.paths = filePaths // arguments of the code, which only it knows
			return nil
		case strings.HasPrefix(w, "-") && w != "-":
			if f := t.flag(w); f != nil && takesValue(f) && !strings.Contains(w, "=") {
				value = f
			}
		default:
			t.enter(w)
		}
	}
	word := words[last]
	name, begun, hasValue := strings.Cut(word, "=")
	switch {
	case value != nil:
		return startingWith(word, t.values(value))
	case strings.HasPrefix(word, "-") && hasValue:
		f := t.flag(name)
		if f == nil {
			return nil
		}
		found := startingWith(begun, t.values(f))
		for i := range found {
			found[i].value = name + "=" + found[i].value
		}
		return found
	case strings.HasPrefix(word, "-") && word != "-":
		return startingWith(word, t.flagNames())
	}
	return startingWith(word, append(t.commandNames(), t.arguments()...))
}

// enter handles a word that is not a flag: a command or an argument.
func (t *typed) enter(w string) {
	i := slices.IndexFunc(t.commands, func(c *cli.Command) bool { return c.HasName(w) })
	if i < 0 || len(t.args) > 0 {
		t.args = append(t.args, w)
		return
	}
	cmd := t.commands[i]
	t.path = strings.TrimSpace(t.path + " " + cmd.Name)
	t.commands, t.flags = cmd.Subcommands, cmd.Flags
}

// flag returns the flag meant by -x, --x or --x=….
func (t *typed) flag(w string) cli.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
	for _, f := range t.flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

// about returns a flag's usage line, without the marks around its value.
func about(f cli.Flag) string {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return ""
	}
	return strings.ReplaceAll(d.GetUsage(), "`", "")
}

func (t *typed) flagNames() (all []candidate) {
	for _, f := range append(slices.Clone(t.flags), cli.HelpFlag) {
		for _, name := range f.Names() {
			all = append(all, candidate{dashed(name), about(f)})
		}
	}
	return all
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func (t *typed) commandNames() (all []candidate) {
	if len(t.args) > 0 {
		return nil
	}
	for _, cmd := range t.commands {
		if !cmd.Hidden {
			all = append(all, candidate{cmd.Name, cmd.Usage})
		}
	}
	return all
}

func startingWith(prefix string, all []candidate) (found []candidate) {
	for _, c := range all {
		if strings.HasPrefix(c.value, prefix) {
			found = append(found, c)
		}
	}
	return found
}
