package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// askingUpstreams have one server, up, whose tool ask needs approval, and whose tool link
// has an address opened.
type askingUpstreams struct{ fakeUpstreams }

func (u askingUpstreams) Call(ctx context.Context, r mcpproxy.CallRequest) (res mcpproxy.CallResult, err error) {
	ask := &policy.Ask{Server: r.Server, Tool: r.Tool, Arguments: r.Arguments, Reasons: []string{"because"}}
	if r.Tool == "ask" && !r.Allowed(ask) {
		return res, ask
	}
	if r.Tool == "link" {
		if _, err := r.Elicit(ctx, mcpproxy.Elicitation{Server: r.Server, Tool: r.Tool, Message: "log in", URL: "https://example.com/"}); err != nil {
			return res, err
		}
	}
	return u.fakeUpstreams.Call(ctx, r)
}

func newAsking(t *testing.T, change func(*Options)) *Server {
	done := func(context.Context, json.RawMessage) (string, error) { return "done", nil }
	u := askingUpstreams{fakeUpstreams{"up": {"ask": done, "link": done}}}
	s := newServer(t, u.fakeUpstreams, func(o *Options) {
		o.Upstreams, o.Sessions = u, 8
		if change != nil {
			change(o)
		}
	})
	t.Cleanup(s.Close)
	return s
}

// connectForms gives a client of s that shows forms.
func connectForms(t *testing.T, s *Server, version string, elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)) *mcp.ClientSession {
	t.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	if _, err := s.MCP().Connect(t.Context(), ours, nil); err != nil {
		t.Fatal(err)
	}
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, &mcp.ClientOptions{ElicitationHandler: elicit}).
		Connect(t.Context(), theirs, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func allowCall(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"choice": "call"}}, nil
}

func approvalID(fields map[string]any) string {
	approval, _ := fields["approval"].(map[string]any)
	id, _ := approval["id"].(string)
	return id
}

// TestACallThatCameBackIsAskedAgain: its client cannot open addresses, and shows the form
// that comes next.
func TestACallThatCameBackIsAskedAgain(t *testing.T) {
	for _, version := range []string{"2025-11-25", ""} {
		t.Run("protocol "+version, func(t *testing.T) {
			s := newAsking(t, nil)
			c := connectForms(t, s, version, allowCall)
			text, fields, _ := callTool(t, c, map[string]any{"code": "await mcp_up.link()\nprint(await mcp_up.ask())", "servers": []string{"up"}})
			id := approvalID(fields)
			if fields["status"] != string(StatusApproval) || id == "" {
				t.Fatalf("got %s", text)
			}
			if err := s.Desk().Decide(id, consent.Answer{Action: "accept"}); err != nil {
				t.Fatal(err)
			}
			if text, _, isError := callTool(t, c, map[string]any{"code": "", "session": id}); isError || text != "done" {
				t.Errorf("got %s", text)
			}
		})
	}
}

func TestACallThatIsCancelledWhileAFormIsOpenEndsItsRun(t *testing.T) {
	s := newAsking(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	withdrawn := make(chan struct{})
	c := connectForms(t, s, "2025-11-25", func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		cancel()
		<-ctx.Done()
		close(withdrawn)
		return nil, ctx.Err()
	})
	args := map[string]any{"code": "await mcp_up.ask()", "servers": []string{"up"}}
	if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: args}); err == nil {
		t.Error("the call was not cancelled")
	}
	<-withdrawn
	for {
		changed := s.Desk().Changed()
		if q := s.Desk().Questions(); len(q) == 1 && q[0].State == consent.Ended {
			break
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatalf("the run goes on: %+v", s.Desk().Questions())
		}
	}
	if n := s.waitingRuns(); n != 0 {
		t.Errorf("calls can come back to %d runs", n)
	}
}

func TestASessionWhoseRunWaitsSaysSo(t *testing.T) {
	s := newAsking(t, nil)
	c := connect(t, s)
	_, fields, _ := callTool(t, c, map[string]any{"code": "x = await mcp_up.ask()", "servers": []string{"up"}, "session": "work"})
	id := approvalID(fields)
	for _, code := range []string{"print(x)", ""} {
		text, fields, _ := callTool(t, c, map[string]any{"code": code, "session": "work"})
		if fields["status"] != string(StatusValidation) || !strings.Contains(text, fmt.Sprintf(`come back to that first, with code="" and session=%q`, id)) {
			t.Errorf("%q gave %s", code, text)
		}
	}
	if err := s.Desk().Decide(id, consent.Answer{Choice: consent.ForCall}); err != nil {
		t.Fatal(err)
	}
	if text, _, isError := callTool(t, c, map[string]any{"code": "", "session": id}); isError {
		t.Errorf("got %s", text)
	}
	if text, _, _ := callTool(t, c, map[string]any{"code": "print(x)", "session": "work"}); text != "done" {
		t.Errorf("the session went on with %s", text)
	}
}

// waitingRuns returns by how many IDs calls can come back.
func (s *Server) waitingRuns() int {
	s.flights.mu.Lock()
	defer s.flights.mu.Unlock()
	return len(s.flights.byID)
}

// TestRunsWaitAndGoOnInAnyOrder has clients whose runs wait while others answer, deny,
// stop, come back and cancel.
func TestRunsWaitAndGoOnInAnyOrder(t *testing.T) {
	s := newAsking(t, func(o *Options) { o.MaxParallel, o.ApprovalTimeout = 2, 2*time.Second })
	stop := make(chan struct{})
	var answering, calling sync.WaitGroup
	for range 3 {
		answering.Go(func() {
			for {
				changed := s.Desk().Changed()
				for _, q := range s.Desk().Questions() {
					choice := []consent.Choice{consent.ForCall, consent.ForRun, consent.Deny, consent.Stop}[rand.IntN(4)]
					_ = s.Desk().Decide(q.ID, consent.Answer{Choice: choice, By: "test"})
				}
				select {
				case <-changed:
				case <-stop:
					return
				}
			}
		})
	}
	const code = "import asyncio\nfrom mcp import runtime\nfor _ in range(3):\n    await asyncio.gather(*[mcp_up.ask(n=n) for n in range(5)], return_exceptions=True)\nprint('end')"
	for i := range 6 {
		c := connect(t, s)
		calling.Go(func() {
			for n := range 3 {
				ctx, cancel := context.WithCancel(t.Context())
				if n == 1 {
					time.AfterFunc(time.Duration(rand.IntN(200))*time.Millisecond, cancel)
				}
				args := map[string]any{"code": code, "servers": []string{"up"}, "session": fmt.Sprintf("s%d", i)}
				for {
					res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: args})
					if err != nil {
						if ctx.Err() == nil {
							t.Error(err)
						}
						break
					}
					fields, _ := res.StructuredContent.(map[string]any)
					if fields["status"] != string(StatusApproval) {
						if out := fmt.Sprint(fields["stdout"]); !strings.Contains(out, "end") && fields["status"] != string(StatusCancelled) {
							t.Errorf("got %v", fields)
						}
						break
					}
					args = map[string]any{"code": "", "session": approvalID(fields)}
				}
				cancel()
			}
		})
	}
	calling.Wait()
	close(stop)
	answering.Wait()
	for end := time.Now().Add(time.Minute); s.waitingRuns()+len(s.slots) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) { // the results of calls that were cancelled are forgotten by then
			t.Fatalf("calls can come back to %d runs, and %d places are taken", s.waitingRuns(), len(s.slots))
		}
	}
	if _, _, isError := callTool(t, connect(t, s), map[string]any{"code": "print(1)"}); isError {
		t.Error("no run can begin")
	}
}
