package installer

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/edit"
)

// PrintEntry prints the entry for the user to put into the file by hand.
func (i *Installer) PrintEntry() (*Report, error) {
	if i.older {
		return nil, nil
	}
	entry, err := i.entry()
	if err != nil {
		return nil, err
	}
	report := i.newReport("printed")
	text, _, err := i.target.Install(nil, entry)
	if report.Entry = string(text); err != nil || i.JSON {
		return report, err
	}
	fmt.Fprintf(i.Streams.Err, "toolcell: for %s, in %s:\n", i.target.Title, i.target.File)
	_, err = io.WriteString(i.Streams.Out, report.Entry)
	return report, err
}

// entry returns the entry with which the client starts this program. Clients pass few variables
// on and have another PATH, so the command is a whole path, and the variables that say where
// files are go along.
func (i *Installer) entry() (edit.Entry, error) {
	entry := edit.Entry{Name: i.Name, Command: i.Program, Env: map[string]string{}, OldNames: map[string]string{}}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"} {
		if v := os.Getenv(name); filepath.IsAbs(v) {
			entry.Env[name] = v
		}
	}
	for _, pair := range i.Env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" || strings.ContainsAny(name, " \t\n\x00") || strings.ContainsRune(value, 0) {
			return entry, console.Invalidf("--env %q is not KEY=VALUE", pair)
		}
		if err := settings.Check(name, value); err != nil {
			return entry, err
		}
		if k := settings.OfVariable(name); k != nil {
			name = k.Variable()
			entry.OldNames[name] = k.OldVariable()
			if before, twice := entry.Env[name]; twice && before != value {
				return entry, console.Invalidf("--env gives %s two values, %q and %q", name, before, value)
			}
		}
		entry.Env[name] = value
	}
	i.noteVariables(entry)
	return entry, nil
}

// noteVariables says which settings are variables here that the client will not see.
func (i *Installer) noteVariables(entry edit.Entry) {
	for _, k := range settings.All {
		if _, given := entry.Env[k.Variable()]; given {
			continue
		}
		for _, name := range []string{k.Variable(), k.OldVariable()} {
			if os.Getenv(name) != "" {
				fmt.Fprintf(i.Streams.Err, "toolcell: note: %s is set here, and the client will not see it: add --env %s=… if the client should use it\n", name, k.Variable())
			}
		}
	}
}
