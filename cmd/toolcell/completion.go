package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
)

// The scripts of the shells, in completion/, are as small as can be: each hands
// what was typed to `toolcell __complete` and shows what comes back, a line for
// each candidate, with what it is after a tab. The lines :files and :dirs leave
// it to the shell.
//
//go:embed completion
var completionScripts embed.FS

func completionCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for bash, zsh or fish",
		ArgsUsage: "bash|zsh|fish",
		Description: "bash: source <(toolcell completion bash)\n\n" +
			"zsh: source <(toolcell completion zsh), after compinit\n\n" +
			"fish: toolcell completion fish | source",
		Action: func(c *cli.Context) error {
			text, err := completionScripts.ReadFile("completion/toolcell." + c.Args().First())
			if err != nil || c.NArg() != 1 {
				return console.Usagef("completion takes the name of one shell: bash, zsh or fish")
			}
			_, err = s.Out.Write(text)
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
			t := typed{c: c}
			for _, found := range t.complete(words) {
				fmt.Fprintf(s.Stdout(), "%s\t%s\n", insert(found.value), console.OneLine(found.about, 60))
			}
			if t.paths != "" {
				fmt.Fprintln(s.Stdout(), t.paths)
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
	typedCommand
	c     *cli.Context
	path  string   // of the command: "servers tools"
	args  []string // the command's own
	paths string
}

// complete returns candidates for the last word.
func (t *typed) complete(words []string) []candidate {
	last := len(words) - 1
	t.typedCommand = findCommand(t.c.App, append([]string{t.c.App.Name}, words[:last]...))
	t.path = strings.TrimPrefix(strings.TrimPrefix(t.typedCommand.path, t.c.App.Name), " ")
	var flag cli.Flag // whose value the next word is
	for _, w := range words[t.at-1 : last] {
		switch {
		case flag != nil:
			flag = nil
		case w == "--":
			t.paths = filePaths // arguments of the code, which only it knows
			return nil
		case !isFlag(w):
			t.args = append(t.args, w)
		case !strings.Contains(w, "="):
			if flag = t.flag(w); !takesValue(flag) {
				flag = nil
			}
		}
	}
	word := words[last]
	name, _, hasValue := strings.Cut(word, "=")
	switch {
	case flag != nil:
		return startingWith(word, "", t.values(flag))
	case !isFlag(word):
		return startingWith(word, "", append(t.commandNames(), t.arguments()...))
	case hasValue:
		return startingWith(word, name+"=", t.values(t.flag(name)))
	}
	return startingWith(word, "", t.flagNames())
}

func isFlag(w string) bool { return strings.HasPrefix(w, "-") && w != "-" }

// takesValue reports whether a flag takes the next argument for its value.
func takesValue(f cli.Flag) bool {
	if g, generic := f.(*cli.GenericFlag); generic {
		b, ok := g.Value.(interface{ IsBoolFlag() bool })
		return !ok || !b.IsBoolFlag()
	}
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

// about returns a flag's usage line, without the marks around its value.
func about(f cli.Flag) string {
	if d, ok := f.(cli.DocGenerationFlag); ok {
		return strings.ReplaceAll(d.GetUsage(), "`", "")
	}
	return ""
}

func (t typedCommand) flagNames() (all []candidate) {
	for _, f := range t.flags {
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
	commands := t.c.App.Commands
	switch {
	case len(t.args) > 0:
		return nil
	case t.parsed != nil:
		commands = t.parsed.Subcommands
	}
	for _, cmd := range commands {
		if !cmd.Hidden {
			all = append(all, candidate{cmd.Name, cmd.Usage})
		}
	}
	return all
}

// startingWith returns the candidates that complete a word when they stand
// behind what it begins with.
func startingWith(word, begin string, all []candidate) (found []candidate) {
	for _, c := range all {
		if c.value = begin + c.value; strings.HasPrefix(c.value, word) {
			found = append(found, c)
		}
	}
	return found
}
