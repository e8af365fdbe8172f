package packages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/ostest"
	"github.com/toolcell/toolcell/internal/state"
)

// storedWheel returns a package whose wheel a store has, and a job of the store.
func storedWheel(t *testing.T) (j *job, x *fakeIndex, p lockedPackage) {
	t.Helper()
	s := newStore(t)
	wheel := makeWheel(t, "a", wheelFile{name: "a.py", content: "x"})
	x = newIndex(t, map[string][]byte{"a-1.0-py3-none-any.whl": wheel})
	j, err := s.begin(x.request("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	p = lockedPackage{Name: "a", Version: "1.0", Wheels: []lockedWheel{{URL: x.URL + "/files/a-1.0-py3-none-any.whl", Size: int64(len(wheel)), wheelHashes: wheelHashes{sha(wheel)}}}}
	if err := j.ensureWheel(t.Context(), p, newBudget(1<<20), func(int64) {}); err != nil {
		t.Fatal(err)
	}
	return j, x, p
}

// TestWheelThatIsHereIsNotFetched, and counts as progress all the same.
func TestWheelThatIsHereIsNotFetched(t *testing.T) {
	j, x, p := storedWheel(t)
	before, arrived := x.count(), int64(0)
	if err := j.ensureWheel(t.Context(), p, newBudget(1<<20), func(bytes int64) { arrived += bytes }); err != nil {
		t.Fatal(err)
	}
	if x.count() > before || arrived != p.Wheels[0].Size {
		t.Errorf("%d requests, %d bytes of progress, want %d", x.count()-before, arrived, p.Wheels[0].Size)
	}
	if open := ostest.OpenFiles(t, j.wheels.dir); len(open) > 0 {
		t.Errorf("%q are open", open)
	}
}

// TestWheelOfAnotherFormatIsUnpackedAgain, and one whose record is damaged.
func TestWheelOfAnotherFormatIsUnpackedAgain(t *testing.T) {
	for _, record := range []string{`{"format": 0, "bytes": 1, "files": 1}`, `{"format": 2, "bytes": 1, "files": 1}`, `{"format": 1, "files": 1, "bytes": "x"}`} {
		j, x, p := storedWheel(t)
		before := x.count()
		if err := os.WriteFile(filepath.Join(j.wheels.path(wheelName(p.Wheels[0].SHA256)), "wheel.json"), []byte(record), 0o644); err != nil {
			t.Fatal(err)
		}
		b := newBudget(1 << 20)
		if err := j.ensureWheel(t.Context(), p, b, func(int64) {}); err != nil || x.count() != before+1 {
			t.Errorf("%s: %v, %d requests", record, err, x.count()-before)
		}
		if left := maxFiles - b.files.Load(); left != 3 {
			t.Errorf("%s: it has %d files", record, left)
		}
	}
}

func TestWheelWithoutItsFilesIsFetchedAgain(t *testing.T) {
	j, x, p := storedWheel(t)
	before, files := x.count(), j.wheels.files(wheelName(p.Wheels[0].SHA256))
	if err := os.RemoveAll(files); err != nil {
		t.Fatal(err)
	}
	if err := j.ensureWheel(t.Context(), p, newBudget(1<<20), func(int64) {}); err != nil || x.count() != before+1 {
		t.Errorf("got %v, %d requests", err, x.count()-before)
	}
	if _, err := os.Stat(files); err != nil {
		t.Error(err)
	}
}

func TestWaitForAWheelEndsWithItsContext(t *testing.T) {
	j, _, p := storedWheel(t)
	unlock, err := openStore(t, j.dir).cache.Wait(t.Context(), wheelLock(wheelName(p.Wheels[0].SHA256)), state.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	err = j.ensureWheel(ctx, p, newBudget(1<<20), func(int64) {})
	if !errors.Is(err, stopped) || !strings.Contains(err.Error(), "waiting for another process") {
		t.Errorf("got %v", err)
	}
}

func TestFilesOfASetAreBounded(t *testing.T) {
	b := newBudget(1 << 20)
	if err := b.spend(0, maxFiles); err != nil {
		t.Errorf("the most: %v", err)
	}
	var wrong *RequestError
	want := fmt.Sprintf("the packages have more than %d files", maxFiles)
	if err := b.spend(0, 1); !errors.As(err, &wrong) || err.Error() != want {
		t.Errorf("one more: got %v, want %s", err, want)
	}
}

// TestLinksThatCannotBeMadeAreAnError: a set would lack files.
func TestLinksThatCannotBeMadeAreAnError(t *testing.T) {
	from, missing := t.TempDir(), filepath.Join(t.TempDir(), "missing")
	if err := os.WriteFile(filepath.Join(from, "a.py"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := linkTree(t.Context(), missing, t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("from a folder that is gone: %v", err)
	}
	if err := linkTree(t.Context(), from, missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("to a folder that is gone: %v", err)
	}
}

// TestRequestThatEndsBlamesNoPackage, although it ends in the middle of one.
func TestRequestThatEndsBlamesNoPackage(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	set, err := s.Ensure(t.Context(), x.request("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := s.removeSet(set.ID); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	set, err = s.Ensure(ctx, x.request("a"), func(p Progress) {
		if p.Total > 0 && p.Done == p.Total {
			cancel(errors.New("stopped"))
		}
	})
	if set != nil || err == nil || err.Error() != "stopped" {
		t.Errorf("got %+v, %v", set, err)
	}
}
