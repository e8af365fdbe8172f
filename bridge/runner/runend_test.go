package runner

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/internal/deadline"
)

// runs begins a run over a connection. It has an hour if the start says nothing else.
func runs(ctx context.Context, c *Conn, s Start, h Host) (wait func() (Done, error)) {
	type outcome struct {
		done Done
		err  error
	}
	if s.Deadline == nil {
		s.Deadline = deadline.New(time.Hour)
	}
	ended := make(chan outcome, 1)
	go func() {
		done, err := c.Run(ctx, s, anyGate, h)
		ended <- outcome{done, err}
	}()
	return func() (Done, error) {
		o := <-ended
		return o.done, o.err
	}
}

// lingering is a sandbox that takes its time to end, and does not close its connection.
type lingering struct {
	*fakeRunner
	takes time.Duration
}

func (l lingering) Kill(why error) {
	l.kill.Do(func() {
		l.killed = why
		time.AfterFunc(l.takes, func() { close(l.ended) })
	})
}

// nothingComes checks that the connection is closed before anything else comes over it.
func (f *fakeRunner) nothingComes(t *testing.T) {
	t.Helper()
	_ = f.own.SetReadDeadline(time.Now().Add(24 * time.Hour))
	if n, err := f.own.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("read %d bytes, %v; want the end", n, err)
		f.own.Close()
	}
}

// TestStoppedRunLosesItsConnection once its sandbox has ended, or soon; its code does not
// see that its calls fail.
func TestStoppedRunLosesItsConnection(t *testing.T) {
	for takes, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Minute: endTimeout} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeRunner(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			wait := runs(ctx, NewConn(lingering{f, takes}, "", NewBudget("")), Start{}, untilEnd)
			f.send(frame{Type: "ready"})
			f.receive()
			f.send(frame{Type: "call", ID: 1})
			synctest.Wait()
			begun, why := time.Now(), errors.New("enough")
			cancel(why)
			f.nothingComes(t)
			if after := time.Since(begun); after != want {
				t.Errorf("the connection was closed after %s, want %s", after, want)
			}
			if _, err := wait(); !errors.Is(err, why) || !errors.Is(f.killed, why) || time.Since(begun) != takes {
				t.Errorf("ended after %s with %v; killed: %v", time.Since(begun), err, f.killed)
			}
		})
	}
}

// untilEnd is a host whose calls take until they are given up.
var untilEnd = hostFunc(func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
})

// TestRunWaitsForItsSandbox if the runner does not say that nothing is left in it.
func TestRunWaitsForItsSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		wait := runs(t.Context(), NewConn(f, "", NewBudget("")), Start{}, atOnce)
		f.send(frame{Type: "ready"})
		f.receive()
		f.send(frame{Type: "done"})
		f.own.Close()
		begun := time.Now()
		time.AfterFunc(time.Minute, f.exit)
		if done, err := wait(); err != nil || !done.Reported || done.Ended || time.Since(begun) != time.Minute {
			t.Errorf("after %s: %+v, %v", time.Since(begun), done, err)
		}
	})
}

// TestNothingIsDoneToASandboxAfterItsRun: not when it ends, and not when its time would be up.
func TestNothingIsDoneToASandboxAfterItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		f.asked = func() { t.Error("it was asked where the code is") }
		ctx, cancel := context.WithCancel(t.Context())
		limit := deadline.New(time.Minute)
		c := NewConn(f, "", NewBudget(""))
		wait := runs(ctx, c, Start{Deadline: limit}, atOnce)
		f.send(frame{Type: "ready"})
		f.receive()
		f.send(frame{Type: "done"})
		f.send(frame{Type: "end"})
		if done, err := wait(); err != nil || !done.Ended {
			t.Errorf("got %+v, %v", done, err)
		}
		defer c.Pause()() // of no run
		time.Sleep(time.Hour)
		cancel()
		synctest.Wait()
		if f.killed != nil || !limit.Passed() {
			t.Errorf("killed: %v; its time has passed: %v", f.killed, limit.Passed())
		}
	})
}

// TestUnreadAnswersEndASession: the next run cannot begin behind half of one.
func TestUnreadAnswersEndASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		wait := runs(t.Context(), NewConn(f, "", NewBudget("")), Start{Session: "s"}, atOnce)
		f.send(frame{Type: "ready"})
		f.receive()
		f.send(frame{Type: "call", ID: 1})
		synctest.Wait()
		f.send(frame{Type: "done", Kept: true})
		begun := time.Now()
		done, err := wait()
		if !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), "does not take in answers") || done.Kept {
			t.Errorf("got %+v, %v", done, err)
		}
		if after := time.Since(begun); after != lateReplies {
			t.Errorf("it ended after %s", after)
		}
		if !errors.Is(f.killed, ErrProtocol) {
			t.Errorf("killed: %v", f.killed)
		}
	})
}

// TestUnreadAnswersDoNotKeepARunThatIsOver.
func TestUnreadAnswersDoNotKeepARunThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		end := f.start(t.Context(), NewBudget(""), time.Hour, atOnce)
		f.send(frame{Type: "call", ID: 1})
		synctest.Wait()
		f.send(frame{Type: "nonsense"})
		if err := end(); !errors.Is(err, ErrProtocol) {
			t.Errorf("ended with %v", err)
		}
	})
}

// TestSessionMayRestBetweenRuns: the time for late answers does not bound the next start.
func TestSessionMayRestBetweenRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		c := NewConn(f, "", NewBudget(""))
		f.keep(t, c)
		time.Sleep(2 * lateReplies)
		wait := runs(t.Context(), c, Start{Session: "s", Code: "second"}, atOnce)
		if m := f.receive(); m.Code != "second" {
			t.Errorf("started with %+v", m)
		}
		f.send(frame{Type: "done", Kept: true})
		if done, err := wait(); err != nil || !done.Kept {
			t.Errorf("got %+v, %v", done, err)
		}
		c.Close()
		f.nothingComes(t)
	})
}

// keep runs code in a session that continues.
func (f *fakeRunner) keep(t *testing.T, c *Conn) {
	t.Helper()
	wait := runs(t.Context(), c, Start{Session: "s"}, atOnce)
	f.send(frame{Type: "ready"})
	f.receive()
	f.send(frame{Type: "done", Kept: true})
	if done, err := wait(); err != nil || !done.Kept {
		t.Fatalf("got %+v, %v", done, err)
	}
}

// A half is the host's end of a connection whose other end may stop reading, but still writes.
type half struct {
	net.Conn
	deaf atomic.Bool
}

func (h *half) Write(b []byte) (int, error) {
	if h.deaf.Load() {
		return 0, syscall.EPIPE
	}
	return h.Conn.Write(b)
}

// TestRunnerThatCannotBeReachedLosesItsConnection: it waits for what cannot come.
func TestRunnerThatCannotBeReachedLosesItsConnection(t *testing.T) {
	for name, waitsFor := range map[string]func(*fakeRunner){
		"an answer":      func(f *fakeRunner) { f.send(frame{Type: "call", ID: 1}) },
		"the next start": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeRunner(t)
				h := &half{Conn: f.host}
				f.host = h
				c := NewConn(f, "", NewBudget(""))
				if waitsFor == nil {
					f.keep(t, c)
					h.deaf.Store(true)
				}
				wait := runs(t.Context(), c, Start{Session: "s"}, atOnce)
				if waitsFor != nil {
					f.send(frame{Type: "ready"})
					f.receive()
					h.deaf.Store(true)
					waitsFor(f)
				}
				f.nothingComes(t)
				f.exit()
				if done, err := wait(); err != nil || done.Reported {
					t.Errorf("got %+v, %v", done, err)
				}
			})
		})
	}
}

// late is a sandbox whose socket comes only after its run was given up.
type late struct {
	lingering
	asked int
}

func (l *late) Connect() (net.Conn, error) {
	if l.asked++; l.asked == 1 {
		return nil, errors.New("it is not there yet")
	}
	return l.lingering.Connect()
}

func TestCloseClosesAConnectionThatCameLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		c := NewConn(&late{lingering: lingering{f, time.Second}}, "", NewBudget(""))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := runs(ctx, c, Start{}, atOnce)(); !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
		c.Close()
		f.nothingComes(t)
	})
}

// endless is a context of a kind of its own: what derives from it waits in a goroutine.
type endless struct {
	context.Context
	done chan struct{}
}

func (e endless) Done() <-chan struct{} { return e.done }

// TestRunLeavesNothingThatWaitsForItsContext, which may live as long as the server.
func TestRunLeavesNothingThatWaitsForItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := endless{t.Context(), make(chan struct{})}
		before := runtime.NumGoroutine()
		for range 20 {
			f := newFakeRunner(t)
			limit := deadline.New(time.Hour)
			wait := runs(ctx, NewConn(f, "", NewBudget("")), Start{Deadline: limit}, atOnce)
			f.send(frame{Type: "ready"})
			f.receive()
			f.send(frame{Type: "done"})
			f.exit()
			if _, err := wait(); err != nil {
				t.Error(err)
			}
			limit.Stop()
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 10 {
			t.Errorf("%d goroutines are left", n)
		}
		close(ctx.done)
	})
}
