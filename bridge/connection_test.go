package bridge

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/run"
)

// TestConnectionsThatLast are those that outlive a request: over HTTP those with a session.
func TestConnectionsThatLast(t *testing.T) {
	overHTTP := func(stateless bool) func(*testing.T, working) mcp.Transport {
		return func(t *testing.T, s working) mcp.Transport {
			server := s.mcp()
			web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: stateless}))
			t.Cleanup(web.Close)
			return &mcp.StreamableClientTransport{Endpoint: web.URL}
		}
	}
	inMemory := func(t *testing.T, s working) mcp.Transport {
		ours, theirs := mcp.NewInMemoryTransports()
		if _, err := s.mcp().Connect(t.Context(), ours, nil); err != nil {
			t.Fatal(err)
		}
		return theirs
	}
	for name, tt := range map[string]struct {
		transport func(*testing.T, working) mcp.Transport
		version   string
		want      bool
	}{
		"one stream, before 2026-07-28":     {inMemory, "2025-11-25", true},
		"one stream, 2026-07-28":            {inMemory, "2026-07-28", true},
		"HTTP with sessions":                {overHTTP(false), "2025-11-25", true},
		"HTTP without sessions":             {overHTTP(true), "2025-11-25", false},
		"HTTP without sessions, 2026-07-28": {overHTTP(true), "2026-07-28", false},
	} {
		t.Run(name, func(t *testing.T) {
			lasting := make(chan bool, 1)
			s := newWorking(t, func(_ context.Context, r *run.Run) error {
				lasting <- r.Client().Lasting
				return nil
			})
			c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), tt.transport(t, s), &mcp.ClientSessionOptions{ProtocolVersion: tt.version})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			callRun(t, c, "")
			if got := <-lasting; got != tt.want {
				t.Errorf("it lasts: %t", got)
			}
		})
	}
}

// TestTheEndOfAConnectionIsTheEndOfItsApprovals, whatever of its runs still waits.
func TestTheEndOfAConnectionIsTheEndOfItsApprovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan *run.Run, 1)
		call := func(tool string) consent.Call {
			return consent.Call{Server: "up", Tool: tool, Reasons: []string{"a rule"}}
		}
		tool := "pay"
		s := newWorking(t, func(ctx context.Context, r *run.Run) error {
			begun <- r
			return r.Asker.Ask(ctx, call(tool), func() {})
		})
		c := s.connect(t, "2025-11-25", nil)
		id := callRun(t, c, "")
		<-begun
		queue := s.runs.Queue()
		if err := queue.Decide(id, consent.Answer{Choice: consent.ForConnection}); err != nil {
			t.Fatal(err)
		}
		callRun(t, c, id)
		callRun(t, c, "") // is not asked
		<-begun
		tool = "close"
		waits := callRun(t, c, "")
		r := <-begun
		if r.Asker.Granted(call("pay")) != id {
			t.Fatal("another run of the connection may not do it")
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if q, ok := r.Asker.Pending(); !ok || q.ID != waits || slices.Contains(q.Choices(), consent.ForConnection) {
			t.Errorf("it waits: %t, and offers %v", ok, q.Choices())
		}
		if q, _ := queue.Question(id); q.Holds || r.Asker.Granted(call("pay")) != "" {
			t.Error("what was allowed still is")
		}
		s.runs.Close()
	})
}
