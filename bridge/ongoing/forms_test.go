package ongoing

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/bridge/consent"
)

// connect gives a client, which shows forms, of a server with one tool: run begins a run
// that does work, and comes back to the one whose question it is given.
func connect(t *testing.T, a *Runs[result], version string, elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error), work func(context.Context, *Run[result]) result) *mcp.ClientSession {
	t.Helper()
	type input struct {
		Question string `json:"question,omitempty"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "test"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "run"}, func(ctx context.Context, call *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		c := a.NewCall(call, in.Question, nil)
		var r *Run[result]
		var err error
		switch {
		case call.Params.RequestState != "":
			r, err = a.ComeBackWithAnswer(c, in.Question != "")
		case in.Question != "":
			r, err = a.ComeBack(c, in.Question)
		default:
			r = a.Begin(RunOptions{Connection: c.Connection}, work)
		}
		if err != nil {
			return nil, nil, err
		}
		switch asks, approval := a.Attend(ctx, r, c); {
		case asks != nil:
			return asks, nil, nil
		case approval != nil:
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: approval.ID}}}, nil, nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, r.Result().err
	})
	ours, theirs := mcp.NewInMemoryTransports()
	if _, err := server.Connect(t.Context(), ours, nil); err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, &mcp.ClientOptions{ElicitationHandler: elicit}).
		Connect(t.Context(), theirs, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func run(t *testing.T, c *mcp.ClientSession, question string) string {
	t.Helper()
	args := map[string]any{}
	if question != "" {
		args["question"] = question
	}
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "run", Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	return res.Content[0].(*mcp.TextContent).Text
}

// TestACallThatCameBackIsAskedAgain: its client cannot open addresses, and shows the form
// that comes next.
func TestACallThatCameBackIsAskedAgain(t *testing.T) {
	for _, version := range []string{"2025-11-25", ""} {
		t.Run("protocol "+version, func(t *testing.T) {
			a := newRuns(t, Options{})
			shown := 0
			c := connect(t, a, version, func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				shown++
				return allowed(), nil
			}, func(ctx context.Context, r *Run[result]) result {
				if _, err := r.Asker.AskForm(ctx, consent.Form{Server: "up", URL: "https://example.com/"}); err != nil {
					return result{err: err}
				}
				return result{err: r.Asker.Ask(ctx, consent.Call{Server: "up", Tool: "pay"}, func() {})}
			})
			id := run(t, c, "")
			if err := a.Desk().Decide(id, consent.Answer{Action: "accept"}); err != nil {
				t.Fatalf("%q: %v", id, err)
			}
			if text := run(t, c, id); text != "done" || shown != 1 {
				t.Errorf("got %s after %d forms", text, shown)
			}
		})
	}
}

func TestACallThatIsCancelledWhileAFormIsOpenEndsItsRun(t *testing.T) {
	a := newRuns(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	withdrawn, ended := make(chan struct{}), make(chan error, 1)
	c := connect(t, a, "2025-11-25", func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		cancel()
		<-ctx.Done()
		close(withdrawn)
		return nil, ctx.Err()
	}, func(ctx context.Context, r *Run[result]) result {
		err := r.Asker.Ask(ctx, consent.Call{Server: "up", Tool: "pay"}, func() {})
		ended <- err
		return result{err: err}
	})
	if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "run"}); err == nil {
		t.Error("the call was not cancelled")
	}
	<-withdrawn
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended with %v", err)
	}
	if n := waiting(a); n != 0 {
		t.Errorf("calls can come back to %d runs", n)
	}
}

func TestFormIsTakenBackWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newRuns(t, Options{})
		withdrawn := false
		c := connect(t, a, "2025-11-25", func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			<-ctx.Done()
			withdrawn = true
			return nil, ctx.Err()
		}, func(ctx context.Context, r *Run[result]) result {
			return result{err: r.Asker.Ask(ctx, consent.Call{Server: "up", Tool: "pay"}, func() {})}
		})
		begun := time.Now()
		id := run(t, c, "")
		took := time.Since(begun)
		synctest.Wait()
		if !consent.IsID(id) || took < 45*time.Second || took > 47*time.Second || !withdrawn {
			t.Errorf("got %q after %s, withdrawn: %t", id, took, withdrawn)
		}
		_ = c.Close()
	})
}

// TestConnectionsAreForgottenWhenTheyEnd, but what was read stays with a run that waits.
func TestConnectionsAreForgottenWhenTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newRuns(t, Options{})
		begun := make(chan *Run[result], 1)
		work := func(ctx context.Context, r *Run[result]) result {
			r.Asker.Marks().Add("notes.read")
			begun <- r
			return result{err: r.Asker.Ask(ctx, consent.Call{Server: "up", Tool: "pay"}, func() {})}
		}
		var waits *Run[result]
		for range 3 {
			c := connect(t, a, "2025-11-25", nil, work)
			id := run(t, c, "")
			waits = <-begun
			if same := a.connections.of(nil); same != a.connections.of(nil) || len(a.connections.open) != 2 {
				t.Errorf("%d connections are known, one client is connected", len(a.connections.open))
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if _, err := a.ComeBack(&Call{Connection: newConnection()}, id); err == nil {
				t.Error("another connection came back")
			}
		}
		if len(a.connections.open) != 1 { // the program's own
			t.Errorf("%d connections are known after their end", len(a.connections.open))
		}
		if _, ok := waits.Asker.Pending(); !ok || waits.Asker.Marks().Reason() == "" {
			t.Error("the run does not wait, or has forgotten what was read")
		}
	})
}
