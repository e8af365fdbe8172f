package bridge

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/run"
)

// TestClientHearsOfUpstreamProgress: the numbers of several servers cannot be
// one number, so the texts count and the number only grows.
func TestClientHearsOfUpstreamProgress(t *testing.T) {
	s := newServer(t, nil, func(o *run.Options) {
		o.Upstreams = fakeUpstreams{"up": {"f": nil}}.Proxy(t, bridgetest.Options{Tool: func(up *mcp.Server, name string) bool {
			up.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{}, bridgetest.ReportProgress(ctx, r, 3, 4, "reading")
			})
			return true
		}})
	})
	ours, theirs := mcp.NewInMemoryTransports()
	if _, err := s.MCP().Connect(t.Context(), ours, nil); err != nil {
		t.Fatal(err)
	}
	heard := make(chan *mcp.ProgressNotificationParams, 100)
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { heard <- r.Params },
	}).Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	params := &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "await mcp_up.f()", "servers": []string{"up"}}}
	params.SetProgressToken("token")
	if res, err := client.CallTool(t.Context(), params); err != nil || res.IsError {
		t.Fatalf("%+v, %v", res, err)
	}
	select {
	case p := <-heard:
		if p.Message != "up/f: 3 of 4 reading" || p.ProgressToken != "token" {
			t.Errorf("heard %+v", p)
		}
	case <-time.After(2 * time.Minute):
		t.Error("heard nothing")
	}
}
