package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/urfave/cli/v2"
)

func manCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name:         "man",
		Usage:        "print the manual page, for man -l or a folder of pages",
		OnUsageError: usageError,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return console.Usagef("man takes no arguments, got %q", c.Args().First())
			}
			_, err := fmt.Fprint(s.Out, manPage(c.App))
			return err
		},
	}
}

// A page is a manual page in the macros of man(7). The cli package can write
// one too, which lists all settings below every command that has them: here
// they are said once.
type page struct{ strings.Builder }

func manPage(app *cli.App) string {
	var p page
	fmt.Fprintf(&p, ".TH TOOLCELL 1 \"%s\" %s \"User Commands\"\n", builtOn(), quoted("toolcell "+app.Version))
	p.section("NAME")
	p.text("toolcell - " + app.Usage)
	p.section("SYNOPSIS")
	for i, c := range shown(app.Commands) {
		if i > 0 {
			fmt.Fprintln(&p, ".br")
		}
		args := c.ArgsUsage
		if len(shown(c.Subcommands)) > 0 {
			args = "COMMAND"
		}
		fmt.Fprintf(&p, ".B toolcell %s\n", escapeRoff(c.Name))
		p.text("[flags] " + args)
	}
	p.section("DESCRIPTION")
	p.text(manDescription)
	p.section("COMMANDS")
	for _, c := range shown(app.Commands) {
		p.command("toolcell", c)
	}
	p.settings()
	p.section("EXIT STATUS")
	for _, e := range exitCodes {
		p.item(e.code, "", e.meaning)
	}
	p.section("ENVIRONMENT")
	for _, e := range manEnvironment {
		p.item(e.name, "", e.meaning)
	}
	p.section("FILES")
	for _, f := range manFiles {
		p.item(f.name, "", f.meaning)
	}
	p.section("EXAMPLES")
	for _, e := range manExamples {
		p.item(e.command, "", e.meaning)
	}
	return p.String()
}

// shown leaves out hidden commands, and the help command, which the cli package
// adds everywhere.
func shown(all []*cli.Command) []*cli.Command {
	return slices.DeleteFunc(slices.Clone(all), func(c *cli.Command) bool { return c.Hidden || c.Name == "help" })
}

// builtOn is the date of the page: that of the build, unless SOURCE_DATE_EPOCH
// names one (reproducible-builds.org/specs/source-date-epoch).
func builtOn() string {
	day := time.Now()
	if n, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		day = time.Unix(n, 0)
	} else if st, err := os.Stat(settings.Self()); err == nil {
		day = st.ModTime()
	}
	return day.UTC().Format(time.DateOnly)
}

// command writes about a command, or about those below it.
func (p *page) command(above string, c *cli.Command) {
	full := above + " " + c.Name
	if len(shown(c.Subcommands)) == 0 {
		fmt.Fprintf(p, ".SS %s\n", quoted(strings.TrimSpace(full+" "+c.ArgsUsage)))
		p.text(sentence(c.Usage))
		if len(c.Aliases) > 0 {
			p.text("Also: " + strings.Join(c.Aliases, ", ") + ".")
		}
		for paragraph := range strings.SplitSeq(c.Description, "\n\n") {
			if paragraph != "" {
				fmt.Fprintln(p, ".PP")
				p.text(paragraph)
			}
		}
		var set []cli.Flag
		for _, f := range c.Flags {
			if isSetting(f) {
				set = append(set, f)
				continue
			}
			p.flag(f)
		}
		switch {
		case len(set) == len(settings.All):
			fmt.Fprintln(p, ".PP\nThe settings below are flags too.")
		case len(set) > 0:
			fmt.Fprintln(p, ".PP")
			p.text("Settings: " + joinFlags(set) + "; see below.")
		}
	}
	for _, sub := range shown(c.Subcommands) {
		p.command(full, sub)
	}
}

func isSetting(f cli.Flag) bool {
	return slices.ContainsFunc(settings.All, func(k settings.Setting) bool { return k.Name == f.Names()[0] })
}

func (p *page) flag(f cli.Flag) {
	var names []string
	for _, n := range f.Names() {
		names = append(names, dashed(n))
	}
	p.item(strings.Join(names, ", "), placeholder(f), sentence(about(f)))
}

func (p *page) settings() {
	p.section("SETTINGS")
	p.text("Each is a flag with a twin in the environment; the flag wins. One that is set to nothing counts as not set, and a value that cannot be read is an error that names it.")
	for _, k := range settings.All {
		text := sentence(strings.ReplaceAll(k.Usage, "`", ""))
		if k.Value != "" {
			text += " Default: " + k.Value + "."
		}
		p.item(dashed(k.Name)+", "+k.Env, "", text)
	}
}

func (p *page) section(name string) { fmt.Fprintf(p, ".SH %s\n", quoted(name)) }

// item writes a paragraph that begins with a tag.
func (p *page) item(tag, value, text string) {
	fmt.Fprintf(p, ".TP\n.BR %s", quoted(tag))
	if value != "" {
		fmt.Fprintf(p, " %s", quoted(" "+value))
	}
	fmt.Fprintln(p)
	p.text(text)
}

// roffWidth leaves room for what escapes take in a line of at most 80.
const roffWidth = 60

// text writes lines of text so that none is taken for a macro.
func (p *page) text(s string) {
	for line := range strings.Lines(s) {
		for _, part := range console.Wrapped(line, roffWidth) {
			fmt.Fprintln(p, escapeRoff(part))
		}
	}
}

// sentence makes a line of usage into one.
func sentence(s string) string {
	if s == "" {
		return s
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

// escapeRoff writes text so that roff shows it as it is, also where it has no
// UTF-8.
func escapeRoff(s string) string {
	var b strings.Builder
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		b.WriteString(`\&`)
	}
	for _, r := range s {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r == '\'':
			b.WriteString(`\(aq`)
		case r == '`':
			b.WriteString(`\(ga`)
		case r > 0x7e:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// quoted writes an argument of a macro.
func quoted(s string) string { return `"` + strings.ReplaceAll(escapeRoff(s), `"`, `\(dq`) + `"` }
