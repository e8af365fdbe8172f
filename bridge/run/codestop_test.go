package run

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/gate"
)

// TestASessionOutlivesARunThatTheUserStops, or about which no answer comes. Whatever the
// code does then, the call is not made, and no later one.
func TestASessionOutlivesARunThatTheUserStops(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	// What tasks of the run that was stopped have met is no error of this one.
	const next = "import asyncio\nawait asyncio.sleep(0.01)\ntask = None\nprint(kept)"
	for name, code := range map[string]string{
		"awaits":              "await mcp_up.ask()",
		"waits":               "import asyncio\nfrom mcp import runtime\nasyncio.run(runtime.call_tool('up', 'ask'))",
		"gathers":             "import asyncio\nawait asyncio.gather(mcp_up.ask(n=1), mcp_up.ask(n=2), return_exceptions=True)",
		"catches everything":  "try:\n    await mcp_up.ask()\nexcept BaseException:\n    pass",
		"tries again":         "for _ in range(3):\n    try:\n        await mcp_up.ask()\n    except BaseException:\n        pass",
		"makes another call":  "try:\n    await mcp_up.ask()\nexcept BaseException:\n    await mcp_up.free()",
		"waits in a thread":   "import asyncio, threading\nfrom mcp import runtime\nw = threading.Thread(target=lambda: asyncio.run(runtime.call_tool('up', 'ask')))\nw.start(); w.join()",
		"ignores interrupts":  "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntry:\n    await mcp_up.ask()\nfinally:\n    signal.signal(signal.SIGINT, signal.default_int_handler)",
		"has a last word":     "try:\n    await mcp_up.ask()\nfinally:\n    print('bye')",
		"leaves a task":       "import asyncio\ntask = asyncio.create_task(mcp_up.ask())\nawait asyncio.sleep(60)",
		"asks in a coroutine": "import asyncio\nasync def f():\n    await mcp_up.ask()\nawait asyncio.wait_for(asyncio.shield(f()), 60)",
	} {
		for _, expires := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				made := 0
				count := func(context.Context, json.RawMessage) (string, error) { made++; return "made", nil }
				s := newAsking(t, func(o *Options) {
					o.Upstreams = fakeUpstreams{"up": {"ask": count, "free": count}}.Proxy(t, bridgetest.Options{})
					if expires {
						o.ApprovalTimeout = 50 * time.Millisecond
					}
				})
				asked := 0
				stop := func(context.Context, consent.Question) consent.Answer {
					asked++
					return map[bool]consent.Answer{false: {Choice: consent.Stop}}[expires] // or decides nothing
				}
				run := func(code string) *Result {
					return s.Do(t.Context(), Request{Code: code, Servers: []string{"up"}, Session: "a", Ask: stop, Timeout: time.Minute})
				}
				if r := run("kept = 7"); r.Status != StatusSuccess {
					t.Fatal(r.Error)
				}
				r := run(code)
				want := map[bool]error{false: consent.ErrStopped, true: consent.ErrExpired}[expires]
				if r.Status != StatusCancelled || !strings.Contains(r.Error, want.Error()) || asked != 1 || len(r.Calls) > 0 {
					t.Errorf("%s: %s; asked %d times, calls %v", r.Status, r.Error, asked, r.Calls)
				}
				if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, `the call that waited was not made; session "a" goes on, with its variables`) {
					t.Errorf("notes: %s", notes)
				}
				if r := run(next); r.Status != StatusSuccess || strings.Join(r.Stdout, "") != "7" || r.Session != sessionContinued {
					t.Errorf("the next run: %s %s %v, session %s", r.Status, r.Error, r.Stdout, r.Session)
				}
				if made > 0 {
					t.Errorf("%d calls were made", made)
				}
			})
		}
	}
}

// TestCodeThatDoesNotStopIsKilled with its session, whose end is told in words.
func TestCodeThatDoesNotStopIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	t.Parallel()
	s := newAsking(t, nil)
	stop := func(context.Context, consent.Question) consent.Answer { return consent.Answer{Choice: consent.Stop} }
	run := func(code string) *Result {
		return s.Do(t.Context(), Request{Code: code, Servers: []string{"up"}, Session: "a", Ask: stop, Timeout: time.Minute})
	}
	r := run("try:\n    await mcp_up.ask()\nexcept BaseException:\n    pass\nwhile True:\n    try:\n        while True: pass\n    except BaseException:\n        pass")
	if r.Status != StatusCancelled || r.Error != "the user stopped the run" || r.Session != sessionEnded {
		t.Errorf("%s %s, session %s", r.Status, r.Error, r.Session)
	}
	if r := run("1"); !strings.Contains(strings.Join(r.Notes, "\n"), `session "a" was ended: the user stopped the run, and its code did not end within 3 s`) {
		t.Errorf("notes: %q", r.Notes)
	}
}

// TestCodeThatWaitsForASlotIsNotKilled: it could not stop yet.
func TestCodeThatWaitsForASlotIsNotKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		killed := false
		python := &interpreter{freezes: freezes{n: 1}}
		s := &codeStop{python: python, gate: gate.New(gate.Options{}), kill: func(error) { killed = true }}
		s.stop(consent.ErrStopped)
		time.Sleep(10 * stopTimeout)
		synctest.Wait()
		if killed {
			t.Error("frozen code was killed")
		}
		python.freezes.mu.Lock()
		python.freezes.n = 0
		python.freezes.mu.Unlock()
		time.Sleep(stopTimeout)
		synctest.Wait()
		if !killed || s.ended() == nil {
			t.Error("code that goes on was not killed")
		}
	})
}
