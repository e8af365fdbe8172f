package main

import (
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/oci/doctor"
)

// A typedCommand is a parsed command line: the command, and its own arguments.
type typedCommand struct {
	path   string       // such as "toolcell images pull"
	parsed *cli.Command // nil if no command was typed, or there is none of the name
	flags  []cli.Flag
	args   []string // of the process
	at     int      // where in args the command's own arguments begin
}

func findCommand(app *cli.App, args []string) typedCommand {
	t := typedCommand{path: app.Name, flags: app.Flags, args: args, at: min(1, len(args))}
	for commands := app.Commands; t.at < len(args); t.at++ {
		i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(args[t.at]) })
		if i < 0 {
			break
		}
		t.parsed, commands = commands[i], commands[i].Subcommands
		t.path += " " + t.parsed.Name
		t.flags = append(slices.Clone(t.parsed.Flags), cli.HelpFlag)
	}
	return t
}

// flagsFirst returns the command line with the command's flags before its arguments: people
// write them in any order, and the cli package wants them first. Arguments after "--" stay
// where they are, as do those of exec after the file, which belong to the code. It fails for
// an unknown flag, for one without its value (the cli package would take the next flag, or our
// own "--"), and for one given twice if the first would be lost; the command line is then as it
// was typed.
func (t typedCommand) flagsFirst() ([]string, error) {
	if t.parsed != nil && t.parsed.SkipFlagParsing {
		return t.args, nil
	}
	ordered, rest := slices.Clone(t.args[:t.at]), []string(nil)
	given := map[cli.Flag]bool{}
	for at := t.at; at < len(t.args); at++ {
		arg := t.args[at]
		if arg == "--" {
			rest = append(rest, t.args[at+1:]...)
			break
		}
		switch isFlag := arg != "-" && strings.HasPrefix(arg, "-"); {
		case isFlag:
		case t.parsed != nil && t.parsed.Name == execName: // the file; what follows is the code's
			return append(append(ordered, "--"), t.args[at:]...), nil
		default:
			rest = append(rest, arg)
			continue
		}
		ordered = append(ordered, arg)
		flag := t.flag(arg)
		switch {
		case flag == nil:
			return t.args, t.noFlag(arg)
		case flag == cli.HelpFlag: // the cli package would look for the help of an argument
			return append(slices.Clone(t.args[:t.at]), arg), nil
		case given[flag] && !mayRepeat(flag):
			return t.args, console.Usagef("%s is given twice, and only the last would count", dashed(flagName(arg)))
		}
		given[flag] = true
		if strings.Contains(arg, "=") || !takesValue(flag) {
			continue
		}
		if at++; at == len(t.args) || t.args[at] == "--" || t.flag(t.args[at]) != nil {
			return t.args, console.Usagef("%s needs a value", arg)
		}
		ordered = append(ordered, t.args[at])
	}
	return append(append(ordered, "--"), rest...), nil
}

// mayRepeat reports whether a flag can be given twice: the second adds to the first, or
// replaces it on purpose, such as a time limit after a shell's alias.
func mayRepeat(f cli.Flag) bool {
	if _, one := f.(*cli.StringFlag); !one {
		return true
	}
	return isSetting(f) && !slices.Contains(settings.Lists, f.Names()[0])
}

// flag returns the flag that an argument names, or nil.
func (t typedCommand) flag(arg string) cli.Flag {
	if !strings.HasPrefix(arg, "-") {
		return nil
	}
	i := slices.IndexFunc(t.flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), flagName(arg)) })
	if i < 0 {
		return nil
	}
	return t.flags[i]
}

// flagName returns the name of a flag in an argument: both --name and -name are one
// (package flag).
func flagName(arg string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
	return name
}

// wantsJSON reports whether --json is among the flags of the command.
func (t typedCommand) wantsJSON() bool {
	if t.parsed == nil || t.parsed.SkipFlagParsing || t.flag("--json") == nil {
		return false
	}
	ordered, _ := t.flagsFirst()
	for _, arg := range ordered[t.at:] {
		switch arg {
		case "--":
			return false
		case "--json", "-json", "--json=true", "-json=true":
			return true
		}
	}
	return false
}

func (t typedCommand) noFlag(arg string) error {
	var names []string
	for _, flag := range t.flagNames() {
		names = append(names, flag.value)
	}
	more := ""
	if t.parsed != nil && t.parsed.Name == execName {
		more = "arguments for the code come after the file, or after -c CODE --"
	}
	given, _, _ := strings.Cut(arg, "=")
	near := didYouMean(dashed(flagName(arg)), names)
	switch {
	case more != "" && near != "":
		more = " (" + more + ")"
	case more != "":
		more = "; " + more
	}
	return console.Usagef("%s has no flag %s%s%s", t.path, given, near, more)
}

// noCommand returns the error for a command that is not among those given.
func noCommand(commands []*cli.Command, given string) error {
	var names []string
	for _, c := range visible(commands) {
		names = append(names, c.Names()...)
	}
	return console.Usagef("there is no command %q%s", given, didYouMean(given, names))
}

// didYouMean returns a question with the most similar name, or "" if none is similar.
func didYouMean(given string, names []string) string {
	if near := text.Misspelled(given, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// settingTypos returns a sentence for each variable whose name is nearly that of a setting.
func settingTypos(environ []string) (typos []string) {
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if typo := settings.Typo(name); value != "" && typo != "" {
			typos = append(typos, typo)
		}
	}
	return typos
}

func warnOfTypos(log *slog.Logger) {
	for _, typo := range settingTypos(os.Environ()) {
		log.Warn(typo)
	}
}

// typoChecks are doctor's lines on variables whose names are misspelled.
func typoChecks() (checks []doctor.Check) {
	for _, typo := range settingTypos(os.Environ()) {
		checks = append(checks, doctor.Degraded("RC-SETTING", typo, "toolcell help settings"))
	}
	return checks
}
