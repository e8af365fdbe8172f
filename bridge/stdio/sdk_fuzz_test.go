package stdio

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// FuzzServerReads has the SDK's server read what a client sends. Its readers run in
// goroutines of their own, where nothing recovers a panic: one would end the fuzzer. A
// request behind it all is answered.
func FuzzServerReads(f *testing.F) {
	talks, err := filepath.Glob("testdata/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, talk := range talks {
		if text, err := os.ReadFile(talk); err == nil {
			f.Add(text)
		}
	}
	for _, params := range []string{
		`[]`, `"text"`, `7`, `null`, `{"name":"t","arguments":[]}`, `{"name":"t","arguments":{"a":1},"_meta":{"progressToken":1e3}}`, `{"name":"t","task":{}}`,
		`{"uri":7}`, `{"cursor":{}}`, `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"}}`, `{"level":5}`, `{"requestId":1.5}`,
	} {
		var all strings.Builder
		for _, method := range []string{
			"tools/call", "tools/list", "resources/read", "resources/list", "resources/subscribe", "prompts/get", "prompts/list", "completion/complete",
			"logging/setLevel", "server/discover", "initialize", "ping", "notifications/cancelled", "notifications/progress", "subscriptions/listen",
		} {
			all.WriteString(`{"jsonrpc":"2.0","id":3,"method":"` + method + `","params":` + params + "}\n")
			all.WriteString(`{"jsonrpc":"2.0","method":"` + method + `","params":` + params + "}\n")
		}
		f.Add([]byte(all.String()))
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
	const last = "\n" + `{"jsonrpc":"2.0","id":"the last","method":"ping"}` + "\n"
	f.Fuzz(func(t *testing.T, sent []byte) {
		s := mcp.NewServer(&mcp.Implementation{Name: "s"}, nil)
		s.AddTool(&mcp.Tool{Name: "t", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
		var answers bytes.Buffer
		c := New(io.MultiReader(strings.NewReader(hello), bytes.NewReader(sent), strings.NewReader(last)), &answers, slog.New(slog.DiscardHandler))
		_ = s.Run(t.Context(), c)
		if !bytes.Contains(answers.Bytes(), []byte(`"id":"the last","result"`)) && !bytes.Contains(sent, []byte("the last")) {
			t.Errorf("the last request has no answer in %q", answers.Bytes())
		}
	})
}
