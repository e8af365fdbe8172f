package console

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/terminaltest"
)

// TestMessagesKeepWordsWhole in terminals of all widths, and lines in files.
func TestMessagesKeepWordsWhole(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	const text = "the sandbox has none of the user's files: one of the user's servers may read them 日本語 の テキスト\n" +
		`    raise ValueError("a line of a quotation that is rather long")` + "\nend"
	for width := uint16(20); width <= 140; width += 3 {
		ours, theirs := terminaltest.Open(t, width)
		Note(theirs, text)
		theirs.Close()
		lines := readLines(ours)
		for _, line := range lines {
			if got := uniseg.StringWidth(line); got > int(width) && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("in %d columns a line of %d: %q", width, got, line)
			}
		}
		if got, want := strings.Join(strings.Fields(strings.Join(lines, " ")), " "), strings.Join(strings.Fields("toolcell: note: "+text), " "); got != want {
			t.Errorf("in %d columns: %q", width, got)
		}
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	Note(file, text)
	if got, _ := os.ReadFile(file.Name()); string(got) != "toolcell: note: "+text+"\n" {
		t.Errorf("a file has %q", got)
	}
	const long = "see https://example.com/a/long/address/that/is/copied for it"
	if got, want := wrapText(long, 6, 24), "see\n  https://example.com/a/long/address/that/is/copied\n  for it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWarningsAreNotes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(&NoteHandler{Out: out}).With("server", "a")
	log.Info("nothing to tell")
	log.WithGroup("g").Warn("leaving out a tool of file", "file", "file", "err", errors.New("it is\x1b[2J\nlong"))
	out.Close()
	const want = "toolcell: note: leaving out a tool of file; server a: it is[2J long\n"
	if got, _ := os.ReadFile(file); string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
