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
	entry := edit.Entry{Name: i.Name, Command: i.Program, Env: map[string]string{}}
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
		entry.Env[name] = value
	}
	for _, k := range settings.All {
		if _, given := entry.Env[k.Env]; os.Getenv(k.Env) != "" && !given {
			fmt.Fprintf(i.Streams.Err, "toolcell: note: %s is set here, and the client will not see it: add --env %s=… if the client should use it\n", k.Env, k.Env)
		}
	}
	return entry, nil
}
