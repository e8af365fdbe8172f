package runner

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolcell/toolcell/internal/contain"
)

// isFree checks that nothing of a run's account is taken.
func (a *account) isFree(t *testing.T, after string) {
	t.Helper()
	inMemory := a.own.TryAcquire(ownHeld) && a.share.TryAcquire(maxRunHeld) && a.shared.TryAcquire(maxHeld)
	if !inMemory || a.inFile.Load() != 0 {
		t.Fatalf("after %s, room was not given back", after)
	}
	a.own.Release(ownHeld)
	a.share.Release(maxRunHeld)
	a.shared.Release(maxHeld)
}

// full is the account of a run that has no room in memory.
func full(t *testing.T, dir string) *account {
	a := NewBudget(dir).newAccount()
	if !a.own.TryAcquire(ownHeld) || !a.share.TryAcquire(maxRunHeld) {
		t.Fatal("the account is not empty")
	}
	return a
}

// foundTwice has each frame find room in both places before it takes one, and as many of the
// two panic then.
func foundTwice(t *testing.T) (panics *atomic.Int64) {
	panics = &atomic.Int64{}
	found := make(chan struct{})
	contain.Inject(t, func(point string) bool {
		if point != "waiting for room" {
			return false
		}
		select {
		case found <- struct{}{}:
		case <-found:
		}
		return panics.Add(-1) >= 0
	})
	return panics
}

// TestFrameTakesRoomInOnePlace, though there is room for it in both.
func TestFrameTakesRoomInOnePlace(t *testing.T) {
	foundTwice(t)
	a := NewBudget("").newAccount()
	release, err := a.acquire(t.Context(), ownHeld/2)
	if err != nil {
		t.Fatal(err)
	}
	release()
	a.isFree(t, "a frame")
}

// TestPanicOfWaitingForRoomIsAnError of the run that waits, if it has found none otherwise.
func TestPanicOfWaitingForRoomIsAnError(t *testing.T) {
	panics := foundTwice(t)
	for range 30 { // which of them comes first is open
		for n := range int64(3) {
			panics.Store(n)
			_, err := NewBudget("").newAccount().acquire(t.Context(), ownHeld)
			if none := n == 2; errors.Is(err, contain.ErrInternal) != none || none != (err != nil) {
				t.Fatalf("after %d panics: %v", n, err)
			}
		}
	}
}

// TestFrameMayTakeTheRunsOwnPart if other runs have all else.
func TestFrameMayTakeTheRunsOwnPart(t *testing.T) {
	a := NewBudget("").newAccount()
	if !a.shared.TryAcquire(maxHeld) {
		t.Fatal("the budget is not empty")
	}
	release, err := a.acquire(t.Context(), ownHeld)
	a.shared.Release(maxHeld)
	if err != nil {
		t.Fatal(err)
	}
	release()
	a.isFree(t, "a frame that took it")
}

// TestWhatFindsNoRoomTakesNone: the room is taken by this run or by others.
func TestWhatFindsNoRoomTakesNone(t *testing.T) {
	const size = ownHeld + 1
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := NewBudget("").newAccount()
	for name, of := range map[string]struct {
		taken interface {
			TryAcquire(n int64) bool
			Release(n int64)
		}
		n int64
	}{
		"the run":    {a.share, maxRunHeld},
		"other runs": {a.shared, maxHeld},
	} {
		if !of.taken.TryAcquire(of.n) {
			t.Fatalf("%s: not empty", name)
		}
		if _, err := a.acquireShared(ctx, size); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: a frame got %v", name, err)
		}
		if _, ok := a.tryAcquire(size); ok {
			t.Errorf("%s: an answer found room", name)
		}
		of.taken.Release(of.n)
		a.isFree(t, "looking for the room of "+name)
	}
}

// TestAnswerInAFileTakesRoomUntilItIsSent, and its descriptor.
func TestAnswerInAFileTakesRoomUntilItIsSent(t *testing.T) {
	a := full(t, t.TempDir())
	h := a.hold(1, textOf(1<<20), nil)
	if h.file == nil || a.inFile.Load() < 1<<20 {
		t.Fatalf("it is not in a file: %.80s", h.parts)
	}
	h.release()
	if _, err := h.file.Stat(); !errors.Is(err, os.ErrClosed) || a.inFile.Load() != 0 {
		t.Errorf("%d bytes are still taken; its file: %v", a.inFile.Load(), err)
	}
}

// TestFilesOfAnswersAreBounded.
func TestFilesOfAnswersAreBounded(t *testing.T) {
	a := full(t, t.TempDir())
	a.inFile.Store(maxInFile - 1<<20)
	if h := a.hold(1, textOf(1<<20), nil); h.file != nil || !strings.Contains(string(h.parts[1]), "fewer calls at once") {
		t.Errorf("one that is just too large: %.80s", h.parts)
	}
	h := a.hold(1, textOf(1<<20-100), nil) // with the head of its frame
	if h.file == nil {
		t.Fatalf("one that fits: %.80s", h.parts)
	}
	h.release()
}

// TestAnswersThatCannotBeInFilesAreErrors, and count no longer.
func TestAnswersThatCannotBeInFilesAreErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{
		"there is no folder": "", "a file is in the way": file, "there can be no files": "/proc",
	} {
		a := full(t, dir)
		h := a.hold(1, textOf(1<<20), nil)
		if h.file != nil || !strings.Contains(string(h.parts[0]), `"error"`) ||
			!strings.Contains(string(h.parts[1]), "an answer of 1 MiB cannot be kept until it is read: ") {
			t.Errorf("%s: %.80s", name, h.parts)
		}
		if n := a.inFile.Load(); n != 0 {
			t.Errorf("%s: %d bytes are taken", name, n)
		}
	}
}

// TestAnswerOfNothingIsNull, not half a frame.
func TestAnswerOfNothingIsNull(t *testing.T) {
	for _, nothing := range []json.RawMessage{nil, {}} {
		h := NewBudget("").newAccount().hold(7, nothing, nil)
		var frame []byte
		for _, part := range h.parts {
			frame = append(frame, part...)
		}
		if got := string(frame[4:]); got != `{"type":"reply","id":7,"result":null}` || int(frame[3]) != len(got) {
			t.Errorf("got %q", frame)
		}
	}
}
