package mcpproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// webTools is a server of the SDK with the tools that these tests call.
func webTools(notes *noteBook) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "web"}, nil)
	raw := func(name string, h mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
	}
	raw("echo", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: r.Params.Arguments}, nil
	})
	raw("big", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("b", 17<<20)}}}, nil
	})
	raw("grow", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		raw("grown", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
		})
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	raw("hang", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		notes.add("hanging")
		select {
		case <-ctx.Done():
		case <-notes.unblock:
		}
		notes.add("cancelled")
		return nil, ctx.Err()
	})
	raw("work", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 3 {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3, Message: fmt.Sprint("step ", i+1),
			})
		}
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	askingTool(s)
	return s
}

// noteBook is what a server in this process tells the test.
type noteBook struct {
	unblock chan struct{} // ends what hangs; nil does not
	mu      sync.Mutex
	all     []string
}

func (n *noteBook) add(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, s)
}

func (n *noteBook) has(s string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Contains(n.all, s)
}

// web starts a handler on loopback and describes the server "fake" behind it.
func web(t *testing.T, transport config.Transport, h http.Handler) config.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return config.Server{Name: "fake", Alias: "fake", Transport: transport, URL: s.URL + "/mcp", Source: "test.json"}
}

func streamable(notes *noteBook, o *mcp.StreamableHTTPOptions) http.Handler {
	s := webTools(notes)
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, o)
}

func sseHandler(notes *noteBook) http.Handler {
	s := webTools(notes)
	return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
}

// legacyOnly is a server from before 2026, as seen from outside.
func legacyOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"server/discover"`)) {
			http.Error(w, "Bad Request: no valid session", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	})
}

// kindsOfWeb are the servers that every test of plain behavior runs on.
func kindsOfWeb(t *testing.T, test func(t *testing.T, notes *noteBook, s config.Server)) {
	for name, kind := range map[string]func(notes *noteBook) (config.Transport, http.Handler){
		"http 2026": func(n *noteBook) (config.Transport, http.Handler) { return config.HTTP, streamable(n, nil) },
		"http 2025": func(n *noteBook) (config.Transport, http.Handler) { return config.HTTP, legacyOnly(streamable(n, nil)) },
		"http json": func(n *noteBook) (config.Transport, http.Handler) {
			return config.HTTP, legacyOnly(streamable(n, &mcp.StreamableHTTPOptions{JSONResponse: true}))
		},
		"remote, http": func(n *noteBook) (config.Transport, http.Handler) { return config.Remote, streamable(n, nil) },
		"sse":          func(n *noteBook) (config.Transport, http.Handler) { return config.SSE, sseHandler(n) },
		"remote, sse":  func(n *noteBook) (config.Transport, http.Handler) { return config.Remote, sseHandler(n) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notes := &noteBook{}
			transport, h := kind(notes)
			test(t, notes, web(t, transport, h))
		})
	}
}

func TestRemoteServersOfEveryKindWork(t *testing.T) {
	kindsOfWeb(t, func(t *testing.T, notes *noteBook, s config.Server) {
		p := proxyFor(t, Options{}, s)
		if got := mustCall(t, p, "echo", `{"n":9007199254740993,"text":"größer"}`); !strings.Contains(got, `9007199254740993`) || !strings.Contains(got, `"gr\u00f6\u00dfer"`) {
			t.Errorf("echo = %s", got)
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { mustCall(t, p, "echo", `{}`) })
		}
		wg.Wait()

		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := p.Call(ctx, CallRequest{Server: "fake", Tool: "hang"})
			done <- err
		}()
		eventually(t, "the call", func() bool { return notes.has("hanging") })
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
		eventually(t, "the server to know of the cancellation", func() bool { return notes.has("cancelled") })

		if strings.HasSuffix(t.Name(), "http_2025") || strings.HasSuffix(t.Name(), "/sse") { // it takes its time
			if got := mustCall(t, p, "big", `{}`); len(got) < 17<<20 { // more than the SDK would take
				t.Errorf("%d bytes came back", len(got))
			}
		}
		if got := p.Servers()[0]; got.Status != "ready" || got.Tools == 0 {
			t.Errorf("%+v", got)
		}
	})
}

func TestRemoteServersTellThatTheirToolsChanged(t *testing.T) {
	kindsOfWeb(t, func(t *testing.T, _ *noteBook, s config.Server) {
		p := proxyFor(t, Options{}, s)
		before, err := p.Tools(t.Context(), "fake")
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the new tool", func() bool { // once its stream is open
			mustCall(t, p, "grow", `{}`)
			after, err := p.Tools(t.Context(), "fake")
			return err == nil && len(after) == len(before)+1
		})
	})
}

func TestProgressReachesTheCaller(t *testing.T) {
	kindsOfWeb(t, func(t *testing.T, _ *noteBook, s config.Server) {
		// Beside an answer in one JSON body there is the standing stream only,
		// which may be open in time or not.
		certain := !strings.Contains(t.Name(), "json")
		p := proxyFor(t, Options{}, s)
		var got []string
		_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "work", Progress: func(done, total float64, text string) {
			got = append(got, fmt.Sprint(done, "/", total, " ", text))
		}})
		if err != nil || certain && !slices.Equal(got, []string{"1/3 step 1", "2/3 step 2", "3/3 step 3"}) {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestWhatWorkedIsRemembered(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	sse := sseHandler(&noteBook{})
	p := proxyFor(t, Options{}, web(t, config.Remote, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Method)
		mu.Unlock()
		sse.ServeHTTP(w, r)
	})))
	mustCall(t, p, "echo", `{}`)
	u := p.current().upstreams[0]
	u.expire(u.live)
	mu.Lock()
	seen = nil
	mu.Unlock()
	mustCall(t, p, "echo", `{}`)
	mu.Lock()
	defer mu.Unlock()
	if len(seen) == 0 || seen[0] != http.MethodGet {
		t.Errorf("the second time began with %v", seen)
	}
}

func TestExpiredSessionIsReportedAndThenNew(t *testing.T) {
	for name, refuse := range map[string]func(w http.ResponseWriter){
		"404": func(w http.ResponseWriter) { http.Error(w, "not found", http.StatusNotFound) },
		"404 with an error": func(w http.ResponseWriter) {
			w.WriteHeader(404)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
		},
		"400 of express": func(w http.ResponseWriter) {
			w.WriteHeader(400)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			notes := &noteBook{}
			var mu sync.Mutex
			gone := map[string]bool{}
			last := ""
			h := legacyOnly(streamable(notes, nil))
			p := proxyFor(t, Options{}, web(t, config.HTTP, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				id := r.Header.Get("Mcp-Session-Id")
				mu.Lock()
				last = max(last, id)
				refused := id != "" && gone[id]
				mu.Unlock()
				if refused {
					notes.add("refused")
					refuse(w)
					return
				}
				h.ServeHTTP(w, r)
			})))
			mustCall(t, p, "echo", `{}`)
			mu.Lock()
			gone[last] = true
			mu.Unlock()
			_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo"})
			mcptest.WantError(t, err, `calling tool "echo" of server "fake"`, "lost", "ended its session")
			if !errors.Is(err, ErrCallLost) {
				t.Errorf("%v is not ErrCallLost", err)
			}
			mustCall(t, p, "echo", `{}`)
			if st := p.Servers()[0]; st.Status != "ready" {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestHeadersGoWithEveryRequestAndToNobodyElse(t *testing.T) {
	for _, status := range []int{301, 302, 307, 308} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				t.Errorf("the other host got %s %v", r.Method, r.Header)
			}))
			defer thief.Close()
			s := web(t, config.Remote, http.RedirectHandler(thief.URL+"/steal", status))
			s.Headers = map[string]string{"Authorization": "Bearer tok-123456789"}
			_, err := proxyFor(t, Options{}, s).Tools(t.Context(), "fake")
			mcptest.WantError(t, err, "redirects to another host", thief.URL, "test.json")
		})
	}
	notes := &noteBook{}
	h := streamable(notes, nil)
	s := web(t, config.HTTP, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "value-of-key" {
			notes.add("a request without the header")
		}
		if !strings.HasSuffix(r.URL.Path, "/") {
			http.Redirect(w, r, r.URL.Path+"/", http.StatusTemporaryRedirect) // the same server: followed
			return
		}
		h.ServeHTTP(w, r)
	}))
	s.Headers = map[string]string{"x-key": "value-of-key"}
	p := proxyFor(t, Options{}, s)
	mustCall(t, p, "echo", `{}`)
	_ = p.Close()
	if len(notes.all) > 0 {
		t.Errorf("%v", notes.all)
	}
}

func TestParameterHeadersAreSent(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "web"}, nil)
	s.AddTool(&mcp.Tool{Name: "größe", InputSchema: json.RawMessage(`{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},"at":{"type":"object","properties":{"depth":{"type":"integer","x-mcp-header":"Depth"}}}}}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: r.Params.Arguments}, nil
		})
	p := proxyFor(t, Options{}, web(t, config.HTTP, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)))
	mustCall(t, p, "größe", `{"region":"zürich","at":{"depth":7}}`) // the SDK's server refuses what does not match
	mustCall(t, p, "größe", `{"region":null}`)
}

func TestClosedRemoteLeavesNoSessionBehind(t *testing.T) {
	deleted := make(chan struct{}, 1)
	h := legacyOnly(streamable(&noteBook{}, nil))
	p := proxyFor(t, Options{}, web(t, config.HTTP, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			select {
			case deleted <- struct{}{}:
			default:
			}
		}
		h.ServeHTTP(w, r)
	})))
	mustCall(t, p, "echo", `{}`)
	begun := time.Now()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("closing took %v", took)
	}
	select {
	case <-deleted:
	default:
		t.Error("the session was not deleted")
	}
}
