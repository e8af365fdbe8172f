package hostapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/signature"
)

// oneServer has a server up with a tool f, and panics if anything is called.
type oneServer struct{ Upstreams }

func (oneServer) Lookup(name string) (config.Server, error) {
	if name != "up" {
		return config.Server{}, fmt.Errorf("there is no server %q", name)
	}
	return config.Server{Name: name, Alias: name}, nil
}

func (oneServer) Signature(_ context.Context, _, tool string, _ bool) (catalog.Tool, *signature.Signature, error) {
	t := catalog.Tool{Name: tool, Alias: tool}
	return t, signature.New(t.InputSchema, t.OutputSchema), nil
}

func (oneServer) Servers() []mcpproxy.ServerStatus {
	return []mcpproxy.ServerStatus{{Name: "up", Alias: "up", Source: "/home/me/.mcp.json", Also: []string{"/home/me/more.json"}}}
}

func TestServersAreShownWithoutPaths(t *testing.T) {
	answer, err := New(Options{Upstreams: oneServer{}}).Call(t.Context(), "describe_servers", json.RawMessage("{}"))
	if err != nil || !strings.Contains(string(answer), `"name":"up"`) || strings.Contains(string(answer), "/home") {
		t.Errorf("got %s, %v", answer, err)
	}
}

func TestForgedReadsAreBounded(t *testing.T) {
	api := New(Options{Upstreams: oneServer{}, Granted: map[string]bool{"up": true}})
	many := map[string]string{}
	for i := range 20_000 {
		many[fmt.Sprint(i)] = ""
	}
	for _, tt := range []struct {
		method string
		params map[string]any
	}{
		{"read_resource", map[string]any{"uri": strings.Repeat("x", maxURI+1)}},
		{"read_resource", map[string]any{}},
		{"get_prompt", map[string]any{"name": "p", "arguments": many}},
		{"get_prompt", map[string]any{"name": "p", "arguments": map[string]int{"n": 1}}},
		{"get_prompt", map[string]any{"name": "p", "arguments": "x"}},
		{"call_tool", map[string]any{"tool": "f", "named": []int{1}}},
		{"call_tool", map[string]any{"tool": "f", "args": map[string]any{}}},
		{"call_tool", map[string]any{"tool": "f", "args": make([]int, 20_000)}},
		{"stubs", map[string]any{"tools": "x"}},
		{"stubs", map[string]any{"tools": []int{1}}},
		{"stubs", map[string]any{"tools": make([]string, 20_000)}},
	} {
		tt.params["server"] = "up"
		raw, err := json.Marshal(tt.params)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := api.Call(t.Context(), tt.method, raw); err == nil {
			t.Errorf("%s %.100s gave %s", tt.method, raw, answer)
		}
	}
}
