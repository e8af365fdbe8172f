package bridge

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/run"
)

// A working server begins runs that do this work instead of running code.
type working struct {
	*Server
	work func(context.Context, *run.Run) error
}

// mcp is a server with one tool: it begins a run, or comes back to the one whose question it is given.
func (w working) mcp() *mcp.Server {
	type input struct {
		Question string `json:"question,omitempty"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "test"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "run"}, func(ctx context.Context, request *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		c := &call{server: w.Server, connection: w.connections.of(request.Session, request.Extra), display: displayOf(request), request: request, back: in.Question != ""}
		var r *run.Run
		var err error
		switch {
		case request.Params.RequestState != "":
			r, err = c.resumeWithAnswer()
		case c.back:
			r, err = w.runs.Resume(&c.connection.client, in.Question)
		default:
			r = w.runs.Start(run.Request{Client: &c.connection.client}, func(ctx context.Context, r *run.Run) *run.Result {
				res := &run.Result{Status: run.StatusSuccess}
				if err := w.work(ctx, r); err != nil {
					res.Status, res.Error = run.StatusError, err.Error()
				}
				return res
			})
		}
		if err != nil {
			return nil, nil, err
		}
		asks, res := c.wait(ctx, r)
		switch {
		case asks != nil:
			return asks, nil, nil
		case res.Approval != nil:
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: res.Approval.ID}}}, nil, nil
		case res.IsError():
			return nil, nil, errors.New(res.Error)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
	})
	return server
}

// connect gives a client, which shows forms, of the server.
func (w working) connect(t *testing.T, version string, elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)) *mcp.ClientSession {
	t.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	if _, err := w.mcp().Connect(t.Context(), ours, nil); err != nil {
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

func newWorking(t *testing.T, work func(context.Context, *run.Run) error) working {
	runs := run.New(run.Options{})
	t.Cleanup(runs.Close)
	return working{New(runs, Options{}), work}
}

// askToPay asks about a call.
func askToPay(ctx context.Context, r *run.Run) error {
	return r.Asker.Ask(ctx, consent.Call{Server: "up", Tool: "pay"}, func() {})
}

func callRun(t *testing.T, c *mcp.ClientSession, question string) string {
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
			s := newWorking(t, func(ctx context.Context, r *run.Run) error {
				if _, err := r.Asker.AskForm(ctx, consent.Form{Server: "up", URL: "https://example.com/"}); err != nil {
					return err
				}
				return askToPay(ctx, r)
			})
			shown := 0
			c := s.connect(t, version, func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				shown++
				return allowCall(ctx, r)
			})
			id := callRun(t, c, "")
			if err := s.runs.Queue().Decide(id, consent.Answer{Action: "accept"}); err != nil {
				t.Fatalf("%q: %v", id, err)
			}
			if text := callRun(t, c, id); text != "done" || shown != 1 {
				t.Errorf("got %s after %d forms", text, shown)
			}
		})
	}
}

func TestACallThatIsCancelledWhileAFormIsOpenEndsItsRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	withdrawn, ended := make(chan struct{}), make(chan error, 1)
	s := newWorking(t, func(ctx context.Context, r *run.Run) error {
		err := askToPay(ctx, r)
		ended <- err
		return err
	})
	c := s.connect(t, "2025-11-25", func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		cancel()
		<-ctx.Done()
		close(withdrawn)
		return nil, ctx.Err()
	})
	if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "run"}); err == nil {
		t.Error("the call was not cancelled")
	}
	<-withdrawn
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended with %v", err)
	}
	s.runs.Close() // waits for the run, which ends its question
	if q := s.runs.Queue().Questions(); len(q) != 1 || q[0].State != consent.Ended {
		t.Errorf("the questions are %+v", q)
	}
}

func TestFormIsTakenBackWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWorking(t, askToPay)
		withdrawn := false
		c := s.connect(t, "2025-11-25", func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			<-ctx.Done()
			withdrawn = true
			return nil, ctx.Err()
		})
		begun := time.Now()
		id := callRun(t, c, "")
		took := time.Since(begun)
		synctest.Wait()
		if !consent.IsID(id) || took < 45*time.Second || took > 47*time.Second || !withdrawn {
			t.Errorf("got %q after %s, withdrawn: %t", id, took, withdrawn)
		}
		_ = c.Close()
		s.runs.Close()
	})
}

// TestConnectionsAreForgottenWhenTheyEnd, but what was read stays with a run that waits.
func TestConnectionsAreForgottenWhenTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan *run.Run, 1)
		s := newWorking(t, func(ctx context.Context, r *run.Run) error {
			r.Client().Taint.Add("notes.read")
			begun <- r
			return askToPay(ctx, r)
		})
		s.connections.of(nil, nil) // the program's own
		var waits *run.Run
		for range 3 {
			c := s.connect(t, "2025-11-25", nil)
			id := callRun(t, c, "")
			waits = <-begun
			if same := s.connections.of(nil, nil); same != s.connections.of(nil, nil) || len(s.connections.open) != 2 {
				t.Errorf("%d connections are known, one client is connected", len(s.connections.open))
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if _, err := s.runs.Resume(&consent.Client{}, id); err == nil {
				t.Error("another connection came back")
			}
		}
		if len(s.connections.open) != 1 {
			t.Errorf("%d connections are known after their end", len(s.connections.open))
		}
		if _, ok := waits.Asker.Pending(); !ok || waits.Client().Taint.Reason() == "" {
			t.Error("the run does not wait, or has forgotten what was read")
		}
		s.runs.Close()
	})
}
