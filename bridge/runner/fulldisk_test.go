package runner

import (
	"os/signal"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/ostest"
)

// limitFiles has writing fail in the middle of a file until the test has ended, as it does on a
// full disk.
func limitFiles(t *testing.T) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(unix.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 64 << 10, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
			t.Error(err)
		}
		signal.Reset(unix.SIGXFSZ)
	})
}

// TestHalfAnAnswerIsAnError: it finds no room in memory, and the disk is full.
func TestHalfAnAnswerIsAnError(t *testing.T) {
	dir := t.TempDir()
	a := full(t, dir)
	limitFiles(t)
	h := a.hold(1, textOf(1<<20), nil)
	if h.file != nil || !strings.Contains(string(h.parts[1]), "an answer of 1 MiB cannot be kept until it is read: ") {
		t.Errorf("got %.100s", h.parts)
	}
	if n := a.inFile.Load(); n != 0 {
		t.Errorf("%d bytes are taken", n)
	}
	if open := ostest.OpenFiles(t, dir); len(open) > 0 {
		t.Errorf("%q are open", open)
	}
}
