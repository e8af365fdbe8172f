package mcpproxy

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// What a call of a warm server costs through a Proxy, beside the same call
// with the SDK's own client:
//
//	go test -run '^$' -bench Call ./mcpproxy
func BenchmarkCallThroughProxy(b *testing.B) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	s := config.Server{Name: "fake", Alias: "fake", Command: exe, Env: map[string]string{"FAKE_SERVER": "raw"}}
	p := New(config.Config{Servers: []config.Server{s}}, Options{})
	defer p.Close()
	request := CallRequest{Server: "fake", Tool: "echo", Arguments: json.RawMessage(`{"a":1}`)}
	for b.Loop() {
		if _, err := p.Call(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCallWithSDK(b *testing.B) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "FAKE_SERVER=raw")
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "bench"}, nil).Connect(context.Background(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer cs.Close()
	params := &mcp.CallToolParams{Name: "echo", Arguments: json.RawMessage(`{"a":1}`)}
	for b.Loop() {
		if _, err := cs.CallTool(b.Context(), params); err != nil {
			b.Fatal(err)
		}
	}
}
