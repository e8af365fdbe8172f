package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// shell is a server that is a script, with a word for its $0.
func shell(script, word string) config.Server {
	return config.Server{Name: "s", Command: "/bin/sh", Args: []string{"-c", script, word}, Dir: "/"}
}

// serve starts a server, and ends it with the test.
func serve(t *testing.T, s config.Server, g *Guard, log slog.Handler) *Transport {
	t.Helper()
	w, err := Start(t.Context(), s, OnHost(g), redact.New(config.Server{}), slog.New(log), message.NewNotifications(func() {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// pidOf returns the id of a server on this host.
func pidOf(w *Transport) int { return w.child.(*group).cmd.Process.Pid }

// hangUp ends the input of a server, and reads its output to the end.
func hangUp(t *testing.T, w *Transport) {
	t.Helper()
	w.stdin.Close()
	if msg, err := w.Read(t.Context()); err == nil {
		t.Errorf("it says %v", msg)
	}
}

// isClosed reports whether what waits for c need not wait.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestEndOfAServerIsDescribed(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"cat; exit 3":       "exited: exit status 3",
		"cat; echo bye >&2": "exited: exit status 0; its stderr ended: bye",
		"cat; kill -HUP $$": "exited: signal: hangup",
	} {
		w := serve(t, shell(script, "sh"), nil, slog.DiscardHandler)
		hangUp(t, w)
		for range 2 { // asked by each call that waits
			if err := w.Ended(); err.Error() != want {
				t.Errorf("%s: %v, want %s", script, err, want)
			}
		}
	}
}

func TestServerThatIgnoresAllButKillIsEnded(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	g := &Guard{}
	defer g.Close()
	ignores := make(chan struct{})
	log := heard{slog.DiscardHandler, func() { close(ignores) }}
	w := serve(t, shell("trap '' TERM; echo >&2 ready; exec sleep 600", "sh"), g, log)
	<-ignores
	w.Stop()
	w.Stop()
	if err := w.Ended(); err.Error() != "closed its output and did not exit; it was ended; its stderr ended: ready" {
		t.Error(err)
	}
}

// TestStopFirstEndsTheInput, as the MCP specification asks.
func TestStopFirstEndsTheInput(t *testing.T) {
	t.Parallel()
	input, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	p := &Process{stdin: stdin, gone: true, exited: make(chan struct{}), done: make(chan struct{})}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		defer contain.Recover("stopping", nil)
		p.Stop()
	}()
	if _, err := io.ReadAll(input); err != nil {
		t.Error(err)
	}
	close(p.exited)
	close(p.done)
	<-stopped
}

// TestGroupEndsWithItsServer: what a server started does not outlive it.
func TestGroupEndsWithItsServer(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	w := serve(t, shell(`sleep 600 >"$0" & cat`, fifo), nil, slog.DiscardHandler)
	held, err := os.Open(fifo) // when sleep has it open
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	hangUp(t, w)
	if _, err := io.ReadAll(held); err != nil { // it ends with the last process that has it open
		t.Error(err)
	}
}

// keepOpen opens an output of a server for writing, as a descendant that left the group.
func keepOpen(t *testing.T, w *Transport, fd int) {
	t.Helper()
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", pidOf(w), fd), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
}

// TestPipesThatStayOpenDoNotHoldUpTheEnd, and those who wait see it when all is gone.
func TestPipesThatStayOpenDoNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(*Transport){
		"stopping":         func(w *Transport) { w.Stop() },
		"waiting":          func(w *Transport) { _ = w.Close(); w.WaitClosed() },
		"asking how it is": func(w *Transport) { _ = w.Close(); _ = w.Ended() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, shell("cat", "sh"), nil, slog.DiscardHandler)
			keepOpen(t, w, 1)
			keepOpen(t, w, 2)
			wait(w)
			if !isClosed(w.done) {
				t.Error("it has not been reaped yet")
			}
		})
	}
}

func TestServerThatEndedIsDown(t *testing.T) {
	t.Parallel()
	w := serve(t, shell("exit 3", "sh"), nil, slog.DiscardHandler)
	<-w.Down() // though nobody reads its output
	if !isClosed(w.exited) {
		t.Error("who stops it waits for it")
	}
	closed := serve(t, shell("exec >&-; cat >/dev/null", "sh"), nil, slog.DiscardHandler)
	if isClosed(closed.Down()) {
		t.Error("it is down at once")
	}
	if _, err := closed.Read(t.Context()); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if !isClosed(closed.Down()) {
		t.Error("one that closed its output is not down")
	}
}

// heard is a log that tells of each line that a server writes.
type heard struct {
	slog.Handler
	line func()
}

func (h heard) Enabled(context.Context, slog.Level) bool { return true }
func (h heard) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h heard) Handle(context.Context, slog.Record) error {
	h.line()
	return nil
}

// TestLastOutputIsTakenInBeforeTheEnd, though its line is still being logged when the pipes
// are closed.
func TestLastOutputIsTakenInBeforeTheEnd(t *testing.T) {
	t.Parallel()
	ready, closed := make(chan *Transport, 1), make(chan struct{})
	w := serve(t, shell("cat; echo bye >&2", "sh"), nil, heard{slog.DiscardHandler, func() {
		w := <-ready
		<-closed
		for range 1000 {
			runtime.Gosched()
		}
		if isClosed(w.done) {
			t.Error("the end is told before the last line")
		}
	}})
	keepOpen(t, w, 1)
	ready <- w
	go func() {
		defer close(closed) // by the end of the process, and nothing else
		defer contain.Recover("reading", nil)
		_, _ = w.Read(t.Context())
	}()
	w.stdin.Close()
	if err := w.Ended(); !strings.HasSuffix(err.Error(), "bye") {
		t.Error(err)
	}
}

// TestServerGoesOnWhenItsLogFails: a full pipe would stop it.
func TestServerGoesOnWhenItsLogFails(t *testing.T) {
	t.Parallel()
	w := serve(t, shell("cat; echo begin >&2; head -c 1000000 /dev/zero >&2; exit 3", "sh"), nil,
		heard{slog.DiscardHandler, func() { panic("the log fails") }})
	hangUp(t, w)
	if err := w.Ended(); err.Error() != "exited: exit status 3" {
		t.Error(err)
	}
}
