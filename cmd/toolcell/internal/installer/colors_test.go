package installer

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/terminaltest"
)

// TestColorsOfADiff: on a terminal the lines that are added are green and those
// that are removed are red; elsewhere, and where the user wants no colors, the
// text is the same without them.
func TestColorsOfADiff(t *testing.T) {
	const plain = "--- f\n+++ f\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n"
	const colored = "\x1b[1m--- f\x1b[0m\n\x1b[1m+++ f\x1b[0m\n@@ -1,3 +1,3 @@\n 1\n\x1b[1;31m-2\x1b[0m\n\x1b[32m+two\x1b[0m\n 3\n"
	show := func(w *os.File) {
		t.Helper()
		file := &editedFile{path: "f", before: []byte("1\n2\n3\n"), after: []byte("1\ntwo\n3\n")}
		(&change{Installer: &Installer{file: file}}).show(w)
	}
	for name, tt := range map[string]struct{ term, noColor, want string }{
		"terminal":        {"xterm", "", colored},
		"NO_COLOR":        {"xterm", "1", plain},
		"a dumb terminal": {"dumb", "", plain},
		"no TERM":         {"", "", plain},
	} {
		t.Setenv("TERM", tt.term)
		t.Setenv("NO_COLOR", tt.noColor)
		ours, theirs := terminaltest.Open(t, 80)
		show(theirs)
		// A terminal gives one line or several at a time.
		want := strings.ReplaceAll(tt.want, "\n", "\r\n")
		screen := make([]byte, len(want))
		if n, err := io.ReadFull(ours, screen); string(screen[:n]) != want {
			t.Errorf("%s: got %q, %v, want %q", name, screen[:n], err, want)
		}
		theirs.Close()
	}
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	file, err := os.Create(filepath.Join(t.TempDir(), "diff"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	show(file)
	if got, err := os.ReadFile(file.Name()); string(got) != plain {
		t.Errorf("in a file: got %q, %v, want %q", got, err, plain)
	}
}
