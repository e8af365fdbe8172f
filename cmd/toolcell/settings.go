package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
)

func settingsCommand(s *console.Streams) *cli.Command {
	list := action(s, settingsList)
	return &cli.Command{
		Name: settingsTopic, Usage: "show settings and where they come from, and change your config.toml",
		Description: "A flag overrides a variable, which overrides your config.toml; without any of them the default\n" +
			"applies. A project's .toolcell.toml may lower limits. For what each setting means, see toolcell\n" +
			"help settings. Without a command, it lists the settings.",
		Flags: flags(nil),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return needSubcommand(c)
			}
			return list(c)
		},
		Subcommands: []*cli.Command{
			command("list", "show the value of each setting, and where it comes from", "", nil, list),
			{
				Name: "set", Usage: "write a setting to your config.toml", ArgsUsage: "KEY VALUE\u2026",
				Description: "The file keeps its comments and order. Several values make a list.",
				Flags:       []cli.Flag{jsonFlag()}, Action: action(s, settingsSet),
			},
			{
				Name: "unset", Usage: "remove settings from your config.toml", ArgsUsage: "KEY\u2026",
				Flags: []cli.Flag{jsonFlag()}, Action: action(s, settingsUnset),
			},
		},
	}
}

// A valueRow is a row of settings list.
type valueRow struct {
	Key   string `json:"key"`
	Value string `json:"value"` // empty if there is none
	From  string `json:"from"`
}

// settingsList shows the values in effect here, which this project's file may lower.
func settingsList(_ context.Context, o Options) error {
	s, err := o.Settings.InProject(currentProject())
	if err != nil {
		return err
	}
	warnOfTypos(shellLogger(o))
	var rows []valueRow
	for _, k := range settings.All {
		v := s.Value(k.Name)
		if k.Name == "runtime" && v.From == "" {
			continue // it has no effect
		}
		from := cmp.Or(v.From, "default")
		switch {
		case strings.HasPrefix(from, "--"):
			from = "flag " + from
		case s.Lowered(k.Name) && k.Name != "output":
			from += " (lower)"
		}
		rows = append(rows, valueRow{k.Name, v.Text, from})
	}
	columns := []console.Column{{Name: "SETTING"}, {Name: "VALUE"}, {Name: "FROM", End: true}}
	return printRows(o, rows, "", "", columns, func(r valueRow) []string { // there are always some
		return []string{r.Key, cmp.Or(r.Value, "\u2013"), r.From}
	})
}

// A changeRow is the row of a command that changes the user's file.
type changeRow struct {
	Key  string `json:"key"`
	Did  string `json:"did"` // set, removed or unchanged
	File string `json:"file"`
}

func settingsSet(ctx context.Context, o Options) error {
	name, values := o.Args[0], o.Args[1:]
	if strings.TrimSpace(strings.Join(values, "")) == "" {
		o.Args = o.Args[:1]
		return settingsUnset(ctx, o)
	}
	if err := settings.SetInFile(ctx, name, values); err != nil {
		return err
	}
	noteOverride(o, name)
	return printRow(o, changeRow{name, "set", settings.UserFile()}, "set %s = %s in %s; %s\n",
		name, strings.Join(values, " "), settings.UserFileName(), settings.TakesEffect(name))
}

func settingsUnset(ctx context.Context, o Options) error {
	file := settings.UserFileName()
	return eachArgument(ctx, o, func(name string) (*changeRow, string, error) {
		was, err := settings.RemoveFromFile(ctx, name)
		if err != nil {
			return nil, "", err
		}
		shown := console.Shown(o.Out, name)
		if !was {
			return &changeRow{name, "unchanged", settings.UserFile()}, fmt.Sprintf("%s is not set in %s\n", shown, file), nil
		}
		noteOverride(o, name)
		row := &changeRow{name, "removed", settings.UserFile()}
		return row, fmt.Sprintf("removed %s from %s; %s\n", shown, file, settings.TakesEffect(name)), nil
	})
}

// noteOverride says what keeps a change from having its effect: a variable that overrides the file
// here, this project's own file, or a mistake elsewhere in the user's.
func noteOverride(o Options, name string) {
	if k := settings.Find(name); k != nil {
		for _, variable := range []string{k.Variable(), k.OldVariable()} {
			if os.Getenv(variable) != "" {
				console.Note(o.Err, fmt.Sprintf("the variable %s is set here and overrides the file", variable))
			}
		}
	}
	if v, overrides := settings.ProjectOverride(name, currentProject()); overrides {
		does := "lowers"
		if name == "output" {
			does = "changes"
		}
		console.Note(o.Err, fmt.Sprintf("%s %s %s to %s in this project", v.From, does, name, v.Text))
	}
	if err := settings.CheckFile(); err != nil {
		console.Note(o.Err, "the file has a mistake: "+err.Error())
	}
}
