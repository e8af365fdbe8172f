package run

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// recording has runs recorded.
func recording(t *testing.T) func(*Options) {
	return func(o *Options) {
		j := record.Open(record.Options{Dir: t.TempDir()})
		t.Cleanup(func() {
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
		o.Sessions, o.Record = 2, j
	}
}

// until waits for what is known of a run to be so.
func (s *Runs) until(t *testing.T, id string, so func(Running) bool) Running {
	t.Helper()
	for t.Context().Err() == nil {
		now, ok := s.Running(id)
		if !ok {
			t.Fatal("the run has ended")
		}
		if so(now) {
			return now
		}
		time.Sleep(time.Millisecond)
	}
	return Running{}
}

// TestTheOutputOfARunIsKnownWhileItGoesOn: its end, and no secrets.
func TestTheOutputOfARunIsKnownWhileItGoesOn(t *testing.T) {
	s := newServer(t, nil, recording(t))
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	r := s.Begin(Request{Code: "import sys, time\nprint('x' * 100_000)\nprint('" + token + "', 'last')\nprint('err', file=sys.stderr)\ntime.sleep(100)", Timeout: 2 * time.Minute})
	defer r.Cancel(errors.New("the test has ended"))
	now := s.until(t, r.ID, func(now Running) bool { return strings.Contains(now.Stdout.Text, "last") && now.Stderr.Text == "err\n" })
	if strings.Contains(now.Stdout.Text, token) || len(now.Stdout.Text) != maxShown || now.Stdout.Before < 80_000 || now.Stderr.Before != 0 {
		t.Errorf("%d bytes and %d before, which end with %q; stderr %+v", len(now.Stdout.Text), now.Stdout.Before, now.Stdout.Text[len(now.Stdout.Text)-60:], now.Stderr)
	}
	if !s.Stop(r.ID, "the test") {
		t.Error("it is not found")
	}
	if res := r.Result(); res.Status != StatusCancelled || res.Error != consent.ErrStopped.Error() {
		t.Errorf("%s: %s", res.Status, res.Error)
	}
	if _, ok := s.Running(r.ID); ok {
		t.Error("it is said to go on")
	}
	if s.Stop(r.ID, "the test") {
		t.Error("it can be stopped again")
	}
}

// TestStoppingARunLeavesItsSession, also while it asks the user.
func TestStoppingARunLeavesItsSession(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	made := 0
	s := newAsking(t, func(o *Options) {
		recording(t)(o)
		ask := func(context.Context, json.RawMessage) (string, error) { made++; return "made", nil }
		o.Upstreams = fakeUpstreams{"up": {"ask": ask}}.Proxy(t, bridgetest.Options{})
	})
	s.in(t, "a", "kept = 7")
	for _, code := range []string{"print('there')\nimport time\ntime.sleep(100)", "print('there')\nawait mcp_up.ask()"} {
		asked, stopped := make(chan struct{}), make(chan struct{})
		ask := func(context.Context, consent.Question) consent.Answer {
			close(asked)
			<-stopped
			return consent.Answer{}
		}
		begun, ended := make(chan string, 1), make(chan *Result, 1)
		go func() {
			ended <- s.Do(t.Context(), Request{Code: code, Session: "a", Servers: []string{"up"}, Timeout: time.Minute, Ask: ask})
		}()
		go func() {
			for {
				s.mu.Lock()
				for id := range s.active {
					begun <- id
					s.mu.Unlock()
					return
				}
				s.mu.Unlock()
				time.Sleep(time.Millisecond)
			}
		}()
		id := <-begun
		s.until(t, id, func(now Running) bool { return now.Stdout.Text == "there\n" })
		if strings.Contains(code, "ask") {
			<-asked
		}
		if !s.Stop(id, "the test") {
			t.Error("it is not found")
		}
		close(stopped)
		if res := <-ended; res.Status != StatusCancelled || !strings.Contains(res.Error, consent.ErrStopped.Error()) {
			t.Errorf("%s: %s: %s", code, res.Status, res.Error)
		} else if notes, what := strings.Join(res.Notes, "\n"), map[bool]string{true: "the call that waited was not made", false: "the run was stopped"}[strings.Contains(code, "ask")]; !strings.Contains(notes, what+`; session "a" goes on`) {
			t.Errorf("%s: %s", code, notes)
		}
		s.in(t, "a", "print(kept)").says(t, "7")
	}
	if made > 0 {
		t.Error("the call was made")
	}
}

// TestRunsThatMayHavePrivateValuesSaySo while they go on: in a session from its start, since its variables
// have them.
func TestRunsThatMayHavePrivateValuesSaySo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte("[servers.notes]\nprivate = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, nil, func(o *Options) {
		recording(t)(o)
		o.Policy = policy.Load(file, true, nil)
		read := func(context.Context, json.RawMessage) (string, error) { return "secret", nil }
		o.Upstreams = fakeUpstreams{"notes": {"read": read}}.Proxy(t, bridgetest.Options{})
	})
	if r := s.Do(t.Context(), Request{Code: "x = await mcp_notes.read()", Session: "a", Servers: []string{"notes"}}); r.IsError() {
		t.Fatal(r.Error)
	}
	for session, private := range map[string]bool{"a": true, "b": false, "": false} {
		r := s.Begin(Request{Code: "print('there')\nimport time\ntime.sleep(100)", Session: session, Timeout: 2 * time.Minute})
		now := s.until(t, r.ID, func(now Running) bool { return now.Stdout.Text == "there\n" })
		next := s.Begin(Request{Code: "1", Session: session, Timeout: 2 * time.Minute}) // which waits for the session, or runs
		later := next.keepingNow
		if now.Private != private {
			t.Errorf("session %q: private %t", session, now.Private)
		}
		s.Stop(r.ID, "the test")
		r.Result()
		if next.Result(); later().Private != private {
			t.Errorf("session %q, the next run: private %t", session, later().Private)
		}
	}
}
