package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/bridgetest"
)

// heldIn gives a server whose tool up.f is answered while the run of session a is held.
func heldIn(t *testing.T, while func(in *interpreter)) *Runs { return heldOn(t, nil, while) }

func heldOn(t *testing.T, change func(*Options), while func(in *interpreter)) *Runs {
	var s *Runs
	var sess *session
	var in *interpreter // read once: a run that ends takes it from its session
	s = newSessionServer(t, fakeUpstreams{"up": {"f": func(context.Context, json.RawMessage) (string, error) {
		s.sessions.mu.Lock()
		if now := s.sessions.live["a"]; now != sess {
			sess, in = now, now.interpreter
		}
		of := in
		s.sessions.mu.Unlock()
		while(of)
		return "ok", nil
	}}}, change)
	return s
}

// isStopped reports whether the process of an interpreter is stopped.
func (in *interpreter) isStopped() bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", in.sandbox.(*bridgetest.FakeSandbox).Process.Pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "T")
}

// awaitStopped waits until the process of an interpreter is stopped, or is not.
func (in *interpreter) awaitStopped(t *testing.T, want bool) {
	for end := time.Now().Add(time.Minute); in.isStopped() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("stopped: %t, want %t", !want, want)
			return
		}
	}
}

// TestHoldsNest: several calls of a run may be asked about at once.
func TestHoldsNest(t *testing.T) {
	s := heldIn(t, func(in *interpreter) {
		first, second := in.hold(), in.hold()
		in.awaitStopped(t, true)
		first()
		first()
		if !in.isStopped() {
			t.Error("it goes on while there is a hold")
		}
		third := in.hold()
		second()
		if !in.isStopped() {
			t.Error("it goes on while there is a hold")
		}
		third()
		in.awaitStopped(t, false)
	})
	run := Request{Code: "print(await mcp_up.f())", Session: "a", Servers: []string{"up"}}
	for range 2 {
		s.Do(t.Context(), run).says(t, "ok")
	}
}

// TestTimeOfAHoldDoesNotCount, for the run nor for its pictures.
func TestTimeOfAHoldDoesNotCount(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	t.Parallel()
	const timeout = 3 * time.Second
	s := heldIn(t, func(in *interpreter) {
		defer in.hold()()
		time.Sleep(timeout + pictureGrace)
	})
	s.in(t, "a", "import base64")
	r := s.Do(t.Context(), Request{
		Code:    "await mcp_up.f()\n" + displayPNG,
		Session: "a", Servers: []string{"up"}, Timeout: timeout,
	})
	if r.IsError() || len(r.Pictures) != 1 || len(r.Notes) > 0 {
		t.Errorf("%s: %s, %d pictures, notes %q", r.Status, r.Error, len(r.Pictures), r.Notes)
	}
}

// TestRunHasNoMoreThanItsTimeBesideHolds.
func TestRunHasNoMoreThanItsTimeBesideHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	t.Parallel()
	s := heldIn(t, func(in *interpreter) { in.hold()() })
	r := s.Do(t.Context(), Request{
		Code:    "import time\nwhile True:\n  await mcp_up.f()\n  time.sleep(0.01)",
		Session: "a", Servers: []string{"up"}, Timeout: 2 * time.Second,
	})
	if r.Status != StatusTimeout {
		t.Errorf("%s: %s", r.Status, r.Error)
	}
}

// TestHoldMayOutliveItsRun: the sandbox may end while the user is asked.
func TestHoldMayOutliveItsRun(t *testing.T) {
	held := make(chan func(), 1)
	s := heldIn(t, func(in *interpreter) { held <- in.hold() })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan *Result)
	go func() { ended <- s.Do(ctx, Request{Code: "await mcp_up.f()", Session: "a", Servers: []string{"up"}}) }()
	release := <-held
	cancel()
	if r := <-ended; r.Status != StatusCancelled {
		t.Errorf("%s: %s", r.Status, r.Error)
	}
	release()
	s.in(t, "a", "print(1)").says(t, "1")
}

// TestTimersStandStillInAHold: what the code gives its calls is not used up by the user.
//
//test:long
func TestTimersStandStillInAHold(t *testing.T) {
	const setup = `
import asyncio, time
async def timed(limit):
    loop = asyncio.get_running_loop()
    begun, begun_outside = loop.time(), time.monotonic()
    fired = []
    loop.call_later(limit, fired.append, 1)
    try:
        got = await asyncio.wait_for(asyncio.gather(mcp_up.f(), asyncio.sleep(0.001, 'slept')), limit)
    except asyncio.TimeoutError:
        got = 'timeout'
    took, outside = loop.time() - begun, time.monotonic() - begun_outside
    return got, 'fired' if fired else 'waits', took < limit, outside > limit, outside > took
`
	const want = "(['ok', 'slept'], 'waits', True, True, True)"
	all := bridgetest.Pythons(t)
	for i, c := range []struct{ name, code, want string }{
		{"top level", "print(await timed(2))", want},
		{"run", "print(asyncio.run(timed(2)))", want},
		{"run in a coroutine", "async def main(): return asyncio.run(timed(2))\nprint(await main())", want},
		{"the same loop again", "async def main(): return asyncio.get_event_loop().run_until_complete(timed(2))\nprint(await main())", want},
		{"a loop of its own", "loop = asyncio.new_event_loop()\nprint(loop.run_until_complete(timed(2)))", want},
		{"another thread", "import threading\nt = threading.Thread(target=lambda: print(asyncio.run(timed(2))))\nt.start(); t.join()", want},
		{"a timer that ran out", "t = asyncio.create_task(asyncio.sleep(0.1))\nprint(await timed(2), end=' '); await t; print(t.done())", want + " True"},
		{"twice", "await timed(2)\nprint(await timed(2))", want},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
				// The versions between the oldest and the newest share the cases.
				if py != all[0] && py != all[len(all)-1] && i%3 != py.Minor%3 {
					return
				}
				s := heldOn(t, onPython(py.Path), func(in *interpreter) {
					defer in.hold()()
					time.Sleep(2500 * time.Millisecond)
				})
				s.Do(t.Context(), Request{Code: setup + c.code, Session: "a", Servers: []string{"up"}, Timeout: time.Minute}).says(t, c.want)
			})
		})
	}
}

// TestTimersGoOnBetweenRuns: a task that waits has waited by the next run.
func TestTimersGoOnBetweenRuns(t *testing.T) {
	s := newSessionServer(t, nil, nil)
	s.in(t, "a", "import asyncio\nbegun = asyncio.get_running_loop().time()")
	time.Sleep(time.Second)
	s.in(t, "a", "print(asyncio.get_running_loop().time() - begun >= 1)").says(t, "True")
}

// TestAnswersComeWholeAfterAHold, also those that a frozen run left in the middle.
func TestAnswersComeWholeAfterAHold(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	text := strings.Repeat("0123456789", 1<<19)
	var s *Runs
	s = newSessionServer(t, fakeUpstreams{"up": {
		"hold": func(context.Context, json.RawMessage) (string, error) {
			s.sessions.mu.Lock()
			in := s.sessions.live["a"].interpreter
			s.sessions.mu.Unlock()
			defer in.hold()()
			in.awaitStopped(t, true)
			time.Sleep(2 * time.Second) // by then what is not read is in files
			return "ok", nil
		},
		"large": func(context.Context, json.RawMessage) (string, error) { return text, nil },
	}}, func(o *Options) { o.RunsDir = t.TempDir() })
	r := s.Do(t.Context(), Request{
		Code: "import asyncio\nanswers = await asyncio.gather(*(mcp_up.large() for _ in range(8)), mcp_up.hold(), *(mcp_up.large() for _ in range(8)))\n" +
			"print(answers.pop(8), all(a == '0123456789' * (1 << 19) for a in answers), len(answers))",
		Session: "a", Servers: []string{"up"}, Timeout: time.Minute,
	})
	r.says(t, "ok True 16")
}
