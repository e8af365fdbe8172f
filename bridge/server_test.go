package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tiktoken-go/tokenizer"

	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/bridge/runner"
)

// connect gives a client of s.
func connect(t *testing.T, s *Server) *mcp.ClientSession {
	t.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	if _, err := s.MCP().Connect(t.Context(), ours, nil); err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func callTool(t *testing.T, c *mcp.ClientSession, args any) (string, map[string]any, bool) {
	t.Helper()
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	fields, _ := res.StructuredContent.(map[string]any)
	return res.Content[0].(*mcp.TextContent).Text, fields, res.IsError
}

func TestClientRunsCode(t *testing.T) {
	c := connect(t, newServer(t, nil, nil))
	text, fields, isError := callTool(t, c, map[string]any{"code": "print('hi')\n6 * 7"})
	if text != "hi\n42" || isError || fields["status"] != "success" || fields["result"] != "42" {
		t.Errorf("got %q, %v, %v", text, fields, isError)
	}
	text, fields, isError = callTool(t, c, map[string]any{"code": "1/0"})
	if !isError || fields["status"] != "error" || fields["exitCode"] != 1.0 || !strings.HasPrefix(text, "status: error\nexit: 1\nstderr:\nTraceback") {
		t.Errorf("got %q, %v, %v", text, fields, isError)
	}
}

func TestBadArguments(t *testing.T) {
	c := connect(t, newServer(t, nil, nil))
	for name, tt := range map[string]struct {
		args any
		want string
	}{
		"no arguments":        {nil, "code is missing"},
		"no code":             {map[string]any{}, "code is missing"},
		"code is a number":    {map[string]any{"code": 5}, "code must be a string"},
		"code is null":        {map[string]any{"code": nil}, "code must be a string"},
		"empty code":          {map[string]any{"code": ""}, "code is empty"},
		"no such run":         {map[string]any{"code": "", "session": "ask-" + strings.Repeat("A", 26)}, "no run waits for an answer as"},
		"an ID cut short":     {map[string]any{"code": "", "session": "ask-ABC"}, `no run waits for an answer as "ask-ABC"`},
		"an ID in small":      {map[string]any{"code": "", "session": "Ask-" + strings.Repeat("a", 26)}, "no run waits for an answer as"},
		"an ID that is long":  {map[string]any{"code": "", "session": "ask-" + strings.Repeat("A", 9999)}, "bytes left out …]"},
		"servers is a string": {map[string]any{"code": "1", "servers": "a"}, "servers must be a list"},
		"servers is JSON":     {map[string]any{"code": "1", "servers": `["nope"]`}, `"nope"`},
		"servers is no JSON":  {map[string]any{"code": "1", "servers": `["nope"`}, "servers must be a list"},
		"unknown server":      {map[string]any{"code": "1", "servers": []string{"nope"}}, "nope"},
		"timeout zero":        {map[string]any{"code": "1", "timeout": 0}, "more than 0"},
		"timeout negative":    {map[string]any{"code": "1", "timeout": -5}, "more than 0"},
		"timeout a fraction":  {map[string]any{"code": "1", "timeout": 1.5}, "whole number"},
		"timeout a string":    {map[string]any{"code": "1", "timeout": "5"}, "whole number"},
		"unknown argument":    {map[string]any{"code": "1", "lang": "js"}, `no argument "lang"`},
	} {
		t.Run(name, func(t *testing.T) {
			text, fields, isError := callTool(t, c, tt.args)
			if !isError || fields["status"] != run.StatusValidation || !strings.Contains(text, tt.want) {
				t.Errorf("got %q, %v, want %q", text, fields, tt.want)
			}
		})
	}
	if text, _, isError := callTool(t, c, map[string]any{"code": "1", "timeout": 1e300}); isError {
		t.Errorf("a huge timeout: %s", text)
	}
	for _, huge := range []string{"1e300", "1e18", "1e10"} { // whose nanoseconds overflow
		if d, err := parseTimeout(json.RawMessage(huge)); err != nil || d < 24*time.Hour {
			t.Errorf("a timeout of %s s is %s, %v", huge, d, err)
		}
	}
	if text, _, isError := callTool(t, c, map[string]any{"code": "1", "timeout": nil, "servers": nil}); isError {
		t.Errorf("null for optional arguments: %s", text)
	}
}

func TestManualResource(t *testing.T) {
	c := connect(t, newServer(t, nil, nil))
	for _, uri := range []string{manualURI, originalManualURI} {
		res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err == nil && res.CacheScope != "private" {
			t.Errorf("%s may be cached by %q", uri, res.CacheScope)
		}
		if err != nil || res.Contents[0].Text != runner.Manual || res.Contents[0].URI != uri {
			t.Errorf("%s: got %v, %v", uri, res, err)
		}
	}
	if listed, err := c.ListResources(t.Context(), nil); err != nil || len(listed.Resources) != 1 {
		t.Errorf("listed are %v, %v", listed, err)
	}
	text, _, _ := callTool(t, c, map[string]any{"code": "from mcp import runtime; print(runtime.capability_summary())"})
	if strings.TrimSpace(text) != strings.TrimSpace(runner.Manual) {
		t.Errorf("capability_summary() differs from the resource:\n%s", text)
	}
}

// TestPromptsAreNotOffered: since 2026-07-28 that is an error, and before an empty list.
func TestPromptsAreNotOffered(t *testing.T) {
	s := newServer(t, nil, nil)
	var wire *jsonrpc.Error
	if list, err := connectForms(t, s, "", nil).ListPrompts(t.Context(), nil); !errors.As(err, &wire) || wire.Code != jsonrpc.CodeMethodNotFound {
		t.Errorf("got %v, %v", list, err)
	}
	if list, err := connectForms(t, s, "2025-11-25", nil).ListPrompts(t.Context(), nil); err != nil || len(list.Prompts) != 0 {
		t.Errorf("before 2026: %v, %v", list, err)
	}
}

// TestToolListCostsAtMost200Tokens counts what a client reads before the first
// question, over the real wire, in both protocol eras.
func TestToolListCostsAtMost200Tokens(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	for name, request := range map[string]string{
		"2025": `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/list"}
`,
		"2026": `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}
`,
	} {
		in, send := io.Pipe()
		receive, out := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- newServer(t, nil, nil).Serve(ctx, in, out) }()
		go func() { _, _ = io.WriteString(send, request) }()
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		for d := json.NewDecoder(receive); answer.ID != 1; {
			if err := d.Decode(&answer); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		go func() { _, _ = io.Copy(io.Discard, receive) }()
		send.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if !bytes.Contains(answer.Result, []byte("run_python")) {
			t.Fatalf("%s: %s %s", name, answer.Result, answer.Error)
		}
		n, err := codec.Count(string(answer.Result))
		const most = 200
		if err != nil || n > most {
			t.Errorf("%s: tools/list costs %d tokens, %v; at most %d are allowed:\n%s", name, n, err, most, answer.Result)
		}
		t.Logf("%s: %d tokens", name, n)
	}
}
