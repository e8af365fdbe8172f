package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/urfave/cli/v2"
)

// The columns of help: where the text beside a flag or a command begins, and how wide
// the lines are, unless the terminal is narrower.
const (
	helpColumn = 24
	helpWidth  = 100
)

// A helpText is what --help prints.
type helpText struct {
	strings.Builder
	width int
}

// printHelp prints the help of the program or of a command, as the cli package gives
// it. Its own templates do not wrap lines, and mix a command's flags with the settings.
func printHelp(out *os.File, of any) {
	h := &helpText{width: min(console.TextWidth(out), helpWidth)}
	switch of := of.(type) {
	case *cli.App:
		h.head(of.Name, of.Usage, of.UsageText, "")
		h.commands(of.Commands)
		h.flags(append(of.Flags, cli.HelpFlag))
		h.examples(of.Name)
	case *cli.Command:
		h.head(of.HelpName, of.Usage, usageLine(of), of.Description)
		h.commands(of.Subcommands)
		h.flags(of.VisibleFlags())
		h.examples(of.HelpName)
	}
	fmt.Fprint(out, h.String())
}

// usageLine says how a command is typed.
func usageLine(c *cli.Command) string {
	if len(shown(c.Subcommands)) > 0 {
		return c.HelpName + " COMMAND [flags]"
	}
	return strings.TrimSpace(c.HelpName + " [flags] " + c.ArgsUsage)
}

func (h *helpText) head(name, about, usage, description string) {
	h.lines("", name+" - "+about)
	h.heading("USAGE")
	h.lines("  ", usage)
	if description != "" {
		h.WriteByte('\n')
		h.lines("", description)
	}
}

func (h *helpText) commands(all []*cli.Command) {
	if all = shown(all); len(all) == 0 {
		return
	}
	h.heading("COMMANDS")
	for _, c := range all {
		h.item(strings.Join(c.Names(), ", "), c.Usage)
	}
}

// flags lists a command's own flags, and then the settings that it uses.
func (h *helpText) flags(all []cli.Flag) {
	h.heading("FLAGS")
	var set []cli.Flag
	for _, f := range all {
		if isSetting(f) {
			set = append(set, f)
			continue
		}
		h.flag(f, "")
	}
	if len(set) == 0 {
		return
	}
	h.heading("SETTINGS: flags, or variables of the environment")
	for _, f := range set {
		h.flag(f, settingText(f))
	}
}

func (h *helpText) flag(f cli.Flag, more string) {
	var names []string
	for _, n := range f.Names() {
		names = append(names, dashed(n))
	}
	h.item(strings.TrimSpace(strings.Join(names, ", ")+" "+placeholder(f)), about(f)+more)
}

// settingText gives the default of a setting, and its variable.
func settingText(f cli.Flag) string {
	s, ok := f.(*cli.StringFlag)
	if !ok {
		return ""
	}
	text := " ($" + strings.Join(s.EnvVars, ", $")
	if s.Value != "" { // not the one that is set
		text += ", default " + strings.Trim(s.GetDefaultText(), `"`)
	}
	return text + ")"
}

func (h *helpText) examples(command string) {
	if len(examples[command]) == 0 {
		return
	}
	h.heading("EXAMPLES")
	for _, e := range examples[command] {
		fmt.Fprintln(h, "  "+e)
	}
}

func (h *helpText) heading(title string) { fmt.Fprintf(h, "\n%s\n", title) }

// item writes a name, and beside it what it means, or below it if the name is long.
func (h *helpText) item(name, text string) {
	const indent = "  "
	column := strings.Repeat(" ", helpColumn)
	lines := console.Wrapped(text, h.width-helpColumn)
	if room := helpColumn - len(indent) - 2; len(name) > room || len(lines) == 0 {
		fmt.Fprintln(h, indent+name)
	} else {
		fmt.Fprintf(h, "%s%-*s%s\n", indent, helpColumn-len(indent), name, lines[0])
		lines = lines[1:]
	}
	for _, line := range lines {
		fmt.Fprintln(h, column+line)
	}
}

// lines writes text, wrapped.
func (h *helpText) lines(indent, text string) {
	for _, line := range console.Wrapped(text, h.width-len(indent)) {
		fmt.Fprintln(h, indent+line)
	}
}

// placeholder returns the word that stands for a flag's value; "" if it takes none.
func placeholder(f cli.Flag) string {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok || !d.TakesValue() {
		return ""
	}
	if parts := strings.Split(d.GetUsage(), "`"); len(parts) == 3 {
		return parts[1]
	}
	return "VALUE"
}
