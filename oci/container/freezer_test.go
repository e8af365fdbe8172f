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

// newTree starts a shell with a child in a cgroup of its own.
func newTree(t *testing.T) tree {
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
	c := exec.Command("/bin/sh", "-c", "sleep 600 & wait")
	c.SysProcAttr = &unix.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
		_ = c.Wait()
	})
	return tree{pid: c.Process.Pid, dir: dir}
}

// TestFreezerOfCgroup2 stops all but the first process, and lets it be killed.
func TestFreezerOfCgroup2(t *testing.T) {
	s := newTree(t)
	f := NewFreezer(s, pid1.Lifeline{}, host.Cgroup{Driver: host.CgroupFS, V2: true})
	if f.state == "" {
		t.Fatal("it uses no cgroup")
	}
	frozen := func(dir string) bool {
		b, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(b), "frozen 1")
	}
	program := filepath.Dir(f.state)
	await := func(want bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); frozen(program) != want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("frozen: %t, want %t", !want, want)
			}
		}
	}
	for range 2 {
		if err := f.Freeze(); err != nil {
			t.Fatal(err)
		}
		await(true)
		if procs, err := os.ReadFile(filepath.Join(s.dir, "cgroup.procs")); err != nil || string(procs) != fmt.Sprintln(s.pid) || frozen(s.dir) {
			t.Errorf("beside it are %q, %v", procs, err)
		}
		if err := f.Thaw(); err != nil {
			t.Fatal(err)
		}
		await(false)
	}
}
