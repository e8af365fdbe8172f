package stdio

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"testing"
)

func TestGuardRunsFromTheFirstServerOn(t *testing.T) {
	t.Parallel()
	g := &Guard{}
	if g.Running() {
		t.Error("it runs without a server")
	}
	hangUp(t, serve(t, shell("cat", "sh"), g, slog.DiscardHandler))
	if !g.Running() {
		t.Fatal("it does not run beside a server")
	}
	first := g.cmd
	hangUp(t, serve(t, shell("cat", "sh"), g, slog.DiscardHandler))
	if g.cmd != first {
		t.Error("another one was started, and who ends the first?")
	}
	for range 2 {
		g.Close()
		if g.Running() || first.ProcessState == nil {
			t.Error("it was not ended")
		}
	}
}

// TestGuardEndsForGood: a server that starts while this program ends brings none back.
func TestGuardEndsForGood(t *testing.T) {
	t.Parallel()
	g := &Guard{}
	g.Close()
	hangUp(t, serve(t, shell("cat", "sh"), g, slog.DiscardHandler))
	if g.Running() {
		g.Close()
		t.Error("it runs again")
	}
}

func TestServerNeedsNoGuard(t *testing.T) {
	t.Parallel()
	w := serve(t, shell("cat", "sh"), nil, slog.DiscardHandler)
	hangUp(t, w)
	if err := w.Ended(); err.Error() != "exited: exit status 0" {
		t.Error(err)
	}
}

// told is the input of a guard.
type told struct{ *bytes.Buffer }

func (told) Close() error { return nil }

func TestGuardHasServersWhileTheyRun(t *testing.T) {
	t.Parallel()
	var input io.WriteCloser = told{&bytes.Buffer{}}
	w := serve(t, shell("cat", "sh"), &Guard{started: true, input: input}, slog.DiscardHandler)
	hangUp(t, w)
	w.WaitClosed()
	if got, want := fmt.Sprint(input), fmt.Sprintf("+ %[1]d\n- %[1]d\n", pidOf(w)); got != want {
		t.Errorf("it was told %q, want %q", got, want)
	}
}
