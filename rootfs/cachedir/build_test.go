package cachedir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/ostest"
	"github.com/toolcell/toolcell/internal/state"
)

// TestFailedBuildLeavesNothing: a fault of ours is the error of that folder alone.
func TestFailedBuildLeavesNothing(t *testing.T) {
	c, refused := open(t), errors.New("refused")
	for what, fill := range map[string]func(dir string) error{
		"an error": func(dir string) error { return errors.Join(os.WriteFile(filepath.Join(dir, "f"), nil, 0o600), refused) },
		"a panic":  func(string) error { panic(refused) },
	} {
		err := Build(c.Dir, "sha256-1", fill)
		if _, panicked := errors.AsType[*contain.PanicError](err); !panicked && !errors.Is(err, refused) {
			t.Errorf("%s: got %v", what, err)
		}
		wantNames(t, c.Dir, "locks")
	}
	err := Build(filepath.Join(c.Dir, "none"), "sha256-1", func(string) error { return refused })
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a missing folder: got %v", err)
	}
}

// TestBuildThatCannotBePublishedFails, whether it would be new or replace a damaged one.
func TestBuildThatCannotBePublishedFails(t *testing.T) {
	c := open(t)
	final := filepath.Join(c.Dir, "sha256-1")
	for range 2 {
		err := Build(c.Dir, "sha256-1", os.Remove)
		failed, ok := errors.AsType[*os.LinkError](err)
		if !ok || failed.New != final || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
		if err := os.Mkdir(final, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
}

// TestBuildRemovesWhatKilledOnesLeft, those of its own name only: others may be at work.
func TestBuildRemovesWhatKilledOnesLeft(t *testing.T) {
	c := open(t)
	for _, name := range []string{"sha256-1-234", "sha256-2-345"} {
		if err := os.MkdirAll(filepath.Join(c.Dir, TempPrefix+name, "inner"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := Build(c.Dir, "sha256-1", func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	wantNames(t, c.Dir, TempPrefix+"sha256-2-345", "locks", "sha256-1")
}

func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("there are %q, %v; want %q", got, err, want)
	}
}

// TestFolderIsOnDiskOrItsBuildFails: the entry of its name has to outlast a crash of the host.
func TestFolderIsOnDiskOrItsBuildFails(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // an ordinary user cannot enter what is above it
	if err := os.Chmod(dir, 0o300); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	ostest.Ordinary(t, func() {
		if err := Build(".", "sha256-1", func(string) error { return nil }); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("got %v", err)
		}
	}, ".")
}

// TestFolderStaysWholeIfItsRecordDoes: without its contents it would be taken for complete.
func TestFolderStaysWholeIfItsRecordDoes(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := errors.Join(os.MkdirAll("a/root", 0o700), WriteJSON("a/record.json", 1), os.Chmod("a", 0o500)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod("a", 0o700) })
	ostest.Ordinary(t, func() {
		if err := Remove("a", "record.json"); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("got %v", err)
		}
	}, ".", "a", "a/root", "a/record.json")
	wantNames(t, "a", "record.json", "root")
}

func TestMissingFilesAreSaidToBeMissing(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for what, err := range map[string]error{
		"a list": ReadList(t.Context(), none, new(string)), "a file": ReadJSON(none, new(string)),
	} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWhatIsNoJSONReplacesNothing(t *testing.T) {
	file, got := filepath.Join(t.TempDir(), "file"), ""
	if err := WriteJSON(file, "old"); err != nil {
		t.Fatal(err)
	}
	err := WriteJSON(file, func() {})
	if _, ok := errors.AsType[*json.UnsupportedTypeError](err); !ok {
		t.Errorf("got %v", err)
	}
	if err := ReadJSON(file, &got); err != nil || got != "old" {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestFailedAttemptIsDueAfterAnHour(t *testing.T) {
	file := filepath.Join(t.TempDir(), "failed")
	if Due(file) {
		t.Error("without a failure")
	}
	if err := WriteFile(file, nil); err != nil {
		t.Fatal(err)
	}
	for ago, want := range map[time.Duration]bool{0: false, 59 * time.Minute: false, 61 * time.Minute: true} {
		at := time.Now().Add(-ago)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
		if got := Due(file); got != want {
			t.Errorf("%v after a failure: %v", ago, got)
		}
	}
}

// TestFilesAreClosedAfterUse: a server that runs for months reads them again and again.
func TestFilesAreClosedAfterUse(t *testing.T) {
	c := open(t)
	record := filepath.Join(c.Dir, "sha256-1", "record.json")
	err := Build(c.Dir, "sha256-1", func(dir string) error { return WriteJSON(filepath.Join(dir, "record.json"), "a") })
	if err = errors.Join(err, ReadJSON(record, new(string)), ReadList(t.Context(), record, new(string))); err != nil {
		t.Fatal(err)
	}
	unlock, err := c.Wait(t.Context(), "a", state.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	if open := ostest.OpenFiles(t, c.Dir); len(open) > 0 {
		t.Errorf("%q are open", open)
	}
}
