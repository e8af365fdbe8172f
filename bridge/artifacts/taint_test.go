package artifacts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPrivateReadsAreKeptWithTheFiles, where a later session finds them.
func TestPrivateReadsAreKeptWithTheFiles(t *testing.T) {
	long := slices.Repeat([]string{strings.Repeat("s", 63)}, maxPrivate/64)
	for name, c := range map[string]struct{ reads, want []string }{
		"nothing":           {nil, nil},
		"one server":        {[]string{"mail"}, []string{"mail"}},
		"two":               {[]string{"mail", "files"}, []string{"mail", "files"}},
		"as much as can be": {long, long},
		"more than that":    {append(long, "mail"), []string{"a server"}},
	} {
		run := newRun(t)
		run.SetPrivate(c.reads)
		run.keeps(t, "a.txt", "a")
		left := run.Finish()
		if len(left.Files) != 1 {
			t.Fatalf("%s: %+v", name, left)
		}
		if got := New(run.store.o).Private(left.Files[0].URI); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d reads: %.50q", name, len(got), got)
		}
		if noted := len(entries(t, left.Folder)) > 1; noted != (c.reads != nil) {
			t.Errorf("%s: a note is there: %v", name, noted)
		}
		if c, err := run.store.Read(fileURI(run.id, privateFile)); err == nil {
			t.Errorf("%s: a client can read the note: %+v", name, c)
		}
	}
}

// TestUnreadableNoteCountsAsPrivate: better one question too many.
func TestUnreadableNoteCountsAsPrivate(t *testing.T) {
	run := newRun(t)
	run.keeps(t, "a.txt", "a")
	left := run.Finish()
	if err := os.Mkdir(filepath.Join(left.Folder, privateFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := run.store.Private(left.Files[0].URI); !slices.Equal(got, []string{"a server"}) {
		t.Errorf("%q", got)
	}
}

func TestFilesThatAreNotThereHaveNothingPrivate(t *testing.T) {
	run := newRun(t)
	run.SetPrivate([]string{"mail"})
	run.keeps(t, "a.txt", "a")
	run.Finish()
	for _, uri := range []string{"", "file:///etc/passwd", fileURI("0123456789", "a.txt"), fileURI(run.id, "b.txt")} {
		if got := run.store.Private(uri); got != nil {
			t.Errorf("%q: %q", uri, got)
		}
	}
}
