package runner

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/internal/deadline"
)

// begin begins a run whose calls are answered by h, and returns its connection.
func (f *fakeRunner) begin(ctx context.Context, b *Budget, timeout time.Duration, h Host) (c *Conn, wait func() error) {
	c = NewConn(f, "", b)
	ended := make(chan error, 1)
	go func() {
		_, err := c.Run(ctx, Start{Deadline: deadline.New(timeout)}, anyGate, h)
		ended <- err
	}()
	f.send(frame{Type: "ready"})
	f.receive()
	return c, func() error { return <-ended }
}

// part writes the head of a frame and its first bytes, and returns the others.
func (f *fakeRunner) part(id int64, n int) (rest []byte) {
	body := fmt.Appendf(nil, `{"type":"call","id":%d,"method":"m","params":{"x":"`, id)
	size := len(body) + n + 3
	_, _ = f.own.Write(append(binary.BigEndian.AppendUint32(nil, uint32(size)), body...))
	return append(bulk()[:n:n], `"}}`...)
}

// TestFrameMayTakeAsLongAsARunIsPaused: its sender is paused in the middle.
func TestFrameMayTakeAsLongAsARunIsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		c, end := f.begin(t.Context(), NewBudget(""), time.Hour, atOnce)
		rest := f.part(1, 100<<10)
		resume := c.Pause()
		time.Sleep(24 * time.Hour)
		resume()
		came := f.answered()
		if _, err := f.own.Write(rest); err != nil || !came() {
			t.Errorf("it was not answered: %v", err)
		}
		f.part(2, 100<<10)
		c.Pause()()
		begun := time.Now()
		if err := end(); !errors.Is(err, ErrProtocol) || time.Since(begun) != frameTime {
			t.Errorf("an unfinished frame ends its run after %s with %v", time.Since(begun), err)
		}
	})
}

// TestPausedRunKeepsNoRoomForItsFrames: a pause waits for a large frame that arrives,
// and those that come then wait for its end.
func TestPausedRunKeepsNoRoomForItsFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := NewBudget(""), newFakeRunner(t)
		c, end := f.begin(t.Context(), b, time.Hour, atOnce)
		rest := f.part(1, 10<<20)
		synctest.Wait()
		paused := make(chan func())
		go func() { paused <- c.Pause() }()
		synctest.Wait()
		select {
		case <-paused:
			t.Error("the run was paused in the middle of a large frame")
		default:
		}
		go func() { _, _ = f.own.Write(rest) }()
		f.receive()
		resume := <-paused
		came := f.answered()
		go f.callWith(2, 10<<20)
		if came() || !b.shared.TryAcquire(maxHeld) {
			t.Error("a frame takes room in a pause")
		}
		b.shared.Release(maxHeld)
		resume()
		if !came() {
			t.Error("it is not answered after the pause")
		}
		f.exit()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestPauseOfARunThatWaitsForRoom: what it waits for may be what the user is asked about.
func TestPauseOfARunThatWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		var c *Conn
		asked := make(chan struct{})
		c, end := f.begin(t.Context(), NewBudget(""), time.Hour, hostFunc(func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			<-asked
			defer c.Pause()()
			return json.RawMessage("1"), nil
		}))
		go f.callWith(1, 40<<20)
		synctest.Wait()
		go f.callWith(2, 40<<20)
		synctest.Wait()
		close(asked)
		for range 2 {
			f.receive()
		}
		f.exit()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestUnreadAnswersLeaveRoomForOthers: a run is paused while the user is asked, and
// the answers to what it has called wait in files, also what is left of one.
func TestUnreadAnswersLeaveRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls, size = 4, 10 << 20
		b := NewBudget(t.TempDir())
		var hogs []*fakeRunner
		var ends []func() error
		for _, answer := range []Answer{{JSON: textOf(size)}, {Make: func() (json.RawMessage, error) { return textOf(size), nil }}} {
			f := newFakeRunner(t)
			_, end := f.begin(t.Context(), b, time.Hour, answers(answer))
			hogs, ends = append(hogs, f), append(ends, end)
			for id := range int64(calls) {
				f.callWith(id, 100)
			}
			f.readAhead(t, 3<<10) // some of the first
		}
		synctest.Wait()
		if b.shared.TryAcquire(maxHeld) {
			t.Fatal("the answers take no room")
		}
		time.Sleep(unreadTimeout)
		synctest.Wait()
		if !b.shared.TryAcquire(maxHeld) {
			t.Error("the answers keep their room")
		}
		for i, f := range hogs {
			for range calls {
				if m := f.receive(); len(m.Result) != size {
					t.Errorf("answer %d has %d bytes, %v", m.ID, len(m.Result), m.Error)
				}
			}
			f.exit()
			if err := ends[i](); err != nil {
				t.Error(err)
			}
		}
	})
}

// answers is a host with one answer.
type answers Answer

func (a answers) Answer(context.Context, Call) (Answer, error) {
	return Answer(a), nil
}

// readAhead reads n bytes, which receive gets later.
func (f *fakeRunner) readAhead(t *testing.T, n int) {
	t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(f.own, b); err != nil {
		t.Fatal(err)
	}
	f.own = readAhead{f.own, io.MultiReader(bytes.NewReader(b), f.own)}
}

type readAhead struct {
	net.Conn
	in io.Reader
}

func (r readAhead) Read(b []byte) (int, error) { return r.in.Read(b) }
