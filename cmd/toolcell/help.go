package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
)

// The columns of help: where the text beside a flag or a command begins, and how wide
// the lines are, unless the terminal is narrower.
const (
	helpColumn = 24
	helpWidth  = 100
)

// settingsTopic is the topic of help that is not a command.
const settingsTopic = "settings"

func helpCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name:      "help",
		Usage:     "print the help of a command, or of all settings",
		ArgsUsage: "[COMMAND | settings]",
		Flags:     []cli.Flag{jsonFlag()},
		Action:    func(c *cli.Context) error { return help(c, s) },
	}
}

func help(c *cli.Context, s *console.Streams) error {
	args := c.Args().Slice()
	switch {
	case len(args) == 1 && args[0] == settingsTopic && c.Bool("json"):
		return console.PrintJSON(s, settingRows())
	case c.Bool("json"):
		return console.Usagef("--json is for toolcell help settings")
	case len(args) == 1 && args[0] == settingsTopic:
		printSettings(s)
		return nil
	case len(args) == 0:
		printHelp(s, c.App)
		return nil
	}
	t := findCommand(c.App, append([]string{c.App.Name}, args...))
	if rest := t.args[t.at:]; len(rest) > 0 {
		among := append(slices.Clone(c.App.Commands), &cli.Command{Name: settingsTopic})
		if t.parsed != nil {
			among = t.parsed.Subcommands
		}
		return noCommand(among, rest[0])
	}
	t.parsed.HelpName = t.path
	printHelp(s, t.parsed)
	return nil
}

// visible leaves out hidden commands, and the help command, which the cli package
// adds everywhere.
func visible(all []*cli.Command) []*cli.Command {
	return slices.DeleteFunc(slices.Clone(all), func(c *cli.Command) bool { return c.Hidden || c.Name == "help" })
}

func isSetting(f cli.Flag) bool { return settings.OfSetting(f) }

// A helpText is what --help prints.
type helpText struct {
	strings.Builder
	width int
}

func newHelpText(out *os.File) *helpText {
	return &helpText{width: min(console.TextWidth(out), helpWidth)}
}

// printHelp prints the help of the program or of a command, as the cli package gives
// it. Its own templates do not wrap lines, and mix a command's flags with the settings.
func printHelp(s *console.Streams, of any) {
	h := newHelpText(s.Out)
	switch of := of.(type) {
	case *cli.App:
		h.head(of.Name, of.Usage, of.UsageText, "")
		h.commands(of.Commands)
		h.flags(of.Flags)
		h.examples(of.Name)
		h.WriteString("\nSettings: see toolcell help settings\n")
	case *cli.Command:
		h.head(of.HelpName, of.Usage, usageLine(of), of.Description)
		h.commands(of.Subcommands)
		h.flags(of.VisibleFlags())
		h.examples(of.HelpName)
		h.settings(of)
	}
	fmt.Fprint(s.Stdout(), h.String())
}

// usageLine says how a command is typed.
func usageLine(c *cli.Command) string {
	if len(visible(c.Subcommands)) > 0 {
		return c.HelpName + " COMMAND [flags]"
	}
	return strings.TrimSpace(c.HelpName + " [flags] " + c.ArgsUsage)
}

func (h *helpText) head(name, about, usage, description string) {
	h.lines("", name+" - "+about)
	h.heading("USAGE")
	h.lines("  ", usage)
	for paragraph := range strings.SplitSeq(description, "\n\n") {
		if paragraph != "" {
			h.WriteByte('\n')
			h.lines("", paragraph)
		}
	}
}

func (h *helpText) commands(all []*cli.Command) {
	if all = visible(all); len(all) == 0 {
		return
	}
	h.heading("COMMANDS")
	for _, c := range all {
		h.item(strings.Join(c.Names(), ", "), c.Usage)
	}
}

// flags lists the flags that are no settings.
func (h *helpText) flags(all []cli.Flag) {
	h.heading("FLAGS")
	for _, f := range all {
		if !isSetting(f) && f != cli.HelpFlag {
			h.flag(f, "")
		}
	}
	h.flag(cli.HelpFlag, "")
}

func (h *helpText) flag(f cli.Flag, more string) {
	var names []string
	for _, n := range f.Names() {
		names = append(names, dashed(n))
	}
	value := placeholder(f)
	if value != "" && !takesValue(f) {
		value = "[=" + value + "]"
	} else if value != "" {
		value = " " + value
	}
	h.item(strings.Join(names, ", ")+value, about(f)+more)
}

// fewSettings is the largest number of settings that the help of a command lists whole.
const fewSettings = 2

// settings lists the settings that matter most for a command, and says where the
// others are.
func (h *helpText) settings(c *cli.Command) {
	all := slices.DeleteFunc(c.VisibleFlags(), func(f cli.Flag) bool { return !isSetting(f) })
	if len(all) == 0 {
		return
	}
	h.heading("SETTINGS")
	main, found := mainSettings[c.HelpName]
	var set, other []cli.Flag
	for _, f := range all {
		if !slices.Contains(main, f.Names()[0]) && (found || len(all) > fewSettings) {
			other = append(other, f)
			continue
		}
		set = append(set, f)
		h.flag(f, variableOf(*settings.Find(f.Names()[0])))
	}
	const where = "see toolcell help settings"
	switch {
	case len(all) == len(settings.All):
		h.lines("  ", where+"; all are flags of this command")
	case len(other) > 0 && len(set) > 0:
		h.lines("  ", "Other settings: "+where+" for "+joinFlags(other))
	case len(other) > 0:
		h.lines("  ", where+" for "+joinFlags(other))
	default:
		h.lines("  ", where)
	}
}

func joinFlags(flags []cli.Flag) string {
	var names []string
	for _, f := range flags {
		names = append(names, dashed(f.Names()[0]))
	}
	return strings.Join(names, ", ")
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

// printSettings prints all settings.
func printSettings(s *console.Streams) {
	h := newHelpText(s.Out)
	h.lines("", "Each setting is a flag, a variable, and a key of the flag's name in "+settings.UserFileName()+"; a flag overrides a variable, "+
		"which overrides the file. toolcell settings list shows which apply, and toolcell settings set KEY VALUE changes the file. serve and exec have all flags, "+
		"other commands those that matter there. For one MCP client alone, put variables into toolcell's entry: toolcell install CLIENT --env NAME=VALUE")
	for _, g := range settings.Groups {
		h.heading(strings.ToUpper(g.Title))
		for _, k := range g.Settings {
			h.flag(k.Flag(), variableOf(k))
		}
	}
	fmt.Fprint(s.Stdout(), h.String())
}

func variableOf(k settings.Setting) string {
	if k.Value == "" {
		return " ($" + k.Variable() + ")"
	}
	return " ($" + k.Variable() + ", default " + k.Value + ")"
}

// A settingRow is a row of help settings --json.
type settingRow struct {
	Key      string `json:"key"`
	Flag     string `json:"flag"`
	Variable string `json:"variable"`
	Default  string `json:"default"`
	Group    string `json:"group"`
	Meaning  string `json:"meaning"`
}

func settingRows() (rows []settingRow) {
	for _, g := range settings.Groups {
		for _, k := range g.Settings {
			rows = append(rows, settingRow{k.Name, dashed(k.Name), k.Variable(), k.Value, g.Title, strings.ReplaceAll(k.Usage, "`", "")})
		}
	}
	return rows
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

// placeholder returns the word that stands for a flag's value; "" if it has none.
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
