package runner

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/toolcell/toolcell/internal/deadline"
)

// TestRunnerSaysOnceThatTheCodeBegins, if it was asked to.
func TestRunnerSaysOnceThatTheCodeBegins(t *testing.T) {
	for name, c := range map[string]struct {
		sent    []string
		unasked bool
		begun   int
		bad     bool
	}{
		"once":             {sent: []string{"ready", "begun", "done"}, begun: 1},
		"never":            {sent: []string{"ready", "done"}},
		"twice":            {sent: []string{"ready", "begun", "begun"}, begun: 1, bad: true},
		"before the start": {sent: []string{"begun"}, bad: true},
		"after the end":    {sent: []string{"ready", "done", "begun"}, bad: true},
		"unasked":          {sent: []string{"ready", "begun"}, unasked: true, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, begun := newFakeRunner(t), 0
				s := Start{Begun: func() { begun++ }}
				if c.unasked {
					s.Begun = nil
				}
				wait := runs(t.Context(), NewConn(f, "", NewBudget("")), s, atOnce)
				for _, kind := range c.sent {
					f.send(frame{Type: kind})
					if kind != "ready" {
						continue
					}
					if m := f.receive(); m.Begun == c.unasked {
						t.Errorf("asked to say so: %v", m.Begun)
					}
				}
				synctest.Wait()
				f.exit()
				if _, err := wait(); errors.Is(err, ErrProtocol) != c.bad || begun != c.begun {
					t.Errorf("%v; it has begun %d times, want %d", err, begun, c.begun)
				}
			})
		})
	}
}

// TestLongTextsOfARunAreLeftOut, as no runner sends them; the others are told.
func TestLongTextsOfARunAreLeftOut(t *testing.T) {
	text, long := json.RawMessage(`"t"`), textOf(maxDoneText+1)
	for name, c := range map[string]struct {
		sent frame
		want Done
	}{
		"none":   {frame{Result: text, Error: text, Names: text}, Done{Result: "t", Error: "t", Names: []string{"t"}}},
		"result": {frame{Result: long, Error: text, Names: text}, Done{Error: "t", Names: []string{"t"}}},
		"error":  {frame{Result: text, Error: long, Names: text}, Done{Result: "t", Names: []string{"t"}}},
		"names":  {frame{Result: text, Error: text, Names: long}, Done{Result: "t", Error: "t"}},
	} {
		f := newFakeRunner(t)
		c.sent.Type = "done"
		wait := runs(t.Context(), NewConn(f, "", NewBudget("")), Start{}, atOnce)
		f.send(frame{Type: "ready"})
		f.receive()
		f.send(c.sent)
		f.exit()
		d, err := wait()
		if err != nil || d.Result != c.want.Result || d.Error != c.want.Error || !slices.Equal(d.Names, c.want.Names) {
			t.Errorf("long is %s: %.5q, %.5q, %.5q, %v", name, d.Result, d.Error, d.Names, err)
		}
	}
}

// TestCodeThatHasEndedIsNotAskedWhereItIs: its sandbox is ended at once.
func TestCodeThatHasEndedIsNotAskedWhereItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, begun := newFakeRunner(t), time.Now()
		f.asked = func() {}
		wait := runs(t.Context(), NewConn(f, "", NewBudget("")), Start{Deadline: deadline.New(time.Minute)}, atOnce)
		f.send(frame{Type: "ready"})
		f.receive()
		f.send(frame{Type: "done"})
		if done, err := wait(); !errors.Is(err, ErrTimeout) || !done.Reported || time.Since(begun) != time.Minute {
			t.Errorf("after %s: %+v, %v", time.Since(begun), done, err)
		}
	})
}

// TestStackShowsTheCodeOfAFile under the name that the run gives it.
func TestStackShowsTheCodeOfAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		f.asked = func() {
			f.send(frame{Type: "where", Frames: json.RawMessage(
				`[{"file":"job.py","line":2,"func":"<module>"},{"file":"<run_python>","line":1,"func":"f"}]`)})
		}
		s := Start{Code: "import time\ntime.sleep(60)", File: "job.py", Deadline: deadline.New(time.Minute)}
		wait := runs(t.Context(), NewConn(f, "", NewBudget("")), s, atOnce)
		f.send(frame{Type: "ready"})
		f.receive()
		want := []string{"job.py line 2, in <module>: time.sleep(60)", "line 1, in f"}
		if done, err := wait(); !errors.Is(err, ErrTimeout) || !slices.Equal(done.Stack, want) {
			t.Errorf("got %q, %v", done.Stack, err)
		}
	})
}

// TestFramesGiveTheirRoomBackWhenTheyWereTakenIn: those of calls before their answer is read.
func TestFramesGiveTheirRoomBackWhenTheyWereTakenIn(t *testing.T) {
	for _, kind := range []string{"call", "cancel"} {
		synctest.Test(t, func(t *testing.T) {
			b, f := NewBudget(""), newFakeRunner(t)
			end := f.start(t.Context(), b, time.Hour, atOnce)
			f.send(frame{Type: kind, Method: "m", Params: textOf(10 << 20)})
			synctest.Wait()
			if !b.shared.TryAcquire(maxHeld) {
				t.Errorf("a %s keeps its room", kind)
			}
			f.exit()
			if err := end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLargeFramesLeaveNothingBehind, neither what waited for their room nor their text.
func TestLargeFramesLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 50
		var last weak.Pointer[byte]
		f := newFakeRunner(t)
		host := hostFunc(func(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
			last = weak.Make(&params[0])
			return json.RawMessage("1"), nil
		})
		end := f.start(t.Context(), NewBudget(""), time.Hour, host)
		synctest.Wait()
		before := runtime.NumGoroutine()
		for id := range int64(calls) {
			f.callWith(id, ownHeld+1<<10)
			f.receive()
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > calls/2 {
			t.Errorf("%d goroutines are left", n)
		}
		if runtime.GC(); last.Value() != nil {
			t.Error("the text of a call that was answered is kept in memory")
		}
		f.exit()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// inOrder is a connection whose writers take turns in the order in which they come.
type inOrder struct {
	net.Conn
	turn chan struct{}
}

func (c inOrder) Write(b []byte) (int, error) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	return c.Conn.Write(b)
}

// TestStartDoesNotGetIntoAnAnswer: code that writes to the socket may call before Python is up.
func TestStartDoesNotGetIntoAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		f := newFakeRunner(t)
		f.host = inOrder{f.host, make(chan struct{}, 1)}
		wait := runs(t.Context(), NewConn(f, "", NewBudget("")), Start{Code: "1"}, answers{JSON: textOf(size)})
		f.send(frame{Type: "call", ID: 1})
		f.readAhead(t, 3<<10)
		f.send(frame{Type: "ready"})
		synctest.Wait()
		if m := f.receive(); m.Type != "reply" || len(m.Result) != size {
			t.Errorf("got %q with %d bytes", m.Type, len(m.Result))
		}
		if m := f.receive(); m.Type != "start" || m.Code != "1" {
			t.Errorf("got %q with %q", m.Type, m.Code)
		}
		f.exit()
		if _, err := wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestPauseBoundsOnlyTheFrameThatIsRead: what is read by then has no time to keep.
func TestPauseBoundsOnlyTheFrameThatIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		c, end := f.begin(t.Context(), NewBudget(""), time.Hour, atOnce)
		rest := f.part(1, 100<<10)
		synctest.Wait() // it is being read
		resume := c.Pause()
		time.Sleep(24 * time.Hour)
		resume()
		came := f.answered()
		if _, err := f.own.Write(rest); err != nil || !came() {
			t.Errorf("the frame that was begun before the pause is not answered: %v", err)
		}
		c.Pause()()
		time.Sleep(2 * frameTime)
		came = f.answered()
		if err := f.write(frame{Type: "call", ID: 2}); err != nil || !came() {
			t.Errorf("a frame long after a pause is not answered: %v", err)
		}
		f.exit()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestPausedRunThatWaitsForRoomEnds with its sandbox.
func TestPausedRunThatWaitsForRoomEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := NewBudget(""), newFakeRunner(t)
		c, end := f.begin(t.Context(), b, time.Hour, atOnce)
		defer c.Pause()()
		go f.callWith(1, 10<<20)
		synctest.Wait()
		f.exit()
		if err := end(); err != nil || !b.shared.TryAcquire(maxHeld) {
			t.Errorf("ended with %v, or room was not given back", err)
		}
	})
}
