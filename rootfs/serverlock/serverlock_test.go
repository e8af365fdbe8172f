package serverlock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestVersionsStayUntilTheEntryAsksForOthers(t *testing.T) {
	f := File{Path: filepath.Join(t.TempDir(), "server", "lock"), Digest: DigestOf([]string{"a"})}
	made := 0
	get := func(f File, want string, times int) {
		t.Helper()
		got, err := f.Ensure(t.Context(), func(context.Context) ([]byte, error) { made++; return []byte(want), nil })
		if string(got) != want || err != nil || made != times {
			t.Errorf("%q, %v, after %d", got, err, made)
		}
	}
	get(f, "one\ntwo", 1)
	get(f, "one\ntwo", 1)
	f.Digest = DigestOf([]string{"a", "b"})
	get(f, "other", 2)
	if err := os.WriteFile(f.Path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Ensure(t.Context(), func(context.Context) ([]byte, error) { return nil, nil }); err == nil {
		t.Error("a file that is no lock was taken for one, or replaced")
	}
}

func TestFailureKeepsNothing(t *testing.T) {
	f := File{Path: filepath.Join(t.TempDir(), "lock")}
	want := errors.New("no index")
	if _, err := f.Ensure(t.Context(), func(context.Context) ([]byte, error) { return nil, want }); !errors.Is(err, want) {
		t.Error(err)
	}
	if lock, _, err := f.Read(); lock != nil || err != nil {
		t.Errorf("%q, %v", lock, err)
	}
}

func TestLockIsMadeOnce(t *testing.T) {
	f := File{Path: filepath.Join(t.TempDir(), "lock"), Digest: DigestOf(nil)}
	var made atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if lock, err := f.Ensure(t.Context(), func(context.Context) ([]byte, error) { made.Add(1); return []byte("x"), nil }); string(lock) != "x" || err != nil {
				t.Errorf("%q, %v", lock, err)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
}

// TestUpdateThatCameTooLate: what the user has looked at is no longer what would change.
func TestUpdateThatCameTooLate(t *testing.T) {
	f := File{Path: filepath.Join(t.TempDir(), "lock"), Digest: DigestOf(nil)}
	if err := f.Replace(t.Context(), nil, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := f.Replace(t.Context(), nil, []byte("two")); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if err := f.Replace(t.Context(), []byte("one"), []byte("two")); err != nil {
		t.Error(err)
	}
	if lock, fits, err := f.Read(); string(lock) != "two" || !fits || err != nil {
		t.Errorf("%q, %t, %v", lock, fits, err)
	}
}
