package run

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// newAsking has a server up, and a policy that has the user asked about its tool ask.
func newAsking(t *testing.T, change func(*Options)) *Runs {
	t.Helper()
	done := func(context.Context, json.RawMessage) (string, error) { return "done", nil }
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte("[servers.up]\nask = ['ask']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return newServer(t, nil, func(o *Options) {
		o.Policy, o.Sessions = policy.Load(file, true, nil), 8
		if change != nil {
			change(o)
		}
		if o.Upstreams == nil {
			o.Upstreams = fakeUpstreams{"up": {"ask": done}}.Proxy(t, bridgetest.Options{})
		}
	})
}

// TestARunThatSucceededHasEffects: a call that comes back too late is told of them, and the
// result itself lists calls of failed runs only.
func TestARunThatSucceededHasEffects(t *testing.T) {
	s := newAsking(t, nil)
	allow := func(context.Context, consent.Question) consent.Answer { return consent.Answer{Choice: consent.ForCall} }
	r := s.Do(t.Context(), Request{Code: "await mcp_up.ask(); await mcp_up.ask()", Servers: []string{"up"}, Ask: allow})
	status, effects, more := r.Outcome()
	if status != string(StatusSuccess) || !slices.Equal(effects, []string{"up.ask {}", "up.ask {}"}) || more != 0 || r.Calls != nil {
		t.Errorf("got %s, %q and %d more, in the result %v; %s", status, effects, more, r.Calls, r.Error)
	}
}

// TestPrivateDataStaysWithItsSession: another client goes on in it.
func TestPrivateDataStaysWithItsSession(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many Pythons")
	}
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte("[servers.notes]\nprivate = true\n[servers.hub]\nopen = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := func(context.Context, json.RawMessage) (string, error) { return "done", nil }
	awaited := make(chan struct{})
	await := func(context.Context, json.RawMessage) (string, error) { // that another call waits for the session
		<-awaited
		return "done", nil
	}
	s := newServer(t, fakeUpstreams{"notes": {"read": done, "wait": await}, "hub": {"post": done}}, func(o *Options) {
		o.Sessions, o.Policy = 8, policy.Load(file, true, nil)
	})
	run := func(c *consent.Client, session, code string) string {
		t.Helper()
		r := s.Begin(Request{Code: code, Servers: []string{"*"}, Session: session, Client: c, Timeout: time.Minute})
		if q := r.await(t.Context()); q != nil {
			return strings.Join(q.Calls[0].Reasons, "; ")
		}
		return r.Result().Status
	}
	reader, other, third := newClient(), newClient(), newClient()
	if got := run(reader, "work", "x = await mcp_notes.read()"); got != StatusSuccess {
		t.Fatal(got)
	}
	if got := run(other, "mine", "await mcp_hub.post()"); got != StatusSuccess {
		t.Errorf("a client that has read nothing got %s", got)
	}
	if got := run(other, "work", "await mcp_hub.post(text=x)"); !strings.Contains(got, "private data was read before, from notes.read") {
		t.Errorf("in the session where it was read, another client got %s", got)
	}
	calls := func() int {
		s.sessions.mu.Lock()
		defer s.sessions.mu.Unlock()
		if sess := s.sessions.live["ended"]; sess != nil {
			return sess.calls
		}
		return 0
	}
	var both sync.WaitGroup
	both.Go(func() { run(third, "ended", "await mcp_notes.wait()\nexit()") })
	for calls() == 0 {
		time.Sleep(time.Millisecond)
	}
	fourth := newClient()
	both.Go(func() {
		if got := run(fourth, "ended", "await mcp_hub.post()"); got != StatusSuccess {
			t.Errorf("in a new session of the name, another client got %s", got)
		}
	})
	for calls() < 2 {
		time.Sleep(time.Millisecond)
	}
	close(awaited)
	both.Wait()
}
