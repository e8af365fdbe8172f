package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// heldIn gives a server whose tool up.f is answered while the run of session a is held.
func heldIn(t *testing.T, while func(in *interpreter)) *Server {
	var s *Server
	s = newSessionServer(t, fakeUpstreams{"up": {"f": func(context.Context, json.RawMessage) (string, error) {
		s.sessions.mu.Lock()
		in := s.sessions.live["a"].interpreter
		s.sessions.mu.Unlock()
		while(in)
		return "ok", nil
	}}}, nil)
	return s
}

// isStopped reports whether the process of an interpreter is stopped.
func (in *interpreter) isStopped() bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", in.sandbox.(*fakeSandbox).process.Pid))
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
		s.Run(t.Context(), run).says(t, "ok")
	}
}

// TestTimeOfAHoldDoesNotCount, for the run nor for its pictures.
func TestTimeOfAHoldDoesNotCount(t *testing.T) {
	const timeout = 3 * time.Second
	s := heldIn(t, func(in *interpreter) {
		defer in.hold()()
		time.Sleep(timeout + pictureGrace)
	})
	s.in(t, "a", "import base64")
	r := s.Run(t.Context(), Request{
		Code:    "await mcp_up.f()\n" + displayPNG,
		Session: "a", Servers: []string{"up"}, Timeout: timeout,
	})
	if r.IsError() || len(r.Pictures) != 1 || len(r.Notes) > 0 {
		t.Errorf("%s: %s, %d pictures, notes %q", r.Status, r.Error, len(r.Pictures), r.Notes)
	}
}

// TestRunHasNoMoreThanItsTimeBesideHolds.
func TestRunHasNoMoreThanItsTimeBesideHolds(t *testing.T) {
	s := heldIn(t, func(in *interpreter) { in.hold()() })
	r := s.Run(t.Context(), Request{
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
	go func() { ended <- s.Run(ctx, Request{Code: "await mcp_up.f()", Session: "a", Servers: []string{"up"}}) }()
	release := <-held
	cancel()
	if r := <-ended; r.Status != StatusCancelled {
		t.Errorf("%s: %s", r.Status, r.Error)
	}
	release()
	s.in(t, "a", "print(1)").says(t, "1")
}
