package stdio

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// brought is a Child of a test, with the server's ends of its pipes.
type brought struct {
	how    string
	obeys  unix.Signal // which ends it
	faulty string      // the method that panics

	began  time.Time
	ended  chan struct{}
	end    func() // its first process
	stdin  *os.File
	stdout *io.PipeWriter
	stderr *io.PipeWriter

	mu    sync.Mutex
	calls []string
}

func (b *brought) note(method string) {
	b.mu.Lock()
	b.calls = append(b.calls, strings.TrimSpace(method+" "+strings.TrimPrefix(time.Since(b.began).String(), "0s")))
	b.mu.Unlock()
	if method == b.faulty {
		panic("a fault of the test")
	}
}

func (b *brought) Await() {
	b.note("Await")
	<-b.ended
}

func (b *brought) Signal(sig unix.Signal) {
	if sig == b.obeys || sig == unix.SIGKILL {
		b.end()
	}
	b.note(unix.SignalName(sig))
}

func (b *brought) Reap() string {
	b.note("Reap")
	return b.how
}

// launch starts b in the bubble of a test that uses synctest.
func (b *brought) launch(t *testing.T) *Transport {
	t.Helper()
	b.began, b.ended = time.Now(), make(chan struct{})
	b.end = sync.OnceFunc(func() { close(b.ended) })
	w, err := Start(t.Context(), config.Server{Name: "s"}, func(context.Context, config.Server) (*Launched, error) {
		var l Launched
		var err error
		if b.stdin, l.Stdin, err = os.Pipe(); err != nil {
			return nil, err
		}
		l.Stdout, b.stdout = io.Pipe()
		l.Stderr, b.stderr = io.Pipe()
		l.Child = b
		return &l, nil
	}, redact.New(config.Server{}), slog.New(slog.DiscardHandler), message.NewNotifications(func() {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.stdin.Close() })
	return w
}

// pipesClosed reports whether the pipes of a child are closed on our side.
func (b *brought) pipesClosed() bool {
	_, noStdout := b.stdout.Write([]byte("x"))
	_, noStderr := b.stderr.Write([]byte("x"))
	_, noStdin := b.stdin.Read(make([]byte, 1))
	return errors.Is(noStdout, io.ErrClosedPipe) && errors.Is(noStderr, io.ErrClosedPipe) && errors.Is(noStdin, io.EOF)
}

// TestABroughtChildEndsThoughItsPipesStayOpen: what it left is ended, and described with the
// output so far.
func TestABroughtChildEndsThoughItsPipesStayOpen(t *testing.T) {
	for how, want := range map[string]string{
		"exit status 3":  "exited: exit status 3",
		"signal: killed": "exited: signal: killed",
		"used more than its 1 GiB of memory and was ended": "used more than its 1 GiB of memory and was ended",
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &brought{how: how}
			w := b.launch(t)
			_, _ = io.WriteString(b.stderr, "last words\n")
			b.end()
			if err := w.Ended(); err.Error() != want+"; its stderr ended: last words" {
				t.Error(err)
			}
			if want := []string{"Await", "SIGKILL", "Reap"}; !reflect.DeepEqual(b.calls, want) {
				t.Errorf("its calls were %q, want %q", b.calls, want)
			}
			if took := time.Since(b.began); took != drainGrace || !b.pipesClosed() {
				t.Errorf("after %v its pipes are closed: %v", took, b.pipesClosed())
			}
			w.Stop()
			if len(b.calls) != 3 {
				t.Errorf("one that has ended gets signals: %q", b.calls)
			}
		})
	}
}

// TestABroughtChildIsAskedBeforeItIsKilled: first by the end of its input.
func TestABroughtChildIsAskedBeforeItIsKilled(t *testing.T) {
	const stopped = "closed its output and did not exit; it was ended"
	for _, tt := range []struct {
		name  string
		obeys unix.Signal
		calls []string
		want  string
	}{
		{"it ends with its input", 0, []string{"Await", "SIGKILL", "Reap"}, "exited: exit status 0"},
		{"it ends by SIGTERM", unix.SIGTERM, []string{"Await", "SIGTERM 1s", "SIGKILL 1s", "Reap 1s"}, stopped},
		{"it ignores all but SIGKILL", unix.SIGKILL, []string{"Await", "SIGTERM 1s", "SIGKILL 2s", "SIGKILL 2s", "Reap 2s"}, stopped},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &brought{how: "exit status 0", obeys: tt.obeys}
				w := b.launch(t)
				synctest.Wait()
				go w.Stop()
				if _, err := b.stdin.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
					t.Error(err)
				}
				if tt.obeys == 0 {
					b.end()
				}
				if err := w.Ended(); err.Error() != tt.want {
					t.Errorf("%v, want %s", err, tt.want)
				}
				if !reflect.DeepEqual(b.calls, tt.calls) {
					t.Errorf("its calls were %q, want %q", b.calls, tt.calls)
				}
			})
		})
	}
}

// TestAFaultInABroughtChildBlocksNothing, and the child is killed if it can be.
func TestAFaultInABroughtChildBlocksNothing(t *testing.T) {
	for _, method := range []string{"Await", "SIGKILL", "Reap"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &brought{how: "exit status 0", faulty: method}
				w := b.launch(t)
				if method != "Await" {
					b.end()
				}
				<-w.Down()
				w.Stop()
				if err := w.Ended(); err.Error() != "was ended after an internal error" {
					t.Error(err)
				}
				if !isClosed(b.ended) || !b.pipesClosed() {
					t.Error("it runs, or has its pipes")
				}
			})
		})
	}
}
