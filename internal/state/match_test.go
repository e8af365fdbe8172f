package state

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestMatchTakesTheFolderAsItIs: another one may have a name that it would match as a pattern.
func TestMatchTakesTheFolderAsItIs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"x[1]/sha256-b", "x[1]/sha256-a", "x[1]/other", "x1/sha256-c", "[/sha256-d"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string][]string{"x[1]": {"x[1]/sha256-a", "x[1]/sha256-b"}, "[": {"[/sha256-d"}, "missing": nil} {
		got, err := Match(filepath.Join(dir, name), "sha256-*")
		for i := range want {
			want[i] = filepath.Join(dir, want[i])
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	if _, err := Match(dir, "["); !errors.Is(err, filepath.ErrBadPattern) {
		t.Errorf("got %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Match(file, "*"); got != nil || err != nil {
		t.Errorf("in place of a file: got %v, %v", got, err)
	}
}
