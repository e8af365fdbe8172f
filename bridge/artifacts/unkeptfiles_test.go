package artifacts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// lostNotes returns the notes of a run that has left files of these names, relative
// to /workspace.
func lostNotes(t *testing.T, names ...string) []string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range append(names, "out/kept.txt") {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mknod(path, unix.S_IFREG|0o600, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	run := New(Options{Dir: filepath.Join(t.TempDir(), "runs")}).NewCollector(t.Context(), newRunID())
	t.Cleanup(run.Discard)
	run.NoteLost(NewWorkspace(folder, []string{"/workspace/mounted", "/elsewhere"}))
	return run.Finish().Notes
}

func TestFilesThatAreGoneAreNamed(t *testing.T) {
	many := make([]string, maxOutEntries+1)
	for i := range many {
		many[i] = fmt.Sprintf("f%04d.txt", i)
	}
	const keep = "; write to /workspace/out to keep files"
	for name, c := range map[string]struct {
		files []string
		want  string // contained; empty: no note
	}{
		"none":               {nil, ""},
		"one":                {[]string{"chart.png"}, "chart.png in /workspace is gone" + keep},
		"two":                {[]string{"b.csv", "a.csv"}, "a.csv and 1 more file in /workspace are gone" + keep},
		"three":              {[]string{"data/a.csv", "chart.png", "data/b.csv"}, "chart.png and 2 more files in /workspace are gone" + keep},
		"deep before flat":   {[]string{"a/deep.csv", "z.csv"}, "z.csv and 1 more file in /workspace are gone" + keep},
		"in a folder":        {[]string{"data/deep/a.csv"}, "data/deep/a.csv in /workspace is gone" + keep},
		"another out":        {[]string{"data/out/a.csv"}, "data/out/a.csv in /workspace is gone" + keep},
		"of libraries":       {[]string{".config/matplotlib/x", ".cache/fontconfig/y", "__pycache__/a.pyc", "m/__pycache__/b.pyc", "fontconfig/x", "model_cache/x", "Cache/y", ".history", "mounted/a.txt"}, ""},
		"of tools":           {[]string{"pip-cache/x", "old.pyc", "a/__pycache__/x", "m/Caches/y"}, ""},
		"more than are read": {many, " and at least "},
		"a name that lies":   {[]string{"a\x1b[31m\n-note: b"}, "a_[31m_-note: b in /workspace is gone" + keep},
		"a long name":        {[]string{strings.Repeat("n", 250)}, "nnn in /workspace is gone" + keep},
	} {
		t.Run(name, func(t *testing.T) {
			got := lostNotes(t, c.files...)
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want) || len(got[0]) > 300) {
				t.Errorf("notes %q, want %q", got, c.want)
			}
		})
	}
}

// TestNoFolderForFilesIsNoNote: of a server that keeps no files the advice is wrong.
func TestNoFolderForFilesIsNoNote(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	run := New(Options{}).NewCollector(t.Context(), newRunID())
	defer run.Discard()
	run.NoteLost(NewWorkspace(folder, []string{"/workspace/mounted", "/elsewhere"}))
	if got := run.Finish().Notes; !slices.Equal(got, nil) {
		t.Errorf("notes %q", got)
	}
}
