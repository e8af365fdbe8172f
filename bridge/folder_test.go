package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestFirstFolderOfThisMachineCounts among the roots of a client.
func TestFirstFolderOfThisMachineCounts(t *testing.T) {
	for _, tt := range []struct {
		want string
		uris []string
	}{
		{"", nil},
		{"/home/me/a b", []string{"file:///home/me/a%20b/"}},
		{"/home/me/ü", []string{"https://example.com/x", "vscode-remote://ssh/home/x", "file:///home/me/%C3%BC", "file:///second"}},
		{"/x", []string{"file://localhost/x"}},
		{"", []string{"file://other/x", "file:relative", "file:", "/home/me", "://", "file://%zz"}},
		{"/etc", []string{"file:///home/../etc"}}, // which is refused later
	} {
		roots := []*mcp.Root{nil}
		for _, uri := range tt.uris {
			roots = append(roots, &mcp.Root{URI: uri})
		}
		if got := firstFolder(roots); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.uris, got, tt.want)
		}
	}
}

// TestFolderIsAskedForBeforeEachRun, if the client can tell it; an error says why it is not known.
func TestFolderIsAskedForBeforeEachRun(t *testing.T) {
	const none = "nothing is shown at /project: the client has no folder open on this machine (roots/list)"
	const failed = "nothing is shown at /project: the client was asked for its folder (roots/list): "
	for name, tt := range map[string]struct {
		version, uri string
		without      bool // roots
		answer       func(ctx context.Context) (mcp.Result, error)
		want         string
	}{
		"before 2026-07-28": {version: "2025-11-25", uri: "file:///a", want: "/a, asked: 2"},
		"since 2026-07-28":  {version: "2026-07-28", uri: "file:///a", want: "/a, asked: 2"},
		"no folder open":    {version: "2025-11-25", uri: "https://a.example", want: none + ", asked: 2"},
		"none, since":       {version: "2026-07-28", uri: "https://a.example", want: none + ", asked: 2"},
		"it cannot tell":    {version: "2025-11-25", uri: "file:///a", without: true, want: ", asked: 0"},
		"nor since":         {version: "2026-07-28", uri: "file:///a", without: true, want: ", asked: 0"},
		"an error": {version: "2025-11-25", want: failed + `calling "roots/list": not now, asked: 2`, answer: func(context.Context) (mcp.Result, error) {
			return nil, errors.New("not now")
		}},
		"no answer": {version: "2025-11-25", want: failed + "no answer came within 5s, asked: 2", answer: func(ctx context.Context) (mcp.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, count := tellsFolder(t, tt.version, tt.uri, tt.without, tt.answer)
				var told string
				for range 2 {
					res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "folder"})
					if err != nil {
						t.Fatal(err)
					}
					told = res.Content[0].(*mcp.TextContent).Text
				}
				if got := fmt.Sprintf("%s, asked: %d", told, count.Load()); got != tt.want {
					t.Errorf("got %s\nwant %s", got, tt.want)
				}
			})
		})
	}
}

// tellsFolder gives a client with one root, and how often it was asked for its roots, of a server
// whose tool says what folder it has found. answer, if it is not nil, answers in place of the
// client.
func tellsFolder(t *testing.T, version, uri string, without bool, answer func(context.Context) (mcp.Result, error)) (*mcp.ClientSession, *atomic.Int32) {
	t.Helper()
	count := &atomic.Int32{}
	server := mcp.NewServer(&mcp.Implementation{Name: "test"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "folder"}, func(ctx context.Context, request *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		c := &call{display: displayOf(request), request: request}
		if request.Params.RequestState == rootsState {
			count.Add(1) // a result has asked
		}
		dir, input, err := c.folder(ctx)
		if input != nil {
			return input, nil, nil
		}
		if err != nil {
			dir = err.Error()
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: dir}}}, nil, nil
	})
	var o mcp.ClientOptions
	if without {
		o.Capabilities = &mcp.ClientCapabilities{}
	}
	inner := mcp.NewClient(&mcp.Implementation{Name: "test"}, &o)
	inner.AddRoots(&mcp.Root{URI: uri})
	inner.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method != "roots/list" {
				return next(ctx, method, req)
			}
			count.Add(1)
			if answer != nil {
				return answer(ctx)
			}
			return next(ctx, method, req)
		}
	})
	ours, theirs := mcp.NewInMemoryTransports()
	ss, err := server.Connect(t.Context(), ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := inner.Connect(t.Context(), theirs, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		_ = ss.Wait()
	})
	return client, count
}
