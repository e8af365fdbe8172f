package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/footprint"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/program"
	"github.com/toolcell/toolcell/oci/homes"
	"github.com/toolcell/toolcell/oci/host"
)

// places returns the folders in which toolcell keeps files with these settings.
func places(s settings.Settings) []footprint.Place {
	var all []footprint.Place
	add := func(dir string, role footprint.Role) {
		up, standard := madeAbove(dir, s)
		all = append(all, footprint.Place{Dir: dir, Role: role, Whole: standard, Up: up})
	}
	add(s.Dirs.Cache, footprint.Cache)
	add(s.Dirs.State, footprint.State)
	all[len(all)-1].Owned = newOwnedHomes(s)
	for _, dir := range s.RunDirs() {
		add(dir, footprint.Run)
	}
	for _, dir := range host.IDFolders(os.Geteuid()) {
		all = append(all, footprint.Place{Dir: dir, Role: footprint.IDs})
	}
	if dir := settings.ConfigDir(); dir != "" {
		add(dir, footprint.Config)
	}
	if dir := program.Folder(); dir != "" {
		add(dir, footprint.Data)
	}
	return all
}

// madeAbove returns how many folders above one toolcell makes if they are missing, and whether the
// folder is at its standard place and so toolcell's alone. Elsewhere the user has chosen a folder, by
// --state-dir or a variable of XDG: toolcell in it may be something else, such as a clone.
func madeAbove(dir string, s settings.Settings) (up int, standard bool) {
	if s.StateDir != "" && filepath.Dir(dir) == filepath.Dir(s.Dirs.Run) {
		return 1, false
	}
	if dir == fmt.Sprintf("/run/user/%d/toolcell", os.Geteuid()) {
		return 0, true
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return 0, false
	}
	switch rest, _ := strings.CutPrefix(dir, home+"/"); rest {
	case ".cache/toolcell", ".config/toolcell":
		return 1, true
	case ".local/state/toolcell", ".local/share/toolcell":
		return 2, true
	case ".local/state/toolcell/run":
		return 0, true
	}
	return 0, false
}

// ownedHomes are the homes of servers, which belong to IDs of theirs. The host is looked at only if
// there are any.
type ownedHomes struct {
	store func() (*homes.Store, error)
}

func newOwnedHomes(s settings.Settings) ownedHomes {
	return ownedHomes{sync.OnceValues(func() (store *homes.Store, err error) {
		defer contain.Error("probing the host", &err)
		h, err := host.Probe(s.UID, s.GID)
		return homes.Open(s.Dirs.Homes(), h), err
	})}
}

// Measure returns what one takes.
func (o ownedHomes) Measure(ctx context.Context, path string) (bytes, files int64, err error) {
	store, err := o.store()
	if err != nil {
		return 0, 0, err
	}
	use, err := store.SizeIn(ctx, path)
	return use.Bytes, use.Files, err
}

// Remove removes one.
func (o ownedHomes) Remove(ctx context.Context, path string) error {
	store, err := o.store()
	if err != nil {
		return err
	}
	return store.RemoveIn(ctx, path)
}
