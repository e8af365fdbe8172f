package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// prepareLive prepares a call by the definition of the running server.
func prepareLive(t *testing.T, p *Proxy, tool string) *Prepared {
	t.Helper()
	prepared, err := p.Prepare(t.Context(), "fake", Want{Method: CallTool, Name: tool, Live: true})
	if err != nil {
		t.Fatal(err)
	}
	return prepared
}

// TestADecisionHoldsForOneDefinitionAndItsPin: neither for another definition that was accepted
// meanwhile, nor for the same one when another is accepted in its place.
func TestADecisionHoldsForOneDefinitionAndItsPin(t *testing.T) {
	o := pinsIn(t.TempDir())
	s, set := givenServer(t)
	p := proxyFor(t, o, s)
	list := func(tools string) {
		t.Helper()
		set(tools)
		if _, err := p.Refresh(t.Context(), "fake"); err != nil {
			t.Fatal(err)
		}
	}
	accept := func(tools string) {
		t.Helper()
		list(tools)
		if taken, err := p.AcceptPins("fake", "echo"); err != nil || len(taken) != 1 {
			t.Fatal(taken, err)
		}
	}
	wantChanged := func(prepared *Prepared) {
		t.Helper()
		if _, err := prepared.Send(t.Context(), json.RawMessage("{}"), nil, nil); !errors.Is(err, ErrChanged) || prepared.Sent() {
			t.Errorf("%v; sent: %v", err, prepared.Sent())
		}
	}
	list(echoTool("A"))
	asPinned := prepareLive(t, p, "echo")
	accept(echoTool("B"))
	if now := prepareLive(t, p, "echo").Facts().Tool; now.Standing != asPinned.Facts().Tool.Standing {
		t.Fatalf("they are not both as pinned: %+v", now.Standing)
	}
	wantChanged(asPinned)

	list(echoTool("A"))
	notAsPinned := prepareLive(t, p, "echo")
	if _, err := p.AcceptPins("fake", "echo"); err != nil {
		t.Fatal(err)
	}
	wantChanged(notAsPinned)

	asPinned = prepareLive(t, p, "echo")
	accept(echoTool("B"))
	list(echoTool("A"))
	if now := prepareLive(t, p, "echo").Facts().Tool; now.Digest != asPinned.Facts().Tool.Digest || now.Changed() == "" {
		t.Fatalf("the same definition is as pinned: %+v", now.Standing)
	}
	wantChanged(asPinned)
}

// TestAToolThatWentAwayIsNamed, with what there is in its place: another try would not help.
func TestAToolThatWentAwayIsNamed(t *testing.T) {
	s, set := givenServer(t)
	set(echoTool("A"))
	p := proxyFor(t, Options{}, s)
	prepared := prepareLive(t, p, "echo")
	set(`{"name":"get-pid"}`)
	if _, err := p.Refresh(t.Context(), "fake"); err != nil {
		t.Fatal(err)
	}
	_, err := prepared.Send(t.Context(), json.RawMessage("{}"), nil, nil)
	mcptest.WantError(t, err, `no tool "echo"`, `"get_pid"`)
	if errors.Is(err, ErrChanged) || prepared.Sent() {
		t.Errorf("%v; sent: %v", err, prepared.Sent())
	}
}

// TestAToolThereIsNotIsAskedForOnce when it is looked up live.
func TestAToolThereIsNotIsAskedForOnce(t *testing.T) {
	asked := filepath.Join(t.TempDir(), "asked")
	p := proxyFor(t, Options{}, fake(t, "FAKE_ASKED", asked))
	_, err := p.Prepare(t.Context(), "fake", Want{Method: CallTool, Name: "no_such_tool", Live: true})
	mcptest.WantError(t, err, `no tool "no_such_tool"`)
	if got := lines(asked); len(got) != 1 {
		t.Errorf("the server was asked for its tools %d times", len(got))
	}
}

// TestPreparingEndsWithTheTimeOfACall, of which starting is no part.
func TestPreparingEndsWithTheTimeOfACall(t *testing.T) {
	p := proxyFor(t, Options{CallTimeout: 50 * time.Millisecond}, fake(t, "FAKE_TOOLS", "silent"))
	_, err := p.Prepare(t.Context(), "fake", Want{Method: CallTool, Name: "echo", Live: true})
	mcptest.WantError(t, err, "no answer within 50ms")
}

// TestPreparingKeepsNoServer from being idle.
func TestPreparingKeepsNoServer(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t))
	prepareLive(t, p, "echo")
	u := p.current().upstreams[0]
	u.expire(u.running()) // as the idle time would
	if got := p.Servers()[0].Status; got != "idle" {
		t.Errorf("the status is %q", got)
	}
}

// A longContext is one that outlives many calls. It counts what waits for its end.
type longContext struct {
	context.Context
	end     chan struct{}
	waiting atomic.Int32
}

func (c *longContext) Done() <-chan struct{} { return c.end }

// AfterFunc is what the context package calls for each context that is derived.
func (c *longContext) AfterFunc(func()) (stop func() bool) {
	c.waiting.Add(1)
	var stopped atomic.Bool
	return func() bool {
		if !stopped.Swap(true) {
			c.waiting.Add(-1)
		}
		return true
	}
}

// TestCallsLeaveNothingWithTheirCaller, who may make many thousands.
func TestCallsLeaveNothingWithTheirCaller(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Hour} {
		p := proxyFor(t, Options{CallTimeout: timeout}, fake(t))
		ctx := &longContext{Context: context.Background(), end: make(chan struct{})}
		prepared, err := p.Prepare(ctx, "fake", Want{Method: CallTool, Name: "echo", Live: true})
		if err != nil {
			t.Fatal(err)
		}
		if n := ctx.waiting.Load(); n != 0 {
			t.Errorf("preparing a call of at most %v leaves %d contexts", timeout, n)
		}
		ctx = &longContext{Context: context.Background(), end: make(chan struct{})}
		if _, err := prepared.Send(ctx, json.RawMessage("{}"), nil, nil); err != nil {
			t.Fatal(err)
		}
		if n := ctx.waiting.Load(); n != 0 {
			t.Errorf("sending a call of at most %v leaves %d contexts", timeout, n)
		}
	}
}

// TestPrepareSaysWhatTheClientCan before a server is started that learns of it only then.
func TestPrepareSaysWhatTheClientCan(t *testing.T) {
	s, _ := asker(t, "2025")
	p := proxyFor(t, Options{}, s)
	u := entering(`{"name":"Ada"}`)
	args := json.RawMessage(`{"asks":[` + plainForm + `]}`)
	res, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "run", Arguments: args, User: u, Can: both})
	if err != nil {
		t.Fatal(err)
	}
	got := structured[askedResult](t, string(res.JSON))
	if string(got.Capabilities) != `{"elicitation":{"form":{},"url":{}}}` || len(u.asked) != 1 {
		t.Errorf("the server was told %s, the user was asked %d times", got.Capabilities, len(u.asked))
	}
}

// fifo makes a named pipe. A server that reads it waits until the test writes.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAServerThatIsRemovedWhileItStarts: what was to be sent has changed, and what was to be
// prepared is not there.
func TestAServerThatIsRemovedWhileItStarts(t *testing.T) {
	for name, tt := range map[string]struct {
		method, tool string
		check        func(t *testing.T, err error)
	}{
		"sending": {ReadResource, "x:y", func(t *testing.T, err error) {
			t.Helper()
			if !errors.Is(err, ErrChanged) || strings.Contains(err.Error(), errRetired.Error()) {
				t.Errorf("%v", err)
			}
		}},
		"preparing": {CallTool, "echo", func(t *testing.T, err error) {
			t.Helper()
			mcptest.WantError(t, err, `there is no server "fake"`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			gate := fifo(t)
			s := fake(t)
			s.Command, s.Args = "/bin/sh", []string{"-c", `read x <"$0"`, gate}
			p := proxyFor(t, Options{}, s)
			u := p.current().upstreams[0]
			done := make(chan error, 1)
			go func() {
				prepared, err := p.Prepare(t.Context(), "fake", Want{Method: tt.method, Name: tt.tool, Live: true})
				if err == nil {
					_, err = prepared.Send(t.Context(), nil, nil, nil)
				}
				done <- err
			}()
			eventually(t, "the start", func() bool { return p.Servers()[0].Status == "starting" })
			p.Update(config.Config{})
			eventually(t, "the removal", func() bool {
				u.mu.Lock()
				defer u.mu.Unlock()
				return u.closed != nil
			})
			if err := os.WriteFile(gate, []byte("\n"), 0o600); err != nil { // it ends now
				t.Fatal(err)
			}
			tt.check(t, <-done)
		})
	}
}

// TestARefreshDoesNotJoinAnEarlierRequest, whose answer may be of before.
func TestARefreshDoesNotJoinAnEarlierRequest(t *testing.T) {
	given, asked := fifo(t), filepath.Join(t.TempDir(), "asked")
	p := proxyFor(t, Options{}, fake(t, "FAKE_TOOLS", "given", "FAKE_GIVEN", given, "FAKE_ASKED", asked))
	answer := func(name string) {
		if err := os.WriteFile(given, []byte(`{"tools":[{"name":"`+name+`"}]}`), 0o600); err != nil {
			t.Error(err)
		}
	}
	go func() { _ = p.AwaitTools(t.Context(), "fake") }()
	eventually(t, "the first request", func() bool { return len(lines(asked)) == 1 })
	type refreshed struct {
		first string
		err   error
	}
	done := make(chan refreshed, 1)
	go func() {
		tools, err := p.Refresh(t.Context(), "fake")
		if err != nil {
			done <- refreshed{err: err}
			return
		}
		done <- refreshed{first: tools[0].Name}
	}()
	eventually(t, "the refresh", func() bool { return inFlight(p) == 2 })
	answer("old")
	eventually(t, "a second request", func() bool { return len(lines(asked)) == 2 || len(done) == 1 })
	if len(done) == 0 {
		answer("new")
	}
	if got := <-done; got.err != nil || got.first != "new" {
		t.Errorf("the refresh has the tool %q, %v", got.first, got.err)
	}
}
