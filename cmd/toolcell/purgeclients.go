package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/installer"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/edit"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// uninstall takes toolcell out of the clients' files, and puts moved servers back. It returns what
// has to be kept for those that it could not change: their servers are there, and how to undo it.
func (p *purging) uninstall(ctx context.Context) (keep func(path string) bool) {
	failed := false
	undo, err := p.neededToUndo()
	if err != nil {
		p.fail(err.Error())
	}
	for _, c := range p.clients.files {
		if ctx.Err() != nil {
			failed = true
			break
		}
		change := p.change
		if change.Project = c.project != ""; change.Project {
			change.Discovery.Dir = c.project
		}
		if err := p.uninstallFrom(change, c.in.Client); err != nil {
			failed = true
			p.row.Clients = append(p.row.Clients, &installer.Report{Client: c.in.Client, File: c.in.File, Status: "failed", Error: err.Error()})
			p.fail(c.in.Client + ": " + err.Error())
			if !p.JSON {
				cure := "toolcell uninstall " + c.in.Client
				if c.project != "" {
					cure = "cd " + text.ShellWord(c.project) + " && " + cure + " --project"
				}
				console.Hint(p.Err, cure+" takes it out, of a read-only file with --force; then run purge again")
			}
		}
	}
	if failed {
		return func(path string) bool { return isNeeded(path, undo) }
	}
	for _, b := range p.clients.backups {
		if p.DryRun || slices.ContainsFunc(p.row.Clients, func(r *installer.Report) bool { return r.Lost > 0 && r.Backup == b }) {
			continue
		}
		if err := os.Remove(b); err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.fail(err.Error())
		}
	}
	return func(string) bool { return false }
}

// isNeeded reports whether a file, or something in a folder, is among those that are needed.
func isNeeded(path string, needed []string) bool {
	return slices.ContainsFunc(needed, func(n string) bool { return strings.HasPrefix(path, n) || strings.HasPrefix(n, path+"/") })
}

// maxEntries bounds the entries for toolcell in one file.
const maxEntries = 50

// uninstallFrom takes all entries for toolcell out of a client's file. install makes one, and the user
// may have made others.
func (p *purging) uninstallFrom(change installer.Options, client string) error {
	for range maxEntries {
		done, err := forClient(change, client, (*installer.Installer).Uninstall)
		p.row.Clients = append(p.row.Clients, done...)
		if err != nil || p.DryRun || !installer.Has(change.Discovery, client, change.Project) {
			return err
		}
	}
	return fmt.Errorf("%s has more than %d entries for toolcell", client, maxEntries)
}

// otherFolders returns the state folders that entries in clients name, other than the one that is
// purged.
func (p *purging) otherFolders() (left []string) {
	for _, f := range p.clients.files {
		for _, e := range f.entries {
			if filepath.IsAbs(e.Dir) && filepath.Clean(e.Dir) != filepath.Dir(p.Settings.Dirs.Run) && exists(e.Dir) {
				left = append(left, fmt.Sprintf("left as it is: %s, the state folder that toolcell has in %s; to remove what is in it: toolcell purge --state-dir %s",
					e.Dir, f.in.Title, text.ShellWord(e.Dir)))
			}
		}
	}
	return left
}

// otherEntries returns the entries for toolcell that are left, such as those that Claude Code has for
// single directories.
func (p *purging) otherEntries() (left []string) {
	for _, problem := range clientconfig.Discover(p.change.Discovery).Problems {
		if problem.Skipped && problem.Status == config.StatusSkipped {
			left = append(left, fmt.Sprintf("left as it is: the entry %q in %s: take it out there", problem.Server, problem.Source))
		}
	}
	return left
}

// neededToUndo returns what is needed to put moved servers back later: files, and the beginnings of
// their names.
func (p *purging) neededToUndo() (paths []string, err error) {
	for _, name := range []string{"installs.json", "values.json", "trust.json"} {
		paths = append(paths, filepath.Join(p.Settings.Dirs.State, name))
	}
	changed, err := edit.Journal(p.Settings.Dirs.State).Read()
	for _, record := range changed {
		if record.MovedTo != "" {
			paths = append(paths, record.MovedTo)
		}
	}
	return paths, err
}
