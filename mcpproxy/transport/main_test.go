package transport

import (
	"context"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMain runs this test binary again as the MCP server of a test, when the
// environment says so.
func TestMain(m *testing.M) {
	if os.Getenv("FAKE_SERVER") == "sdk" {
		sdkServer()
		return
	}
	os.Exit(m.Run())
}

// sdkServer is a well-behaved server of the newest protocol. Its tool "meta"
// returns the metadata of the call.
func sdkServer() {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk"}, nil)
	s.AddTool(&mcp.Tool{Name: "meta", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: r.Params.Meta}, nil
	})
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}
