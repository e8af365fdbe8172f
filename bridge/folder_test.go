package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/project"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
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
		"no answer": {version: "2025-11-25", want: failed + "it did not answer within 5s, asked: 1", answer: func(ctx context.Context) (mcp.Result, error) {
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
	connection := &connection{}
	server := mcp.NewServer(&mcp.Implementation{Name: "test"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "folder"}, func(ctx context.Context, request *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		c := &call{display: displayOf(request), request: request, connection: connection}
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

// rootsServer connects a client that announces roots to a server that shows folders; it answers
// roots/list with answer. Calls of run_python end before anything runs: they have no code.
func rootsServer(t *testing.T, version string, answer func(context.Context) (mcp.Result, error)) (*mcp.Client, *mcp.ClientSession) {
	t.Helper()
	runs := run.New(run.Options{
		Shown: project.New(project.Options{Dir: t.TempDir()}), Upstreams: mcpproxy.New(config.Config{}, mcpproxy.Options{}), Policy: policy.None(),
	})
	inner := mcp.NewClient(&mcp.Implementation{Name: "test"}, &mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}})
	inner.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "roots/list" {
				return answer(ctx)
			}
			return next(ctx, method, req)
		}
	})
	ours, theirs := mcp.NewInMemoryTransports()
	ss, err := New(runs, Options{}).MCP().Connect(t.Context(), ours, nil)
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
		runs.Close()
	})
	return inner, client
}

// TestClientThatDoesNotAnswerIsLeftAlone for a minute, or until it says that its roots have
// changed: each run would wait for it.
func TestClientThatDoesNotAnswerIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		var during atomic.Pointer[func()]
		inner, client := rootsServer(t, "2025-11-25", func(ctx context.Context) (mcp.Result, error) {
			asked.Add(1)
			if do := during.Load(); *do != nil {
				(*do)()
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		change := func() {
			inner.AddRoots(&mcp.Root{URI: "file:///a"})
		}
		for n, step := range []struct {
			before, during func()
			wait           time.Duration
			cancel         time.Duration // of the call
			asked          int32
		}{
			{wait: time.Second, cancel: time.Second, asked: 1}, // it could have answered yet
			{wait: rootsTimeout, asked: 1},
			{},
			{before: func() { time.Sleep(silentFor - time.Second) }},
			{before: func() { time.Sleep(time.Second) }, wait: rootsTimeout, asked: 1},
			{},
			{before: change, during: change, wait: rootsTimeout, asked: 1},
			{wait: rootsTimeout, asked: 1}, // they have changed while it was asked
			{},
		} {
			if step.before != nil {
				step.before()
				synctest.Wait()
			}
			during.Store(&step.during)
			ctx, cancel := context.WithCancel(t.Context())
			if step.cancel > 0 {
				time.AfterFunc(step.cancel, cancel)
			}
			asked.Store(0)
			start := time.Now()
			_, err := client.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": ""}})
			if waited := time.Since(start); waited != step.wait || asked.Load() != step.asked || (err != nil) != (step.cancel > 0) {
				t.Errorf("step %d: waited %s, asked %d times, error %v; want %s, %d", n, waited, asked.Load(), err, step.wait, step.asked)
			}
			cancel()
			synctest.Wait()
		}
	})
}

// TestClientThatDoesNotComeBackIsLeftAlone: it would be asked in a loop.
func TestClientThatDoesNotComeBackIsLeftAlone(t *testing.T) {
	const state, roots = 1, 2
	synctest.Test(t, func(t *testing.T) {
		_, client := rootsServer(t, "2026-07-28", nil)
		call := func(code string, with int) (asks bool) {
			p := &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "#" + code, "servers": []string{"nothing"}}}
			if with&state != 0 {
				p.RequestState = rootsState
			}
			if with&roots != 0 {
				p.InputResponses = mcp.InputResponseMap{rootsKey: &mcp.ListRootsResult{Roots: []*mcp.Root{{URI: "file:///a"}}}}
			}
			res, err := client.CallTool(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			return len(res.InputRequests) > 0
		}
		for n, step := range []struct {
			sleep time.Duration
			code  string
			with  int
			asks  bool
		}{
			{0, "a", 0, true},
			{0, "a", state, false}, // without roots
			{0, "a", 0, false},
			{silentFor, "a", 0, true},
			{0, "a", state | roots, false},
			{0, "b", 0, true},
			{0, "b", roots, false}, // it has lost the state
			{0, "c", 0, true},
			{0, "c", 0, true},
			{0, "c", 0, false}, // it makes the same call again and again
			{0, "d", 0, false},
			{0, "c", state | roots, false}, // and answers at last
			{0, "e", 0, true},
			{rootsTimeout, "f", 0, true},
			{time.Second, "g", 0, false}, // e has had its time
			{silentFor, "h", 0, true},
		} {
			time.Sleep(step.sleep)
			if got := call(step.code, step.with); got != step.asks {
				t.Errorf("step %d: asks: %t, want %t", n, got, step.asks)
			}
		}
	})
}

// TestOpenQuestionsAreBounded, and those of calls side by side are asked.
func TestOpenQuestionsAreBounded(t *testing.T) {
	var u unanswered
	for n := range maxOpen {
		if !u.ask(fmt.Sprint(n)) {
			t.Errorf("call %d is not asked", n)
		}
	}
	if u.ask("more") {
		t.Error("one too many is asked")
	}
	u.comeBack("unknown")
	if u.comeBack("3"); !u.ask("more") {
		t.Error("one after another has come back is not asked")
	}
}
