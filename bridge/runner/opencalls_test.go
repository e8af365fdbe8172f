package runner

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/internal/deadline"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// TestCodeCanGiveUpACall, and only that one ends.
func TestCodeCanGiveUpACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		end := f.start(t.Context(), NewBudget(""), time.Hour, untilEnd)
		f.send(frame{Type: "call", ID: 1})
		f.send(frame{Type: "call", ID: 2})
		f.send(frame{Type: "cancel", ID: 3}) // was never made
		f.send(frame{Type: "cancel", ID: 2})
		if m := f.receive(); m.ID != 2 || m.Error == nil || m.Error.Message != context.Canceled.Error() {
			t.Errorf("answered %+v, %+v", m, m.Error)
		}
		came := f.answered()
		f.send(frame{Type: "cancel", ID: 2}) // it was answered
		if came() {
			t.Error("another call ends too")
		}
		f.send(frame{Type: "cancel", ID: 1})
		if !came() {
			t.Error("the other call does not end")
		}
		f.exit()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestContextOfACallEndsWithIt: what its host has begun with it must not go on for the whole run.
func TestContextOfACallEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		contexts := make(chan context.Context, 1)
		host := hostFunc(func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
			contexts <- ctx
			return nil, ctx.Err()
		})
		end := f.start(t.Context(), NewBudget(""), time.Hour, host)
		f.send(frame{Type: "call", ID: 1})
		if m := f.receive(); m.Error != nil {
			t.Errorf("it had ended before: %v", m.Error)
		}
		synctest.Wait()
		if ctx := <-contexts; ctx.Err() == nil {
			t.Error("it goes on")
		}
		f.exit()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestMoreCallsThanAtTheSameTime one after the other.
func TestMoreCallsThanAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRunner(t)
		c, end := f.begin(t.Context(), NewBudget(""), time.Hour, atOnce)
		for id := range int64(maxCalls + 2) {
			came := f.answered()
			f.send(frame{Type: "call", ID: id})
			if !came() {
				t.Errorf("call %d is not answered", id)
				break
			}
		}
		if n := len(c.active.Load().giveUp); n > 0 {
			t.Errorf("%d calls that were answered are kept in memory", n)
		}
		f.exit()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestRunWithAllItsCallsOpenCanBeStopped while another call waits for its turn.
func TestRunWithAllItsCallsOpenCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := NewBudget(""), newFakeRunner(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		end := f.start(ctx, b, time.Hour, untilEnd)
		for id := range int64(maxCalls) {
			f.send(frame{Type: "call", ID: id})
		}
		go f.callWith(maxCalls, 10<<20)
		synctest.Wait()
		if b.shared.TryAcquire(maxHeld) {
			t.Fatal("the frame of the call that waits takes no room")
		}
		why := errors.New("enough")
		cancel(why)
		if err := end(); !errors.Is(err, why) {
			t.Errorf("ended with %v", err)
		}
		if !b.shared.TryAcquire(maxHeld) {
			t.Error("room was not given back")
		}
	})
}

// TestCallsAreNumberedAsTheyCome: in a dry run a later one waits for those before it.
func TestCallsAreNumberedAsTheyCome(t *testing.T) {
	up := bridgetest.Servers{"up": {"write": nil}}.Proxy(t, bridgetest.Options{})
	g := gate.New(gate.Options{
		Upstreams: up, Granted: map[string]bool{"up": true}, Policy: policy.None().NewEnforcer(), Taint: &consent.Taint{}, Plan: true,
	})
	f := newFakeRunner(t)
	go func() {
		f.send(frame{Type: "ready"})
		f.receive()
		for id := range int64(2) {
			f.send(frame{Type: "call", ID: id, Method: "list_servers"})
			f.receive()
		}
		f.send(frame{Type: "done"})
		f.exit()
	}()
	s := Start{Deadline: deadline.New(time.Hour)}
	if _, err := NewConn(f, "", NewBudget("")).Run(t.Context(), s, g, atOnce); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // if it waits for calls that have been answered
	defer cancel()
	r := gate.Request{Method: mcpproxy.CallTool, Server: "up", Name: "write", Arguments: json.RawMessage("{}"), Number: 3}
	if _, err := g.Do(ctx, r); err != nil || len(g.Plan().Calls) != 1 {
		t.Errorf("the third call: %v; planned %+v", err, g.Plan())
	}
}

// TestTimeStandsStillForInputOnly, and only in a run that may ask for it: code could go on
// for ever otherwise.
func TestTimeStandsStillForInputOnly(t *testing.T) {
	types := hostFunc(func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		select {
		case <-time.After(time.Hour):
			return json.RawMessage(`"a line"`), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	for name, c := range map[string]struct {
		input  bool
		method string
		goesOn bool
	}{
		"a line of input":                  {true, ReadInput, true},
		"a line, in a run that has none":   {false, ReadInput, false},
		"another call in one that has one": {true, "search_tool_docs", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, begun := newFakeRunner(t), time.Now()
				s := Start{Input: c.input, Deadline: deadline.New(time.Minute)}
				wait := runs(t.Context(), NewConn(f, "", NewBudget("")), s, types)
				f.send(frame{Type: "ready"})
				f.receive()
				f.send(frame{Type: "call", ID: 1, Method: c.method})
				took := time.Minute
				if c.goesOn {
					took += time.Hour
					if m := f.receive(); string(m.Result) != `"a line"` {
						t.Errorf("answered %+v", m)
					}
				}
				if _, err := wait(); !errors.Is(err, ErrTimeout) || time.Since(begun) != took {
					t.Errorf("ended after %s with %v, want %s", time.Since(begun), err, took)
				}
			})
		})
	}
}
