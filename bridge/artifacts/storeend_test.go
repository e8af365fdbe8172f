package artifacts

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/bridge/imaging"
	"github.com/toolcell/toolcell/internal/ostest"
)

// A heldPicture ends its run when it is read, and then is slow.
type heldPicture struct {
	endRun func()
	goOn   chan struct{}
}

func (p heldPicture) ReadAt([]byte, int64) (int, error) {
	p.endRun()
	<-p.goOn
	return 0, io.EOF
}

// TestStoreEndsAfterItsDecoders: one still works for a run that has ended.
func TestStoreEndsAfterItsDecoders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Pictures: imaging.Limits{Time: time.Hour}})
		ctx, cancel := context.WithCancel(t.Context())
		picture := heldPicture{cancel, make(chan struct{})}
		if _, err := s.decoders.NewRenderer().Render(ctx, picture); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		closed := false
		go func() {
			s.Close()
			closed = true
		}()
		if synctest.Wait(); closed {
			t.Error("it is closed before")
		}
		close(picture.goOn)
		if synctest.Wait(); !closed {
			t.Error("it is not closed after")
		}
	})
}

// TestRunThatCannotBeRemoved goes all the same, as clients see it, and is logged if there
// is a log.
func TestRunThatCannotBeRemoved(t *testing.T) {
	t.Chdir(t.TempDir()) // another user cannot enter what is above it
	var logged bytes.Buffer
	for name, log := range map[string]*slog.Logger{"no log": nil, "a log": slog.New(slog.NewTextHandler(&logged, nil))} {
		s := New(Options{Dir: name, Limits: Limits{Age: time.Hour}, Log: log})
		run := filepath.Join(name, putRun(t, s, 2*time.Hour, 1))
		if err := os.Chmod(run, 0o500); err != nil {
			t.Fatal(err)
		}
		ostest.Ordinary(t, func() { s.Clean(time.Now()) }, name, run)
		left := runsIn(t, s)
		for _, folder := range left {
			if err := os.Chmod(filepath.Join(s.o.Dir, folder), 0o700); err != nil { // or the test could not remove it
				t.Fatal(err)
			}
		}
		if len(left) != 1 || !strings.HasPrefix(left[0], ".gone-") {
			t.Errorf("%s: %q are left", name, left)
		}
	}
	if got := logged.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `level=WARN msg="removing files of an old run"`) ||
		!strings.Contains(got, "permission denied") {
		t.Errorf("logged %q", got)
	}
}
