package packages

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/state"
)

// reversed turns the order of a lock's packages around.
func reversed(lock []byte) []byte {
	parts := bytes.Split(lock, []byte("[[packages]]\n"))
	slices.Reverse(parts[1:])
	return bytes.Join(parts, []byte("[[packages]]\n"))
}

// TestOrderOfALockDoesNotMatter: the same packages are one set, and its list is sorted.
func TestOrderOfALockDoesNotMatter(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	var ids []string
	for _, order := range []func([]byte) []byte{reversed, bytes.Clone} {
		r := x.request("a", "b")
		r.Anew = true
		r.Run = func(ctx context.Context, c Command) (Output, error) {
			out, err := x.run(ctx, c)
			if c.Input != nil {
				out.Stdout = order(out.Stdout)
			}
			return out, err
		}
		set, err := s.Ensure(t.Context(), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(set.Packages) != 2 || set.Packages[0].Name != "a" || set.Packages[1].Name != "b" {
			t.Errorf("got %+v", set.Packages)
		}
		ids = append(ids, set.ID)
	}
	if ids[0] != ids[1] {
		t.Errorf("got %q", ids)
	}
}

// TestOtherWheelsAreAnotherSet, though the image and the names are the same.
func TestOtherWheelsAreAnotherSet(t *testing.T) {
	s, ids := newStore(t), map[string]string{}
	for _, content := range []string{"old", "new"} {
		x := newIndex(t, map[string][]byte{"a-1.0-py3-none-any.whl": makeWheel(t, "a", wheelFile{name: "a.py", content: content})})
		set, err := s.Ensure(t.Context(), x.request("a"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(set.Dir, "a.py")); err != nil || string(got) != content {
			t.Errorf("got %q, %v; want %q", got, err, content)
		}
		ids[set.ID] = content
	}
	if len(ids) != 2 {
		t.Errorf("got %q", ids)
	}
}

// TestDamagedSetsAreMadeAgain, since code would lack modules or see those of another set.
func TestDamagedSetsAreMadeAgain(t *testing.T) {
	write := func(text string) func(s *Store, set *Set) error {
		return func(s *Store, set *Set) error {
			return os.WriteFile(s.sets.record(set.ID), []byte(strings.ReplaceAll(text, "ID", set.ID)), 0o644)
		}
	}
	for name, damage := range map[string]func(s *Store, set *Set) error{
		"an older format": write(`{"format": 0, "id": "ID"}`),
		"a newer format":  write(`{"format": 2, "id": "ID"}`),
		"of another set":  write(`{"format": 1, "id": "sha256-0"}`),
		"no record":       func(s *Store, set *Set) error { return os.Remove(s.sets.record(set.ID)) },
		"no folder":       func(_ *Store, set *Set) error { return os.RemoveAll(set.Dir) },
		"a file": func(_ *Store, set *Set) error {
			return errors.Join(os.RemoveAll(set.Dir), os.WriteFile(set.Dir, nil, 0o755))
		},
		"a link":     func(_ *Store, set *Set) error { return errors.Join(os.RemoveAll(set.Dir), os.Symlink("/etc", set.Dir)) },
		"unreadable": func(_ *Store, set *Set) error { return os.Chmod(set.Dir, 0o700) },
	} {
		x, s := newIndex(t, twoWheels(t)), newStore(t)
		r := x.request("a")
		set, err := s.Ensure(t.Context(), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if err := damage(s, set); err != nil {
			t.Fatal(err)
		}
		if all, err := s.List(); len(all) != 0 || err != nil || s.Has(r) {
			t.Errorf("%s: got %+v, %v", name, all, err)
		}
		if s.cache.InUse(set.ID) {
			t.Errorf("%s: it is kept from being removed", name)
		}
		if again, err := s.Ensure(t.Context(), r, nil); err != nil || !exists(filepath.Join(again.Dir, "a/__init__.py")) {
			t.Errorf("%s: again: %+v, %v", name, again, err)
		}
	}
}

func TestSetThatIsBeingRemovedIsNotUsed(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	r := x.request("a")
	set, err := s.Ensure(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	unlock, err := openStore(t, s.dir).cache.LockUnused(set.ID)
	if err != nil {
		t.Fatal(err)
	}
	if s.Has(r) {
		t.Error("it is used while it is removed")
	}
	if unlock(); !s.Has(r) {
		t.Error("it is not used afterwards")
	}
}

// TestUseOfASetIsNoted, by which Prune knows what has not been used lately.
func TestUseOfASetIsNoted(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	r := x.request("a")
	set, err := s.Ensure(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, away := range []time.Duration{-30 * 24 * time.Hour, 30 * 24 * time.Hour} {
		then := time.Now().Add(away)
		if err := os.Chtimes(s.sets.record(set.ID), then, then); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Ensure(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
		if all, err := s.List(); err != nil || len(all) != 1 || time.Since(all[0].LastUsed).Abs() > 24*time.Hour {
			t.Errorf("%s: got %+v, %v", away, all, err)
		}
	}
}

// TestProgressAddsUp to all bytes of the wheels, also of those that are here.
func TestProgressAddsUp(t *testing.T) {
	wheels := twoWheels(t)
	x, s := newIndex(t, wheels), newStore(t)
	total := int64(0)
	for _, wheel := range wheels {
		total += int64(len(wheel))
	}
	for _, anew := range []bool{false, true} {
		var texts []string
		var last Progress
		set, err := s.Ensure(t.Context(), x.request("a>=1", "b"), func(p Progress) {
			if texts = append(texts, p.Text); p.Total > 0 {
				last = p
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := (Progress{total, total, "fetching 2 packages"}); last != want {
			t.Errorf("got %+v, want %+v", last, want)
		}
		want := []string{"fetching 2 packages", "putting together 2 packages"}
		if !anew {
			want = slices.Insert(want, 0, "choosing versions of a>=1, b")
		}
		if got := slices.Compact(texts); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		s.Close()
		if err := s.removeSet(set.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSetThatIsHereServesOtherRequests, with no need of its wheels or of a comparison.
func TestSetThatIsHereServesOtherRequests(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	first, err := s.Ensure(t.Context(), x.request("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, fetched := x.request("a>=1"), x.count()
	r.Run = func(ctx context.Context, c Command) (Output, error) {
		if slices.Contains(c.Args, conflictsScript) {
			t.Error("it is compared again")
		}
		return x.run(ctx, c)
	}
	if set, err := s.Ensure(t.Context(), r, nil); err != nil || set.ID != first.ID || x.count() != fetched {
		t.Errorf("got %+v, %v, %d requests", set, err, x.count()-fetched)
	}
}

// TestFileInPlaceOfAnotherPackagesFolderIsAnError, whichever comes first.
func TestFileInPlaceOfAnotherPackagesFolderIsAnError(t *testing.T) {
	for want, names := range map[string][2]string{
		"adding b: thing is a file of another package":   {"thing", "thing/__init__.py"},
		"adding b: thing is a folder of another package": {"thing/__init__.py", "thing"},
	} {
		x, s := newIndex(t, map[string][]byte{
			"a-1.0-py3-none-any.whl": makeWheel(t, "a", wheelFile{name: names[0]}),
			"b-1.0-py3-none-any.whl": makeWheel(t, "b", wheelFile{name: names[1]}),
		}), newStore(t)
		if set, err := s.Ensure(t.Context(), x.request("a", "b"), nil); err == nil || err.Error() != want {
			t.Errorf("got %+v, %v, want %s", set, err, want)
		}
	}
}

func TestWaitForPackagesBeingRemovedEnds(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	lock, err := ParseLock(t.Context(), x.lock())
	if err != nil {
		t.Fatal(err)
	}
	lock.choose()
	j, err := s.begin(x.request("a", "b"), nil)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := openStore(t, s.dir).cache.Wait(t.Context(), wheelsLock, state.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if set, err := j.install(ctx, lock); !errors.Is(err, stopped) {
		t.Errorf("got %+v, %v", set, err)
	}
	if x.count() > 0 {
		t.Error("wheels are fetched while others are removed")
	}
}

// TestSetThatAnotherProcessMadeMeanwhileStays: a sandbox may see it already.
func TestSetThatAnotherProcessMadeMeanwhileStays(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	other := openStore(t, s.dir)
	var made os.FileInfo
	r := x.request("a>=1")
	r.Run = func(ctx context.Context, c Command) (Output, error) {
		if slices.Contains(c.Args, conflictsScript) {
			set, err := other.Ensure(ctx, x.request("a"), nil)
			if err == nil {
				made, err = os.Stat(set.Dir)
			}
			if err != nil {
				t.Error(err)
			}
		}
		return x.run(ctx, c)
	}
	set, err := s.Ensure(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := os.Stat(set.Dir); err != nil || !os.SameFile(made, now) {
		t.Errorf("it was replaced, %v", err)
	}
}

func TestSetThatCannotBeLockedIsAnError(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	r := x.request("a")
	set, err := s.Ensure(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	lock := filepath.Join(s.dir, "locks", set.ID)
	if err := errors.Join(s.removeSet(set.ID), os.RemoveAll(lock), os.Mkdir(lock, 0o700)); err != nil {
		t.Fatal(err)
	}
	if set, err := s.Ensure(t.Context(), r, nil); err == nil || !strings.Contains(err.Error(), "waiting for another process") {
		t.Errorf("got %+v, %v", set, err)
	}
}
