package bridgetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// Servers are MCP servers whose tools are Go functions. A tool whose name begins with
// read only reads. All of them have the resource x://a, any resource that is asked for, the
// template x://{id} and the prompt p.
type Servers map[string]map[string]func(ctx context.Context, args json.RawMessage) (string, error)

// ErrCrash has a tool end its connection without an answer.
var ErrCrash = errors.New("crash")

// Options change what Proxy starts.
type Options struct {
	Schemas map[string]string // input schemas by names of tools; any object if there is none
	Tool    func(s *mcp.Server, name string) bool
	Change  func(s *config.Server) // of each entry
	Read    func(what string)      // is called for each resource or prompt that is asked for
	// Stateless has the servers speak the protocol of 2026-07-28, in which they ask by results.
	Stateless bool
	Proxy     mcpproxy.Options
}

// Proxy serves them over HTTP until the test ends, and returns a proxy for them.
func (f Servers) Proxy(t testing.TB, o Options) *mcpproxy.Proxy {
	t.Helper()
	if o.Proxy.PinDir == "" {
		o.Proxy.PinDir = t.TempDir()
	}
	over, end := context.WithCancel(context.Background()) // what a server was never told to cancel
	t.Cleanup(end)
	var c config.Config
	for _, name := range slices.Sorted(maps.Keys(f)) {
		s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
		web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{MaxRequestBodyBytes: -1, Stateless: o.Stateless}))
		for tool, do := range f[name] {
			if o.Tool == nil || !o.Tool(s, tool) {
				addTool(s, tool, o.Schemas[tool], func(ctx context.Context, args json.RawMessage) (string, error) {
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					defer context.AfterFunc(over, cancel)()
					return do(ctx, args)
				}, web)
			}
		}
		offer(s, o.Read)
		t.Cleanup(func() {
			end()
			web.CloseClientConnections()
			web.Close()
		})
		entry := config.Server{Name: name, Alias: name, Transport: config.HTTP, URL: web.URL, Dir: "/srv", Source: "/home/me/.mcp.json"}
		if o.Change != nil {
			o.Change(&entry)
		}
		c.Servers = append(c.Servers, entry)
	}
	c.Problems = []config.Problem{{Server: "left-out", Status: config.StatusSkipped, Reason: "it was left out"}}
	p := mcpproxy.New(c, o.Proxy)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func addTool(s *mcp.Server, name, schema string, do func(ctx context.Context, args json.RawMessage) (string, error), web *httptest.Server) {
	if schema == "" {
		schema = `{"type":"object"}`
	}
	tool := &mcp.Tool{Name: name, Description: "does " + name, InputSchema: json.RawMessage(schema), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: strings.HasPrefix(name, "read")}}
	s.AddTool(tool, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		text, err := do(ctx, r.Params.Arguments)
		var wire *jsonrpc.Error
		switch {
		case errors.Is(err, ErrCrash):
			web.CloseClientConnections()
			return nil, err
		case errors.As(err, &wire), ctx.Err() != nil:
			return nil, err
		case err != nil:
			text = err.Error()
		}
		return &mcp.CallToolResult{IsError: err != nil, Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
	})
}

// offer gives a server a resource, a template and a prompt.
func offer(s *mcp.Server, note func(what string)) {
	if note == nil {
		note = func(string) {}
	}
	read := func(r *mcp.ReadResourceRequest) *mcp.ReadResourceResult {
		note(r.Params.URI)
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: "of " + r.Params.URI}}}
	}
	s.AddResource(&mcp.Resource{URI: "x://a", Name: "a", MIMEType: "text/plain"}, nil)
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "x://{id}", Name: "t"}, nil)
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if r, ok := r.(*mcp.ReadResourceRequest); ok { // the SDK knows only those that were added
				return read(r), nil
			}
			return next(ctx, method, r)
		}
	})
	s.AddPrompt(&mcp.Prompt{Name: "p", Arguments: []*mcp.PromptArgument{{Name: "n"}}}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		note(r.Params.Name)
		text := fmt.Sprint(r.Params.Name, r.Params.Arguments)
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
	})
}

// ReportProgress tells the caller of a tool how far it is.
func ReportProgress(ctx context.Context, r *mcp.CallToolRequest, done, total float64, text string) error {
	return r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: done, Total: total, Message: text})
}
