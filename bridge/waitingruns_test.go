package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// askingServers are those of newAsking: the policy has the user asked about the tool ask of
// server up, and the tool form asks the user for a name.
func askingServers(t *testing.T, tools fakeUpstreams) *mcpproxy.Proxy {
	return tools.Proxy(t, bridgetest.Options{Stateless: true, Tool: func(s *mcp.Server, name string) bool {
		if name != "form" {
			return false
		}
		schema := json.RawMessage(`{"type":"object","properties":{"tags":{"type":"array","items":{"type":"string","enum":["a"]}}}}`)
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answer, _ := r.Params.InputResponses["user_name"].(*mcp.ElicitResult)
			if answer == nil {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"user_name": &mcp.ElicitParams{Message: "your name?", RequestedSchema: schema}}}, nil
			}
			content, _ := json.Marshal(answer.Content)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: answer.Action + string(content)}}}, nil
		})
		return true
	}})
}

func newAsking(t *testing.T, change func(*run.Options)) *Server {
	t.Helper()
	done := func(context.Context, json.RawMessage) (string, error) { return "done", nil }
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte("[servers.up]\nask = ['ask']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return newServer(t, nil, func(o *run.Options) {
		o.Policy, o.Sessions = policy.Load(file, true, nil), 8
		if change != nil {
			change(o)
		}
		if o.Upstreams == nil {
			o.Upstreams = askingServers(t, fakeUpstreams{"up": {"ask": done, "form": done}})
		}
	})
}

// connectForms gives a client of s that shows forms. A middleware may watch what s answers.
func connectForms(t *testing.T, s *Server, version string, elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error), watch ...mcp.Middleware) *mcp.ClientSession {
	t.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	server := s.MCP()
	server.AddReceivingMiddleware(watch...)
	if _, err := server.Connect(t.Context(), ours, nil); err != nil {
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

// TestQuestionsOfServersKeepTheirKeys in results. Ours have a key of their own.
func TestQuestionsOfServersKeepTheirKeys(t *testing.T) {
	for tool, want := range map[string]string{"form": "user_name", "ask": "approval"} {
		s := newAsking(t, nil)
		var keys []string
		c := connectForms(t, s, "", allowCall, func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				res, err := next(ctx, method, req)
				if r, ok := res.(*mcp.CallToolResult); ok {
					keys = slices.AppendSeq(keys, maps.Keys(r.InputRequests))
				}
				return res, err
			}
		})
		text, _, isError := callTool(t, c, map[string]any{"code": "await mcp_up." + tool + "()\nprint('on')", "servers": []string{"up"}})
		if isError || !strings.HasSuffix(text, "on") || !slices.Equal(keys, []string{want}) {
			t.Errorf("%s: asked by %q: %s", tool, keys, text)
		}
	}
}

// TestAnswersGoUpAsTheyAre, whatever the SDK thinks of the form or of them: whether they
// fit is checked where they go to the server.
func TestAnswersGoUpAsTheyAre(t *testing.T) {
	for name, tt := range map[string]struct {
		content map[string]any
		want    string
	}{
		"fitting": {map[string]any{"tags": []string{"a"}}, `accept{"tags":["a"]}`},
		"other":   {map[string]any{"tags": 7}, `what was entered does not fit the form: "tags" is not a list of texts`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAsking(t, nil)
			ours, theirs := mcp.NewInMemoryTransports()
			if _, err := s.MCP().Connect(t.Context(), ours, nil); err != nil {
				t.Fatal(err)
			}
			client := mcp.NewClient(&mcp.Implementation{Name: "test"}, &mcp.ClientOptions{ElicitationHandler: allowCall})
			client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					p, ok := req.GetParams().(*mcp.ElicitParams)
					if !ok {
						return next(ctx, method, req)
					}
					if schema, _ := json.Marshal(p.RequestedSchema); !strings.Contains(string(schema), `"enum":["a"]`) {
						t.Errorf("the form has the schema %s", schema)
					}
					return &mcp.ElicitResult{Action: "accept", Content: tt.content}, nil
				}
			})
			c, err := client.Connect(t.Context(), theirs, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if text, _, isError := callTool(t, c, map[string]any{"code": "print(await mcp_up.form())", "servers": []string{"up"}}); isError != (name == "other") || !strings.Contains(text, tt.want) {
				t.Errorf("got %s\nwant %s", text, tt.want)
			}
		})
	}
}

func TestASessionWhoseRunWaitsSaysSo(t *testing.T) {
	s := newAsking(t, nil)
	c := connect(t, s)
	_, fields, _ := callTool(t, c, map[string]any{"code": "x = await mcp_up.ask()", "servers": []string{"up"}, "session": "work"})
	id := approvalID(fields)
	for _, code := range []string{"print(x)", ""} {
		text, fields, _ := callTool(t, c, map[string]any{"code": code, "session": "work"})
		if fields["status"] != string(run.StatusValidation) || !strings.Contains(text, fmt.Sprintf(`come back to that first, with code="" and session=%q`, id)) {
			t.Errorf("%q gave %s", code, text)
		}
	}
	if err := s.runs.Queue().Decide(id, consent.Answer{Choice: consent.ForCall}); err != nil {
		t.Fatal(err)
	}
	if text, _, isError := callTool(t, c, map[string]any{"code": "", "session": id}); isError {
		t.Errorf("got %s", text)
	}
	if text, _, _ := callTool(t, c, map[string]any{"code": "print(x)", "session": "work"}); text != "done" {
		t.Errorf("the session went on with %s", text)
	}
}

// TestRunsWaitAndGoOnInAnyOrder has clients whose runs wait while others answer, deny,
// stop, come back and cancel.
func TestRunsWaitAndGoOnInAnyOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	t.Parallel()
	s := newAsking(t, func(o *run.Options) { o.MaxParallel, o.ApprovalTimeout = 2, 2*time.Second })
	stop := make(chan struct{})
	var answering, calling sync.WaitGroup
	for range 3 {
		answering.Go(func() {
			for {
				changed := s.runs.Queue().Changed()
				for _, q := range s.runs.Queue().Questions() {
					choice := []consent.Choice{consent.ForCall, consent.ForRun, consent.Deny, consent.Stop}[rand.IntN(4)]
					_ = s.runs.Queue().Decide(q.ID, consent.Answer{Choice: choice, By: "test"})
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
					if fields["status"] != string(run.StatusApproval) {
						if out := fmt.Sprint(fields["stdout"]); !strings.Contains(out, "end") && fields["status"] != string(run.StatusCancelled) {
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
	for range 2 { // all slots are free again
		calling.Go(func() {
			if r := runCode(t, s, "print(1)"); r.IsError() {
				t.Errorf("no run can begin: %s", r.Error)
			}
		})
	}
	calling.Wait()
}

// TestAFormThatIsCancelledIsNotShownAgain: a client without a user, such as claude -p,
// cancels each form at once, and a user who has closed one wants no other.
func TestAFormThatIsCancelledIsNotShownAgain(t *testing.T) {
	for _, version := range []string{"2025-11-25", ""} {
		t.Run("protocol "+version, func(t *testing.T) {
			s := newAsking(t, nil)
			var forms atomic.Int64
			cancelled := make(chan struct{}, 10)
			c := connectForms(t, s, version, func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				forms.Add(1)
				cancelled <- struct{}{}
				return &mcp.ElicitResult{Action: "cancel"}, nil
			})
			text, fields, _ := callTool(t, c, map[string]any{"code": "print(await mcp_up.ask())", "servers": []string{"up"}})
			id := approvalID(fields)
			if id == "" || forms.Load() != 1 {
				t.Fatalf("after %d forms: %s", forms.Load(), text)
			}
			// A call that comes back shows the form once more, and then waits for an answer
			// that is given elsewhere.
			<-cancelled
			go func() {
				<-cancelled
				_ = s.runs.Queue().Decide(id, consent.Answer{Choice: consent.ForCall, By: "test"})
			}()
			if text, _, isError := callTool(t, c, map[string]any{"code": "", "session": id}); isError || text != "done" || forms.Load() != 2 {
				t.Errorf("after %d forms: %s", forms.Load(), text)
			}
		})
	}
}
