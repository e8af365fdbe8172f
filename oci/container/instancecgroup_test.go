package container

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/toolcell/toolcell/oci/host"
)

// hierarchies makes folders as cgroups of two hierarchies would be.
func hierarchies(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	parents := []string{filepath.Join(dir, "memory", "toolcell"), filepath.Join(dir, "pids", "toolcell")}
	for _, p := range parents {
		if err := os.MkdirAll(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return parents
}

// put makes a folder below an instance's in every hierarchy.
func (c *instanceCgroup) put(t *testing.T, name string) {
	t.Helper()
	for _, p := range c.parents {
		if err := os.MkdirAll(filepath.Join(p, c.name, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func present(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// TestCgroupsOfTheDeadAreRemoved, whatever has become of the state folder, and no others.
func TestCgroupsOfTheDeadAreRemoved(t *testing.T) {
	parents := hierarchies(t)
	lives, err1 := lockInstanceCgroup(parents)
	dead, err2 := lockInstanceCgroup(parents)
	used, err3 := lockInstanceCgroup(parents)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*instanceCgroup{lives, dead, used} {
		c.put(t, "0123456789abcdef/program")
	}
	others := filepath.Join(parents[0], "0123456789abcdef")
	if err := os.Mkdir(others, 0o755); err != nil {
		t.Fatal(err)
	}
	// A file stands for a process, with which a cgroup cannot be removed either.
	process := filepath.Join(parents[0], used.name, "0123456789abcdef", "process")
	if err := os.WriteFile(process, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dead.lock.Close() // as the kernel does
	used.lock.Close()
	sweepCgroups(parents)
	for _, p := range parents {
		if !present(filepath.Join(p, lives.name, "0123456789abcdef", "program")) {
			t.Error("one in use was removed")
		}
		if present(filepath.Join(p, dead.name)) {
			t.Error("one of a dead server is left")
		}
	}
	if !present(others) || !present(process) || !present(filepath.Join(parents[1], used.name)) {
		t.Error("what is not ours, or has a process, was removed")
	}
	if err := os.Remove(process); err != nil {
		t.Fatal(err)
	}
	sweepCgroups(parents)
	if present(filepath.Join(parents[0], used.name)) || present(filepath.Join(parents[1], used.name)) {
		t.Error("what had a process is left once it has none")
	}
	lives.close()
	if present(filepath.Join(parents[0], lives.name)) || present(filepath.Join(parents[1], lives.name)) {
		t.Error("a server that ends leaves its own")
	}
}

// TestCgroupsBeingMadeAreNotSwept: servers start and end at once, and what one has is
// never removed by another.
func TestCgroupsBeingMadeAreNotSwept(t *testing.T) {
	parents := hierarchies(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				sweepCgroups(parents)
				c, err := lockInstanceCgroup(parents)
				if err != nil {
					t.Error(err)
					return
				}
				for _, p := range parents {
					dir := filepath.Join(p, c.name)
					if err := os.MkdirAll(filepath.Join(dir, "x"), 0o755); err != nil {
						t.Error(err)
					}
				}
				sweepCgroups(parents)
				for _, p := range parents {
					if !present(filepath.Join(p, c.name, "x")) {
						t.Errorf("%s was removed while in use", c.name)
					}
				}
				c.close()
			}
		})
	}
	all.Wait()
	for _, p := range parents {
		if left, _ := os.ReadDir(p); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// TestInstanceCgroupOnThisHost locks in the kernel's own file system.
func TestInstanceCgroupOnThisHost(t *testing.T) {
	h, err := host.Probe(65534, 65534)
	if err != nil || h.Cgroup.Driver != host.CgroupFS {
		t.Skipf("no cgroups can be made here: %+v, %v", h.Cgroup, err)
	}
	c, err := openInstanceCgroup(h.Cgroup)
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(c.parents[len(c.parents)-1], c.name)
	sweepCgroups(c.parents)
	if !present(at) {
		t.Error("one in use was removed")
	}
	c.lock.Close()
	if c, err = openInstanceCgroup(h.Cgroup); err != nil || present(at) {
		t.Errorf("one of a dead server is left: %v", err)
	}
	c.close()
}
