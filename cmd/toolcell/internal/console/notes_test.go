package console

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

func TestWarningsAreNotes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(NewNoteHandler(out)).With("server", "a")
	log.Info("nothing to tell")
	log.WithGroup("g").Warn("leaving out a tool of file", "file", "file", "err", errors.New("it is\x1b[2J\nlong"))
	out.Close()
	const want = "toolcell: note: leaving out a tool of file; server a: it is[2J long\n"
	if got, _ := os.ReadFile(file); string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
