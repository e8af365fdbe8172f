package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/ostest"
)

// openSlots opens what all processes of the user share. The ids are none that a host has.
func openSlots(t *testing.T, start, size int64) *IDSlots {
	t.Helper()
	s := OpenIDSlots(IDRange{1<<40 + start + int64(os.Getpid())<<8, size}, os.Geteuid())
	t.Cleanup(func() { s.Close() })
	return s
}

// TestProcessesOfAUserShareTheirSlots wherever they were started.
func TestProcessesOfAUserShareTheirSlots(t *testing.T) {
	one, other := openSlots(t, 0, 2), openSlots(t, 0, 2)
	one.Acquire()
	one.Acquire()
	if notes := one.Notes(); len(notes) > 0 {
		t.Errorf("notes: %q", notes)
	}
	other.Acquire()
	if notes := strings.Join(other.Notes(), ""); !strings.Contains(notes, "all 2 user IDs") {
		t.Errorf("notes of the other: %q", notes)
	}
}

// TestSlotsBeginAnywhere, for processes that cannot share.
func TestSlotsBeginAnywhere(t *testing.T) {
	const many = 1 << 40
	one, other := openSlots(t, many, many), openSlots(t, many, many)
	if between := other.Acquire().ID - one.Acquire().ID; between >= -1 && between <= 1 {
		t.Errorf("two processes began %d IDs apart", between)
	}
}

// TestSlotIsReleasedOnce: its ID may be that of another sandbox by then.
func TestSlotIsReleasedOnce(t *testing.T) {
	s := openSlots(t, 0, 1)
	first := s.Acquire()
	first.Release()
	second := s.Acquire()
	if notes := s.Notes(); second.ID != first.ID || len(notes) > 0 {
		t.Errorf("got %d, want the released %d; notes %q", second.ID, first.ID, notes)
	}
	first.Release()
	s.Acquire()
	if len(s.Notes()) != 1 {
		t.Error("an ID in use was given out as if it were not")
	}
}

func TestSlotsCloseTwice(t *testing.T) {
	s := openSlots(t, 0, 1)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWhySlotsAreNotShared is told, for each folder that was tried.
func TestWhySlotsAreNotShared(t *testing.T) {
	inTmp := "/tmp/toolcell-" + strconv.Itoa(nobody)
	t.Cleanup(func() { _ = os.Remove(inTmp) })
	s := OpenIDSlots(IDRange{1 << 40, 1}, nobody)
	t.Cleanup(func() { s.Close() })
	notes := strings.Join(s.Notes(), "\n")
	for _, want := range []string{"may get the same user ID", "/run/user/" + strconv.Itoa(nobody) + "/toolcell", inTmp} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes lack %q: %s", want, notes)
		}
	}
}

// TestFolderOfLocksIsNamedWithWhatIsWrong, and nothing but the file stays open.
func TestFolderOfLocksIsNamedWithWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]fs.PathError{
		filepath.Join(dir, "missing/toolcell"): {Op: "mkdir", Err: unix.ENOENT},
		filepath.Join(dir, "file"):             {Op: "open", Err: unix.ENOTDIR},
	} {
		if filepath.Base(path) == "file" {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := openIn(path, os.Geteuid())
		if e, ok := errors.AsType[*fs.PathError](err); !ok || e.Op != want.Op || !errors.Is(e, want.Err) || e.Path != path {
			t.Errorf("%s: %v, want %s: %v", path, err, want.Op, want.Err)
		}
	}
	own := filepath.Join(dir, "toolcell")
	f, err := openIn(own, os.Geteuid())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if open := ostest.OpenFiles(t, own); len(open) != 1 || open[0] != filepath.Join(own, "uids") {
		t.Errorf("open: %q", open)
	}
}
