package bridge

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/internal/contain"
)

// TestFaultHarmsOneRun panics at each boundary of a run, and under its locks, while
// another client's code works and a third one's waits for the user: these see nothing of
// it, and no call goes out without permission.
//
//test:long
func TestFaultHarmsOneRun(t *testing.T) {
	for _, point := range []string{
		"carrying out a call of code", "replying to a call of code", "answering the calls of code", "reading what the code sends",
		"runner: reading a frame", "runner: locked", "making an answer for code",
		"running code", "ending a run", "answering a request", "starting or waiting for a sandbox",
		"consent: asking", "consent: freezing", "consent: frozen", "consent: decided", "asking the user",
		"consent: settling", "taking the user's answer", "letting code go on", "reading the output of code", "ending a sandbox",
		"telling a client that the user is asked",
	} {
		t.Run(point, func(t *testing.T) {
			var asked, sent atomic.Int32
			working, goOn := make(chan struct{}), make(chan struct{})
			s := newAsking(t, func(o *run.Options) {
				o.Upstreams = askingServers(t, fakeUpstreams{"up": {
					"ask": func(context.Context, json.RawMessage) (string, error) { asked.Add(1); return "done", nil },
					"wait": func(context.Context, json.RawMessage) (string, error) {
						close(working)
						<-goOn
						return "waited", nil
					},
					"free": func(context.Context, json.RawMessage) (string, error) { sent.Add(1); return "free", nil },
				}})
			})
			waits := connect(t, s)
			_, fields, _ := callTool(t, waits, map[string]any{"code": "print(await mcp_up.ask())", "servers": []string{"up"}})
			id := approvalID(fields)
			if id == "" {
				t.Fatalf("no run waits: %v", fields)
			}
			works, worked := connect(t, s), make(chan string, 1)
			go func() {
				text, _, _ := callTool(t, works, map[string]any{"code": "print(await mcp_up.wait())", "servers": []string{"up"}})
				worked <- text
			}()
			<-working

			var seen, on atomic.Bool
			contain.Inject(t, func(at string) bool { return on.Load() && at == point && seen.CompareAndSwap(false, true) })
			denies := func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"choice": "deny"}}, nil
			}
			fails := connectForms(t, s, "2025-11-25", denies)
			on.Store(true)
			const code = "print(await mcp_up.free(), len(mcp_up.__doc__ or ''))\nfrom mcp import runtime\nawait runtime.query_tool_docs('up')\ntry:\n    await mcp_up.ask()\nexcept runtime.MCPError as e:\n    print(e)\n"
			res, err := fails.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": code, "servers": []string{"up"}}})
			on.Store(false)
			if !seen.Load() && point != "making an answer for code" {
				t.Errorf("this point was not passed: %+v, %v", res, err)
			}
			if n := asked.Load(); n != 0 {
				t.Errorf("%d calls went out without permission", n)
			}
			if n := sent.Load(); n > 1 {
				t.Errorf("a call went out %d times", n)
			}
			if err == nil && point == "runner: reading a frame" {
				fields, _ := res.StructuredContent.(map[string]any)
				if fields["status"] != string(run.StatusSandbox) || !strings.Contains(textOf(res), "internal error in toolcell while reading what the code sends (ID ") {
					t.Errorf("the result says %v", fields)
				}
			}
			if err == nil && strings.Contains(textOf(res), "goroutine") {
				t.Errorf("the client got a stack: %s", textOf(res))
			}

			close(goOn)
			if got := <-worked; got != "waited" {
				t.Errorf("the other client's run ended with %s", got)
			}
			if err := s.runs.Queue().Decide(id, consent.Answer{Choice: consent.ForCall}); err != nil {
				t.Fatal(err)
			}
			if got, _, isError := callTool(t, waits, map[string]any{"code": "", "session": id}); isError || got != "done" || asked.Load() != 1 {
				t.Errorf("the run that waited ended with %s after %d calls", got, asked.Load())
			}
			if got, _, isError := callTool(t, fails, map[string]any{"code": "print(2)"}); isError || got != "2" {
				t.Errorf("the next run of the client: %s", got)
			}
		})
	}
}

func textOf(res *mcp.CallToolResult) string {
	var all strings.Builder
	for _, c := range res.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			all.WriteString(c.Text)
		}
	}
	return all.String()
}

// TestFaultInASessionEndsIt: its state is unknown after the panic.
func TestFaultInASessionEndsIt(t *testing.T) {
	s := newAsking(t, nil)
	c := connect(t, s)
	if got, _, isError := callTool(t, c, map[string]any{"code": "x = 1\nprint(x)", "session": "a"}); isError {
		t.Fatal(got)
	}
	t.Run("fault", func(t *testing.T) {
		contain.Inject(t, func(at string) bool { return at == "runner: locked" })
		if got, _, isError := callTool(t, c, map[string]any{"code": "x = 2", "session": "a"}); !isError {
			t.Errorf("the run ended with %s", got)
		}
	})
	if got, _, _ := callTool(t, c, map[string]any{"code": "print('x' in globals())", "session": "a"}); !strings.Contains(got, "False") {
		t.Errorf("the session goes on: %s", got)
	}
}
