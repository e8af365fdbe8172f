package host

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/ostest"
)

func TestProgramIsFoundBesidePATH(t *testing.T) {
	s := systemOf(fstest.MapFS{"usr/sbin/aa-exec": text(""), "sbin/aa-exec": text("")}, nil)
	for name, want := range map[string]string{"aa-exec": "/usr/sbin/aa-exec", "newuidmap": ""} {
		if got := s.Program(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestSystemdIsKnownByItsFolder(t *testing.T) {
	if systemOf(nil, nil).Systemd() || !systemOf(fstest.MapFS{"run/systemd/system/x": text("")}, nil).Systemd() {
		t.Error("want that of sd_booted(3)")
	}
}

// A closed system refuses to show its files.
type closed struct{}

func (closed) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

func TestWhatMayNotBeSeenExists(t *testing.T) {
	if !(System{Files: closed{}}).Exists("run/systemd/system") {
		t.Error("a file behind a closed folder counts as missing")
	}
	if systemOf(nil, nil).Exists("run/systemd/system") {
		t.Error("a missing file exists")
	}
}

// TestFileCapabilitiesAreSeen where they can be set, which takes CAP_SETFCAP.
func TestFileCapabilitiesAreSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "newuidmap")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if hasFileCaps(path) {
		t.Error("a new file has capabilities")
	}
	setuid := append([]byte{1, 0, 0, 2, 1 << unix.CAP_SETUID}, make([]byte, 15)...) // VFS_CAP_REVISION_2, effective
	err := unix.Setxattr(path, "security.capability", setuid, 0)
	if got := hasFileCaps(path); got != (err == nil) {
		t.Errorf("capabilities %t, set with %v", got, err)
	}
}

func TestMemoryAvailableIsThatOfTheHost(t *testing.T) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	if got, total := MemoryAvailable(), Number(b, "MemTotal")<<10; got <= 0 || got > total {
		t.Errorf("%d bytes of %d", got, total)
	}
}

// TestFilesOfTheKernelAreClosed, since watches read them all the time.
func TestFilesOfTheKernelAreClosed(t *testing.T) {
	if _, err := ReadKernelFile("/proc/self/oom_score_adj"); err != nil {
		t.Fatal(err)
	}
	subuid := filepath.Join(t.TempDir(), "subuid")
	if err := os.WriteFile(subuid, []byte("dev:10000:65536\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	readSubIDs(subuid, "dev", 1000, nil)
	WarmCgroupMoves()
	for _, name := range []string{"oom_score_adj", subuid, "cgroup.procs"} {
		if open := ostest.OpenFiles(t, name); len(open) > 0 {
			t.Errorf("still open: %q", open)
		}
	}
}

// TestAllIDsAreThoseOfTheHostsNamespace, by both of the ways to ask.
func TestAllIDsAreThoseOfTheHostsNamespace(t *testing.T) {
	m, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Equal(bytes.Join(bytes.Fields(m), []byte(" ")), []byte("0 0 4294967295"))
	if got := HasAllIDs(); got != want || ThisSystem().InUserNamespace() == want {
		t.Errorf("all ids: %t, of %q", got, m)
	}
}
