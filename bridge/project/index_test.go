package project

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/ostest"
)

// An endingContext ends once it was asked so often whether it has.
type endingContext struct {
	context.Context
	left atomic.Int32
}

func (c *endingContext) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func endingAfter(t *testing.T, asked int32) *endingContext {
	c := &endingContext{Context: t.Context()}
	c.left.Store(asked)
	return c
}

// TestLookEndsWithItsRun at the next folder or batch of names, and what it has read is kept.
func TestLookEndsWithItsRun(t *testing.T) {
	var names []string
	for n := range 2*batch + 10 {
		names = append(names, fmt.Sprintf("many/%d", n))
	}
	for n := range 20 {
		names = append(names, fmt.Sprintf("%d/.env", n))
	}
	dir := tree(t, append(names, ".env -> many/7")...)
	p := New(Options{})
	counting := endingAfter(t, 1<<20)
	if _, err := p.Find(counting, dir); err != nil {
		t.Fatal(err)
	}
	// 22 folders, one batch in each and two more in one, a link, and Find itself.
	if asked := 1<<20 - counting.left.Load(); asked < 22+22+2+1 {
		t.Errorf("it was asked %d times whether the run goes on", asked)
	}
	p = New(Options{})
	for asked := range int32(23) {
		if _, err := p.Find(endingAfter(t, asked), dir); !errors.Is(err, context.Canceled) {
			t.Fatalf("ended after %d: %v", asked, err)
		}
		p.index.top.settle() // as if the last change were long ago
	}
	if p.tooLarge != nil {
		t.Errorf("it counts as too large: %v", p.tooLarge)
	}
	if got := find(t, p, dir); len(got) != 21 || p.index.entries != len(names)+20+2 {
		t.Errorf("in the end: %d hidden, %d entries", len(got), p.index.entries)
	}
}

// TestRunThatEndsDoesNotWaitForAnothersLook.
func TestRunThatEndsDoesNotWaitForAnothersLook(t *testing.T) {
	p := New(Options{})
	p.turn <- struct{}{}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("the user has stopped it")
	cancel(stopped)
	if _, err := p.Find(ctx, "/nothing"); err != stopped { //nolint:errorlint // it is the very same
		t.Errorf("got %v", err)
	}
}

// TestAllFilesCountInEachLook, also those in folders that are not read again.
func TestAllFilesCountInEachLook(t *testing.T) {
	dir := tree(t, "a/1", "a/2", "b/3", "b/c/4")
	x := newIndex(dir)
	for n := range 3 {
		if _, err := x.look(t.Context()); err != nil || x.entries != 7 {
			t.Fatalf("look %d: %d entries, %v", n, x.entries, err)
		}
		x.top.settle()
	}
	x.top.inside["a"].entries = maxEntries
	if _, err := x.look(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 1000000 files") {
		t.Errorf("too many in a folder that was not read again: %v", err)
	}
}

// TestTimeIsUpWithinOneFolder, too.
func TestTimeIsUpWithinOneFolder(t *testing.T) {
	dir := tree(t)
	for n := range batch + 1 {
		add(t, dir, fmt.Sprint(n))
	}
	x := newIndex(dir)
	if err := x.open(); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(x.fd)
	x.until = time.Now().Add(-time.Second)
	if _, err := x.refresh(t.Context(), x.top, "."); err == nil || !strings.Contains(err.Error(), "takes longer than 10s") {
		t.Errorf("a large folder: %v", err)
	}
	if !strings.Contains(x.tooLarge("").Error(), "--mounts (TOOLCELL_MOUNTS)") {
		t.Error("it names no setting to use instead")
	}
}

// TestNoLinkIsFollowed by the kernel, where it has openat2 and where it has not.
func TestNoLinkIsFollowed(t *testing.T) {
	dir := tree(t, "a/b/c/file", "a/link -> b", "end -> a/b", "out -> /etc")
	for _, stepwise := range []bool{false, true} {
		x := newIndex(dir)
		x.stepwise = stepwise
		if err := x.open(); err != nil {
			t.Fatal(err)
		}
		for at, want := range map[string][]error{
			".": {nil}, "a": {nil}, "a/b/c": {nil}, "a/b/c/file": {unix.ENOTDIR}, "none/x": {unix.ENOENT},
			"end": {unix.ENOTDIR, unix.ELOOP}, "a/link/c": {unix.ENOTDIR, unix.ELOOP}, "out/ssl": {unix.ENOTDIR, unix.ELOOP},
		} {
			fd, err := x.openIn(at, unix.O_PATH|unix.O_DIRECTORY)
			if !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
				t.Errorf("stepwise %t, %s: %v", stepwise, at, err)
			}
			if err == nil {
				unix.Close(fd)
			}
		}
		unix.Close(x.fd)
		if open := ostest.OpenFiles(t, dir); len(open) > 0 {
			t.Errorf("left open: %q", open)
		}
	}
}

// TestFolderThatBecomesALinkIsNotEntered: it may lead anywhere on the host.
func TestFolderThatBecomesALinkIsNotEntered(t *testing.T) {
	for _, stepwise := range []bool{false, true} {
		dir := tree(t, "p/a/b/x.key", "other/b/y.key")
		x := newIndex(filepath.Join(dir, "p"))
		x.stepwise = stepwise
		if got, err := x.look(t.Context()); err != nil || !slices.Equal(got, []string{"a/b/x.key"}) {
			t.Fatalf("hidden are %q, %v", got, err)
		}
		a := x.top.inside["a"]
		if err := errors.Join(os.RemoveAll(filepath.Join(dir, "p/a")), os.Symlink("../other", filepath.Join(dir, "p/a"))); err != nil {
			t.Fatal(err)
		}
		if err := x.open(); err != nil {
			t.Fatal(err)
		}
		x.hidden = nil
		// As if it became a link just after its own visit.
		if err := x.visit(t.Context(), a.inside["b"], "a/b"); err != nil || len(x.hidden) > 0 {
			t.Errorf("stepwise %t: hidden are %q, %v", stepwise, x.hidden, err)
		}
		unix.Close(x.fd)
		// So with the folder itself.
		if err := errors.Join(os.Rename(filepath.Join(dir, "p"), filepath.Join(dir, "q")), os.Symlink("q", filepath.Join(dir, "p"))); err != nil {
			t.Fatal(err)
		}
		if _, err := x.look(t.Context()); err == nil || !strings.Contains(err.Error(), "is not shown at /project") {
			t.Errorf("stepwise %t: the folder itself: %v", stepwise, err)
		}
	}
}

// TestOldKernelsFindTheSame: they have no openat2.
func TestOldKernelsFindTheSame(t *testing.T) {
	dir := tree(t, "a/b/.env", "a/.git/config", "conf/prod", "one -> conf", ".env -> one/prod", "x.pem")
	x := newIndex(dir)
	x.stepwise = true
	want := []string{"a/.git/config", "a/b/.env", "conf/prod", "x.pem"}
	if got, err := x.look(t.Context()); err != nil || !slices.Equal(got, want) || !x.stepwise {
		t.Errorf("hidden are %q, %v", got, err)
	}
}
