package container

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/pid1"
	"golang.org/x/sys/unix"
)

// A tree is a process with a child in a cgroup of version 2, as a sandbox is.
type tree struct {
	Sandbox
	cgroups.Manager
	pid int
	dir string
}

func (s tree) PID() int                         { return s.pid }
func (s tree) Cgroup() (cgroups.Manager, error) { return s, nil }
func (s tree) Path(string) string               { return s.dir }
func (s tree) Destroy() error                   { return nil }

// newTree starts a shell that runs a command in a child, in a cgroup of its own, and
// returns when there is the child: one that comes later is not moved with the others.
func newTree(t *testing.T, command string) tree {
	t.Helper()
	root := "/sys/fs/cgroup"
	if !cgroups.IsCgroup2UnifiedMode() {
		root = "/sys/fs/cgroup/unified"
	}
	dir := filepath.Join(root, fmt.Sprint("toolcell-test-", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and cgroup v2: ", err)
	}
	t.Cleanup(func() { _ = RetryRemove(func() error { return cgroups.RemovePath(dir) }) })
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	c := exec.Command("/bin/sh", "-c", "(echo; "+command+") & wait")
	begun, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.SysProcAttr = &unix.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
		_ = c.Wait()
	})
	if _, err := begun.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return tree{pid: c.Process.Pid, dir: dir}
}

// newFreezer returns a freezer of the tree that uses its cgroup, however long that takes:
// there is no pid 1 to fall back to.
func (s tree) newFreezer() *Freezer {
	f := NewFreezer(s, pid1.Lifeline{}, host.Cgroup{Driver: host.CgroupFS, V2: true})
	f.timeout = time.Minute
	return f
}

// procs returns the processes of the tree's own cgroup, and isFrozen whether one below
// it is frozen.
func (s tree) procs(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, "cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (s tree) isFrozen() bool {
	b, _ := os.ReadFile(filepath.Join(s.dir, "program", "cgroup.events"))
	return strings.Contains(string(b), "frozen 1")
}

func (s tree) awaitFrozen(t *testing.T, want bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); s.isFrozen() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("frozen: %t, want %t", !want, want)
		}
	}
}

// TestFreezerOfCgroup2 stops all but the first process, also what is started between
// two freezes.
func TestFreezerOfCgroup2(t *testing.T) {
	s := newTree(t, "while :; do sleep 0.01 & done")
	f := s.newFreezer()
	for range 3 {
		if err := f.Freeze(); err != nil {
			t.Fatal(err)
		}
		s.awaitFrozen(t, true)
		if procs := s.procs(t); procs != fmt.Sprintln(s.pid) {
			t.Errorf("%q are not frozen; the first process is %d", procs, s.pid)
		}
		if err := f.Thaw(); err != nil {
			t.Fatal(err)
		}
		s.awaitFrozen(t, false)
	}
}

// TestFreezerCostsNothingBeforeItsUse: most runs never ask.
func TestFreezerCostsNothingBeforeItsUse(t *testing.T) {
	s := newTree(t, "sleep 600")
	s.newFreezer()
	if _, err := os.Stat(filepath.Join(s.dir, "program")); !os.IsNotExist(err) {
		t.Errorf("there is a cgroup: %v", err)
	}
}

// TestFrozenCgroup2CanBeKilled, and the cgroup that its Freezer made be removed with
// that of the sandbox.
func TestFrozenCgroup2CanBeKilled(t *testing.T) {
	s := newTree(t, "sleep 600")
	if err := s.newFreezer().Freeze(); err != nil {
		t.Fatal(err)
	}
	s.awaitFrozen(t, true)
	if err := os.WriteFile(filepath.Join(s.dir, "cgroup.kill"), []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	if err := RetryRemove(func() error { return cgroups.RemovePath(s.dir) }); err != nil {
		t.Error(err)
	}
}
