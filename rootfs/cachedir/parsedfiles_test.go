package cachedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestRecentFileIsReadAgainOnceItWasReplaced(t *testing.T) {
	parsed := 0
	recent := NewParsedFiles(func(content []byte) (string, error) {
		parsed++
		if string(content) == "bad" {
			return "", errors.New("bad")
		}
		return string(content), nil
	})
	file := filepath.Join(t.TempDir(), "file")
	expect := func(want string, times int) {
		t.Helper()
		if got, err := recent.Read(file); got != want || err != nil || parsed != times {
			t.Errorf("read %q (%v), parsed %d times; want %q, %d", got, err, parsed, want, times)
		}
	}
	if _, err := recent.Read(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	write := func(content string) {
		t.Helper()
		if err := WriteFile(file, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	expect("one", 1)
	expect("one", 1)
	write("two") // of the same size
	expect("two", 2)
	expect("two", 2)
	write("bad")
	for range 2 {
		if _, err := recent.Read(file); err == nil {
			t.Error("what cannot be parsed was read")
		}
	}
	write("two")
	expect("two", 5)
	// Another program of the user's may write into it.
	if err := errors.Join(os.WriteFile(file, []byte("six"), 0o600), os.Chtimes(file, time.Time{}, time.Now().Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	expect("six", 6)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got, err := recent.Read(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that was removed: %q, %v", got, err)
	}
}

func TestWhatCannotBeReadIsNotParsed(t *testing.T) {
	recent := NewParsedFiles(func([]byte) (string, error) { return "parsed", nil })
	if got, err := recent.Read(t.TempDir()); got != "" || !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a folder: %q, %v", got, err)
	}
}

func TestRecentKeepsAFewFiles(t *testing.T) {
	recent, dir := NewParsedFiles(func(content []byte) (string, error) { return string(content), nil }), t.TempDir()
	for n := range 5 * maxParsed {
		file := filepath.Join(dir, fmt.Sprint(n))
		if err := WriteFile(file, fmt.Append(nil, n)); err != nil {
			t.Fatal(err)
		}
		if got, err := recent.Read(file); got != fmt.Sprint(n) || err != nil {
			t.Errorf("%d: %q, %v", n, got, err)
		}
		if len(recent.kept) > maxParsed {
			t.Fatalf("%d files are kept", len(recent.kept))
		}
	}
}
