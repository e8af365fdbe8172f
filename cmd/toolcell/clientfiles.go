package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/installer"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/edit"
)

// clientFiles are the files of clients in which toolcell is: what purge takes it out of, and status
// shows.
type clientFiles struct {
	files      []clientFile
	backups    []string           // that toolcell has kept of them
	unknown    []string           // changed files that belong to no known client
	unreadable []installer.Client // clients whose file cannot be read
}

// A clientFile is a client's file that has an entry for toolcell, or that toolcell has changed.
type clientFile struct {
	in      installer.Client
	project string           // folder of the project whose file it is; "" for the user's own
	entries []edit.SelfEntry // those that start toolcell themselves and are switched on
}

// has reports whether there is an entry, also one that is switched off or starts toolcell by another
// program.
func (f clientFile) has() bool { return f.in.Status == "installed" }

// findClientFiles looks at the user's own files of all clients, and at the files of projects that
// toolcell has changed.
func findClientFiles(o clientconfig.Options, s settings.Settings) (found clientFiles, err error) {
	clients, others, err := installer.Installed(o, s)
	if err != nil {
		return found, err
	}
	for _, client := range clients {
		f, err := newClientFile(o, client, "")
		if err != nil {
			return found, err
		}
		found.files = append(found.files, f)
	}
	slices.Sort(others)
	for _, file := range others {
		if f, ok := projectFileOf(o, file); ok {
			found.files = append(found.files, f)
		} else {
			found.unknown = append(found.unknown, file)
		}
	}
	for _, c := range installer.Clients(o) {
		if c.Status == "unreadable" && c.Found && !slices.Contains(clients, c.Client) {
			found.unreadable = append(found.unreadable, c)
		}
	}
	found.backups, err = backupsOf(s, found.unknown)
	return found, err
}

// newClientFile reads the user's file of a client, or that of a project.
func newClientFile(o clientconfig.Options, client, project string) (f clientFile, err error) {
	if f.project = project; project != "" {
		o.Dir = project
	}
	f.in, f.entries, err = installer.Look(o, client, project != "")
	return f, err
}

// projectFileOf finds the client whose file in a project this is.
func projectFileOf(o clientconfig.Options, file string) (f clientFile, ok bool) {
	project := filepath.Dir(file)
	for range 3 { // .kiro/settings/mcp.json
		o.Dir = project
		for _, client := range installer.ClientNames() {
			target, err := edit.TargetOf(o, client, true)
			if err == nil && target.File == file {
				f, err = newClientFile(o, client, project)
				return f, err == nil
			}
		}
		project = filepath.Dir(project)
	}
	return f, false
}

// backupsOf returns the backups of the files that toolcell has changed, but for some.
func backupsOf(s settings.Settings, but []string) (backups []string, err error) {
	changed, err := edit.Journal(s.Dirs.State).Read()
	if err != nil {
		return nil, err
	}
	for file, record := range changed {
		if slices.Contains(but, file) {
			continue
		}
		if info, err := os.Lstat(record.Backup); err == nil && !info.IsDir() && strings.HasSuffix(record.Backup, ".before-toolcell") {
			backups = append(backups, record.Backup)
		}
	}
	slices.Sort(backups)
	return slices.Compact(backups), nil
}

// notes name the files that purge leaves alone because it cannot tell whose they are.
func (f clientFiles) notes() (all []string) {
	for _, file := range f.unknown {
		all = append(all, "toolcell is in "+file+", which belongs to no client that it knows: take its entry out there")
	}
	return all
}
