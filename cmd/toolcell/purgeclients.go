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

// A clientFile is a client's file that toolcell has an entry in, or has changed.
type clientFile struct {
	client, file string
	project      string // folder of the project whose file it is; "" for the user's own
}

// installedFiles returns the files of clients that toolcell is in, the backups that it has kept of
// them, and the changed files whose client it does not find.
func installedFiles(o installer.Options) (files []clientFile, backups, unknown []string, err error) {
	clients, others, err := installer.Installed(o.Discovery, o.Settings)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, client := range clients {
		target, err := edit.TargetOf(o.Discovery, client, false)
		if err != nil {
			return nil, nil, nil, err
		}
		files = append(files, clientFile{client: client, file: target.File})
	}
	slices.Sort(others)
	for _, file := range others {
		if f, ok := projectFileOf(o, file); ok {
			files = append(files, f)
		} else {
			unknown = append(unknown, file)
		}
	}
	changed, err := edit.Journal(o.Settings.Dirs.State).Read()
	if err != nil {
		return nil, nil, nil, err
	}
	for file, record := range changed {
		if slices.Contains(unknown, file) {
			continue
		}
		if info, err := os.Lstat(record.Backup); err == nil && !info.IsDir() && strings.HasSuffix(record.Backup, ".before-toolcell") {
			backups = append(backups, record.Backup)
		}
	}
	slices.Sort(backups)
	return files, slices.Compact(backups), unknown, nil
}

// projectFileOf finds the client whose file in a project this is.
func projectFileOf(o installer.Options, file string) (f clientFile, ok bool) {
	discovery := o.Discovery
	discovery.Dir = filepath.Dir(file)
	for range 3 { // .kiro/settings/mcp.json
		for _, client := range installer.ClientNames() {
			target, err := edit.TargetOf(discovery, client, true)
			if err == nil && target.File == file {
				return clientFile{client, file, discovery.Dir}, true
			}
		}
		discovery.Dir = filepath.Dir(discovery.Dir)
	}
	return f, false
}

// uninstall takes toolcell out of the clients' files, and puts moved servers back. It returns what
// has to be kept for those that it could not change: their servers are there, and how to undo it.
func (p *purging) uninstall(ctx context.Context) (keep func(path string) bool) {
	failed := false
	undo, err := p.neededToUndo()
	if err != nil {
		p.fail(err.Error())
	}
	for _, c := range p.clients {
		if ctx.Err() != nil {
			failed = true
			break
		}
		change := p.change
		if change.Project = c.project != ""; change.Project {
			change.Discovery.Dir = c.project
		}
		if err := p.uninstallFrom(change, c.client); err != nil {
			failed = true
			p.row.Clients = append(p.row.Clients, &installer.Report{Client: c.client, File: c.file, Status: "failed", Error: err.Error()})
			p.fail(c.client + ": " + err.Error())
			if !p.JSON {
				console.Hint(p.Err, "toolcell uninstall "+c.client+" takes it out, of a read-only file with --force; then run purge again")
			}
		}
	}
	if failed {
		return func(path string) bool { return isNeeded(path, undo) }
	}
	for _, b := range p.backups {
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
	for _, e := range installer.SelfEntries(p.change.Discovery) {
		if filepath.IsAbs(e.Dir) && filepath.Clean(e.Dir) != filepath.Dir(p.Settings.Dirs.Run) && exists(e.Dir) {
			left = append(left, fmt.Sprintf("left as it is: %s, the state folder that toolcell has in %s; to remove what is in it: toolcell purge --state-dir %s",
				e.Dir, e.Title, text.ShellWord(e.Dir)))
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
