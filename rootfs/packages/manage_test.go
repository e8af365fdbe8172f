package packages

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/cachedir"
)

// putSet adds an empty set that was last used so long ago.
func (s *Store) putSet(t *testing.T, id string, ago time.Duration) {
	t.Helper()
	then := time.Now().Add(-ago)
	err := os.MkdirAll(filepath.Join(s.sets.path(id), "packages"), 0o755)
	err = errors.Join(err, cachedir.WriteJSON(s.sets.record(id), Set{Format: setFormat, ID: id}))
	if err = errors.Join(err, os.Chtimes(s.sets.record(id), then, then)); err != nil {
		t.Fatal(err)
	}
}

// ids lists those of sets.
func ids(sets []Set) string {
	var all []string
	for _, set := range sets {
		all = append(all, set.ID)
	}
	return strings.Join(all, " ")
}

// TestSetsUsedLastAreFirst, of those that are here and of those that were removed.
func TestSetsUsedLastAreFirst(t *testing.T) {
	s := newStore(t)
	for _, c := range []struct {
		a, b time.Duration
		want string
	}{
		{2 * time.Hour, time.Hour, "sha256-b sha256-a"},
		{time.Hour, 2 * time.Hour, "sha256-a sha256-b"},
	} {
		s.putSet(t, "sha256-a", c.a)
		s.putSet(t, "sha256-b", c.b)
		if all, err := s.List(); err != nil || ids(all) != c.want {
			t.Errorf("listed %s, %v, want %s", ids(all), err, c.want)
		}
		if removed, _, err := s.Prune(0); err != nil || ids(removed) != c.want {
			t.Errorf("removed %s, %v, want %s", ids(removed), err, c.want)
		}
	}
}

func TestSetsAreFoundByTheBeginningOfTheirID(t *testing.T) {
	s := newStore(t)
	const none = "there is no set of packages"
	if set, err := s.Find(""); err == nil || !strings.Contains(err.Error(), none) {
		t.Errorf("in an empty store: got %+v, %v", set, err)
	}
	s.putSet(t, "sha256-abc1", 0)
	if set, err := s.Find(""); err == nil || !strings.Contains(err.Error(), none) {
		t.Errorf("the only one without an ID: got %+v, %v", set, err)
	}
	s.putSet(t, "sha256-abd2", time.Hour)
	for id, want := range map[string]string{
		"abc": "sha256-abc1", "abd": "sha256-abd2", "abd2": "sha256-abd2",
		"sha256-abc": "sha256-abc1", "sha256-abd2": "sha256-abd2",
		"ab": `"ab" begins the IDs of several sets`, "sha256-ab": `"ab" begins the IDs of several sets`,
		"b": none, "abc12": none, "": none, "sha256-": none,
	} {
		set, err := s.Find(id)
		switch {
		case err != nil && !strings.HasPrefix(err.Error(), want), err == nil && set.ID != want:
			t.Errorf("%q: got %+v, %v, want %s", id, set, err, want)
		case err == nil && set.Dir != filepath.Join(s.sets.path(want), "packages"):
			t.Errorf("%q: it is in %s", id, set.Dir)
		}
	}
}

// TestPruneSaysWhatItCannotRemove, and removes the others.
func TestPruneSaysWhatItCannotRemove(t *testing.T) {
	s := newStore(t)
	s.putSet(t, "sha256-a", time.Hour)
	s.putSet(t, "sha256-b", time.Hour)
	if err := os.Mkdir(filepath.Join(s.dir, "locks", "sha256-a"), 0o700); err != nil {
		t.Fatal(err)
	}
	removed, _, err := s.Prune(0)
	if err == nil || !strings.Contains(err.Error(), "locking sha256-a") || ids(removed) != "sha256-b" {
		t.Errorf("got %s, %v", ids(removed), err)
	}
}

// TestPruneLeavesWheelsWhileASetIsMade: they may be of that set.
func TestPruneLeavesWheelsWhileASetIsMade(t *testing.T) {
	j, _, p := storedWheel(t)
	wheel := j.wheels.path(wheelName(p.Wheels[0].SHA256))
	unlock, err := openStore(t, j.dir).cache.Wait(t.Context(), wheelsLock, state.Shared)
	if err != nil {
		t.Fatal(err)
	}
	if _, freed, err := j.Prune(0); freed != 0 || err != nil || !exists(wheel) {
		t.Errorf("meanwhile: freed %d, %v", freed, err)
	}
	unlock()
	if _, freed, err := j.Prune(0); freed == 0 || err != nil || exists(wheel) {
		t.Errorf("afterwards: freed %d, %v", freed, err)
	}
}

// TestPrunePassesOverRequestsThatCannotBeRead, as when another process forgets them first.
func TestPrunePassesOverRequestsThatCannotBeRead(t *testing.T) {
	s := newStore(t)
	if err := os.Symlink(filepath.Join(s.dir, "gone"), s.knownFile("sha256-a")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Prune(0); err != nil {
		t.Error(err)
	}
}
