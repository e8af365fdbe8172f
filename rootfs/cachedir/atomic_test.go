package cachedir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/internal/state"
)

// TestFolderIsWholeOrNotThere: a folder gets its name only once it is filled, and replaces
// one that was damaged.
func TestFolderIsWholeOrNotThere(t *testing.T) {
	c := open(t)
	fill := func(text string) error {
		return Build(c.Dir, "sha256-1", func(dir string) error {
			if text == "" {
				return errors.New("no")
			}
			return WriteJSON(filepath.Join(dir, "record.json"), text)
		})
	}
	record := filepath.Join(c.Dir, "sha256-1", "record.json")
	if err := fill(""); err == nil {
		t.Error("a folder that could not be filled is no error")
	}
	for _, text := range []string{"a", "b"} {
		var small, list string
		err := errors.Join(fill(text), ReadJSON(record, &small), ReadList(t.Context(), record, &list))
		if err != nil || small != text || list != text {
			t.Errorf("got %q and %q, %v; want %q", small, list, err, text)
		}
	}
	if left := findUnfinished(c.Dir); len(left) > 0 {
		t.Errorf("unfinished: %v", left)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ReadList(ended, record, new(string)); !errors.Is(err, context.Canceled) {
		t.Errorf("reading goes on after its context: %v", err)
	}
	if err := Remove(filepath.Dir(record), "record.json"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Dir(record)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there after its removal: %v", err)
	}
}

// TestSweepLeavesWhatIsBeingBuilt: an unfinished folder goes once its lock is free.
func TestSweepLeavesWhatIsBeingBuilt(t *testing.T) {
	c := open(t)
	unfinished, other := filepath.Join(c.Dir, TempPrefix+"sha256-1-2345"), filepath.Join(c.Dir, "sha256-1-2345")
	if err := errors.Join(os.Mkdir(unfinished, 0o700), os.Mkdir(other, 0o700)); err != nil {
		t.Fatal(err)
	}
	unlock, err := c.Wait(t.Context(), "layer-sha256-1", state.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	c.Sweep("", "layer-")
	if _, err := os.Lstat(unfinished); err != nil {
		t.Errorf("it is gone while its lock is held: %v", err)
	}
	if again, err := c.IfFree("layer-sha256-1"); again != nil || err != nil {
		t.Errorf("a lock that is held is free: %v", err)
	}
	unlock()
	c.Sweep("", "layer-")
	if _, err := os.Lstat(unfinished); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Lstat(other); err != nil {
		t.Errorf("what is not unfinished is gone: %v", err)
	}
}
