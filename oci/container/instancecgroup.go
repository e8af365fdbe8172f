package container

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

// An instanceCgroup is the cgroup in which a server makes the cgroups of its sandboxes, in
// every hierarchy. The server keeps it locked in one of them while it runs. The kernel
// releases the lock however the server ends, so a process that gets the lock knows that
// nothing in it is in use or being made, even if the state folder is gone.
type instanceCgroup struct {
	name    string
	lock    *os.File // its folder in the hierarchy of locks
	parents []string // the folder that it is in, in each hierarchy; that of locks is the last
}

// instancePrefix begins the names of such cgroups.
const instancePrefix = "instance-"

// openInstanceCgroup makes one if we make cgroups as directories, after removing those of
// servers that are gone.
func openInstanceCgroup(g host.Cgroup) (*instanceCgroup, error) {
	if g.Driver != host.CgroupFS {
		return nil, nil
	}
	parents, err := cgroupParents(g)
	if err != nil {
		return nil, err
	}
	sweepCgroups(parents)
	return lockInstanceCgroup(parents)
}

// cgroupParents returns the directories of instance cgroups. With version 1, the hierarchy
// with the locks is one that every start needs.
func cgroupParents(g host.Cgroup) ([]string, error) {
	m, err := manager.New(&cgroups.Cgroup{Path: g.Path("x"), Resources: &cgroups.Resources{}})
	if err != nil {
		return nil, fmt.Errorf("looking for our cgroups: %w", err)
	}
	paths := m.GetPaths()
	var locks string
	for _, controller := range []string{"", "devices", "pids", "memory", "cpu"} {
		if path := paths[controller]; path != "" {
			locks = filepath.Dir(path)
			break
		}
	}
	if locks == "" {
		return nil, errors.New("looking for our cgroups: there are none")
	}
	var parents []string
	for _, path := range slices.Sorted(maps.Values(paths)) {
		if dir := filepath.Dir(path); dir != locks && !slices.Contains(parents, dir) {
			parents = append(parents, dir)
		}
	}
	return append(parents, locks), nil
}

// lockInstanceCgroup makes a cgroup under a new name. A sweep may remove it before it is
// locked, so it is used only if it is locked and still exists.
func lockInstanceCgroup(parents []string) (*instanceCgroup, error) {
	locks := parents[len(parents)-1]
	if err := os.MkdirAll(locks, 0o755); err != nil {
		return nil, fmt.Errorf("making our cgroup: %w", err)
	}
	for range 10 {
		name := instancePrefix + NewID()
		dir := filepath.Join(locks, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, fmt.Errorf("making our cgroup: %w", err)
		}
		if lock := lockFolder(dir); lock != nil {
			return &instanceCgroup{name, lock, parents}, nil
		}
	}
	return nil, errors.New("making our cgroup: others remove it each time")
}

// lockFolder locks a folder if it exists and is not locked, and otherwise returns nil.
// Closing the file releases the lock.
func lockFolder(dir string) *os.File {
	f, err := state.TryLock(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW, state.Exclusive)
	if err != nil {
		return nil
	}
	if !state.InPlace(f) {
		f.Close()
		return nil
	}
	return f
}

// sweepCgroups removes the cgroups of instances that are gone, unless they still have
// processes; the next start tries again.
func sweepCgroups(parents []string) {
	names, _ := state.Match(parents[len(parents)-1], instancePrefix+"*")
	for _, dir := range names {
		if lock := lockFolder(dir); lock != nil {
			(&instanceCgroup{filepath.Base(dir), lock, parents}).close()
		}
	}
}

// close removes the cgroup with everything below it, and releases the lock. Its folder in
// the hierarchy with the locks is removed last.
func (c *instanceCgroup) close() {
	if c == nil {
		return
	}
	defer c.lock.Close()
	for _, parent := range c.parents {
		if err := removeCgroups(filepath.Join(parent, c.name), 4); err != nil {
			return
		}
	}
}

// removeCgroups removes a cgroup and those below it, down to a depth. A cgroup with
// processes cannot be removed.
func removeCgroups(dir string, depth int) error {
	entries, err := os.ReadDir(dir)
	if err == nil && depth > 0 {
		for _, e := range entries {
			if e.IsDir() {
				err = errors.Join(err, removeCgroups(filepath.Join(dir, e.Name()), depth-1))
			}
		}
	}
	if err == nil {
		err = os.Remove(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
