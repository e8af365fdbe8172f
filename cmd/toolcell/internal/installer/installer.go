// Package installer is the interactive side of toolcell install and uninstall:
// it changes the config file of an MCP client, shows the change and asks before
// servers are moved, keeps a backup, and can undo everything. The file keeps its
// mode, its owner and its place behind links, and is whole at every moment.
package installer

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/edit"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// Options hold the command line's values and data about the user's servers. All
// but the name and the environment must be set.
type Options struct {
	Client      string   // whose file
	Project     bool     // the file of the project instead of the user's
	Name        string   // of the entry; empty for the default
	Program     string   // whole path that clients start, for Install and PrintEntry
	Env         []string // KEY=VALUE that the client starts toolcell with
	MoveServers bool
	Yes         bool // move without asking
	DryRun      bool
	Force       bool // change files that are read-only
	JSON        bool // print nothing on standard output: the caller prints the report

	Streams   *console.Streams
	Settings  settings.Settings
	Discovery clientconfig.Options
	Config    config.Config
	Values    clientconfig.Values // that the user set for servers
	// Servers opens a proxy for servers, which starts each of them as the policy wants it.
	Servers func(config.Config) (p *mcpproxy.Proxy, end func() error)
	Log     *slog.Logger
	Version string // of this program, for servers to see
}

// An Installer changes the config file of one client.
type Installer struct {
	Options
	journal state.File[edit.Record]
	target  edit.Target
	file    *editedFile
	older   bool // the target is what Older returned
}

// New finds and reads the client's file, which need not exist.
func New(o Options) (*Installer, error) {
	i := &Installer{Options: o, journal: edit.Journal(o.Settings.Dirs.State)}
	var err error
	if i.target, err = edit.TargetOf(o.Discovery, o.Client, o.Project); err != nil {
		return nil, &console.ExitError{Code: console.ExitUsage, Err: err}
	}
	i.file, err = openEdited(i.target.File)
	return i, err
}

// Older returns an installer for the file in which earlier versions of the client had
// servers, nil if there is nothing to do in one. Install only moves servers out of it.
func (i *Installer) Older() (*Installer, error) {
	target, ok := i.target.Older()
	if !ok || i.older {
		return nil, nil
	}
	_, known, err := i.record(target.File)
	if err != nil || !known && !i.MoveServers {
		return nil, err
	}
	older := &Installer{Options: i.Options, journal: i.journal, target: target, older: true}
	older.file, err = openEdited(target.File)
	return older, err
}

// Title returns the client's name for people.
func (i *Installer) Title() string { return i.target.Title }

// Starts returns the path of the program that the client's entry starts now; "" if it has no
// entry, or none with a whole path: a launcher such as uvx, or a file of the project.
func (i *Installer) Starts() string {
	found, err := i.target.SelfEntries(i.file.before)
	if err != nil || len(found) == 0 {
		return ""
	}
	entry := found[max(slices.IndexFunc(found, func(e edit.SelfEntry) bool { return e.Name == i.Name }), 0)]
	if !filepath.IsAbs(entry.Command) {
		return ""
	}
	return entry.Path
}

// record returns what was done to a file, if anything.
func (i *Installer) record(file string) (done edit.Record, known bool, err error) {
	all, err := i.journal.Read()
	done, known = all[file]
	return done, known, err
}

// forget notes that what was done to the file is undone.
func (i *Installer) forget() error {
	return i.journal.Change(func(all map[string]edit.Record) { delete(all, i.target.File) })
}

// checkWritable refuses a file that its owner made read-only, such as one that home-manager
// writes, unless Force is set. It would be replaced, so the system refuses nothing.
func (i *Installer) checkWritable(files ...*editedFile) error {
	for _, f := range files {
		if f != nil && !i.Force && f.changed() && f.mode != 0 && f.mode&0o200 == 0 {
			return fmt.Errorf("%s is read-only (mode %#o); to change it nevertheless, add --force", f.path, f.mode)
		}
	}
	return nil
}

// Install puts an entry for toolcell into the file, and moves the client's other
// servers if requested. It prints what it does, or would do in a dry run. The report is
// nil if there is nothing to do in an older file.
func (i *Installer) Install(ctx context.Context) (*Report, error) {
	change, err := i.planEntry()
	if err != nil {
		return nil, err
	}
	if i.MoveServers {
		if err := change.planMove(ctx); err != nil {
			return nil, err
		}
	}
	if i.older && len(change.move.Servers) == 0 {
		return nil, nil
	}
	if i.DryRun {
		if !i.JSON {
			err = change.show(i.Streams.Out)
		}
		return change.summary(), err
	}
	if len(change.move.Servers) > 0 {
		if err := change.confirmMove(ctx); err != nil {
			return nil, err
		}
	}
	if err := change.write(); err != nil {
		return nil, err
	}
	report := change.summary()
	i.print(report)
	return report, nil
}

// planEntry puts the entry into the text of the file, unless it is an older one.
func (i *Installer) planEntry() (*change, error) {
	if i.older {
		return &change{Installer: i, result: edit.Result{Did: serversMoved}, command: i.Program + " serve"}, nil
	}
	entry, err := i.entry()
	if err != nil {
		return nil, err
	}
	text, result, err := i.target.Install(i.file.before, entry)
	if err != nil {
		return nil, fmt.Errorf("%s %w", i.target.File, err)
	}
	i.file.after = text
	return &change{Installer: i, result: result, command: entry.Command + " serve"}, nil
}

// Check returns the error that New would return for wrong usage: an unknown client, or one
// without such a file.
func Check(o Options, clients ...string) error {
	for _, client := range clients {
		if _, err := edit.TargetOf(o.Discovery, client, o.Project); err != nil {
			return &console.ExitError{Code: console.ExitUsage, Err: err}
		}
	}
	return nil
}
