//nolint:bodyclose // exchange closes them
package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// TestRefusedDiscoverReachesTheSDK, which looks for versions in it.
func TestRefusedDiscoverReachesTheSDK(t *testing.T) {
	const said = `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"x","data":{"supported":["2025-06-18"]}}}`
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		mcptest.Respond(w, http.StatusBadRequest, json.RawMessage(said))
	})
	r := linkTo(t, server.URL, nil)
	resp, got, err := exchange(soon(t), r, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`)
	if err != nil || resp.StatusCode != http.StatusBadRequest || strings.TrimSpace(got) != said {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestEndOfASessionIsSent(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ended") })
	r, err := New(config.Server{URL: server.URL, Headers: map[string]string{"X-A": "b"}}, config.HTTP, message.NewNotifications(func() {}),
		&fakeTokens{token: func(string) (string, error) { return "secret", nil }}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer r.WaitClosed()
	defer r.Stop()
	resp, got, err := exchange(soon(t), r, http.MethodDelete, "", sessionIDKey, "s1")
	if err != nil || resp.StatusCode != http.StatusOK || got != "" {
		t.Fatalf("got %q, %v", got, err)
	}
	sent := server.requests()[0]
	if h := sent.header; sent.method != http.MethodDelete || h.Get(sessionIDKey) != "s1" || h.Get("X-A") != "b" || h.Get("Authorization") != "Bearer secret" {
		t.Errorf("sent %+v", sent)
	}
	_, _, err = exchange(soon(t), linkTo(t, gone, nil), http.MethodDelete, "")
	if err == nil || isPanic(err) {
		t.Errorf("a server that is gone: %v", err)
	}
}

func TestServerThatIsGoneIsNamed(t *testing.T) {
	_, _, err := exchange(soon(t), linkTo(t, gone, nil), http.MethodPost, ping)
	mcptest.WantError(t, err, "cannot reach "+gone, "nothing listens there")
}

func TestStreamsAreOpened(t *testing.T) {
	ended := make(chan struct{})
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last-Event-Id") == "1" {
			w.Header().Set("Content-Type", eventStream)
			_, _ = io.WriteString(w, "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")
			return
		}
		defer close(ended)
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, strings.Repeat("x", 2*maxErrorBody))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(2 * time.Minute):
			t.Error("a refused stream goes on")
		}
	})
	r := linkTo(t, server.URL, nil)
	_, got, err := exchange(soon(t), r, http.MethodGet, "", "Last-Event-Id", "1")
	if want := "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"; err != nil && !errors.Is(err, io.EOF) || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	_, _, err = exchange(t.Context(), r, http.MethodGet, "")
	mcptest.WantError(t, err, "404 Not Found")
	await(t, ended)
}

// TestStopEndsWhatGoesOn: requests in flight fail, and the connections are closed.
func TestStopEndsWhatGoesOn(t *testing.T) {
	begun, closed := make(chan struct{}), make(chan struct{}, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Wait") != "" {
			_, _ = io.Copy(io.Discard, r.Body) // then the server notices the end
			close(begun)
			<-r.Context().Done()
			return
		}
		mcptest.Respond(w, http.StatusOK, json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	defer server.Close()

	r := linkTo(t, server.URL, nil)
	failed := make(chan error, 1)
	ctx := soon(t)
	go func() {
		defer contain.Recover("sending", nil)
		_, _, err := exchange(ctx, r, http.MethodPost, ping, "X-Wait", "1")
		failed <- err
	}()
	await(t, begun)
	r.Stop()
	err := await(t, failed)
	if e, ok := errors.AsType[*Error](err); !ok || !e.Lost || e.Error() != "the connection was closed" {
		t.Errorf("a request in flight: %v", err)
	}
	await(t, closed)
	select {
	case <-r.Down():
		mcptest.WantError(t, r.Ended(), "closed the connection")
	default:
		t.Error("the link is not down")
	}

	idle := linkTo(t, server.URL, nil)
	if _, _, err := exchange(ctx, idle, http.MethodPost, ping); err != nil {
		t.Fatal(err)
	}
	idle.Stop()
	idle.WaitClosed()
	await(t, closed)
}

func TestWaitClosedWaitsForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := linkTo(t, "https://mcp.example", nil)
		var ended atomic.Bool
		r.work.Go(func() {
			<-r.ctx.Done()
			time.Sleep(time.Second)
			ended.Store(true)
		})
		r.Stop()
		r.WaitClosed()
		if !ended.Load() {
			t.Error("it goes on")
		}
	})
}

func TestSSEMessagesGoToTheEndpoint(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /":
			w.Header().Set("Content-Type", eventStream)
			_, _ = io.WriteString(w, "event: endpoint\ndata: /messages\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
	r := linkWith(t, config.SSE, server.URL, nil)
	id, err := jsonrpc.MakeID("x")
	if err != nil {
		t.Fatal(err)
	}
	answer := &jsonrpc.Response{ID: id, Result: json.RawMessage("{}")}
	if err := r.respond(soon(t), answer); !errors.Is(err, errNoEndpoint) {
		t.Errorf("before the endpoint is known: %v", err)
	}
	conn, err := r.Connect(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := r.respond(soon(t), answer); err != nil {
		t.Error(err)
	}
	got := server.requests()
	if len(got) != 2 || got[1].path != "/messages" || got[1].body != `{"jsonrpc":"2.0","id":"x","result":{}}` {
		t.Errorf("sent %+v", got)
	}
}

func TestSSEServerThatRefusesIsNotConnected(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	r := linkWith(t, config.SSE, server.URL, nil)
	conn, err := r.Connect(soon(t))
	if conn != nil || r.events.Load() != nil {
		t.Errorf("connected: %v", conn)
	}
	mcptest.WantError(t, err, "404 Not Found")
}

// answerMCP answers as an MCP server does that keeps sessions, but for the methods that
// answer takes.
func answerMCP(version string, answer func(w http.ResponseWriter, r *http.Request, method string) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked outgoingBody
		_ = json.NewDecoder(r.Body).Decode(&asked)
		result := `{}`
		switch {
		case answer != nil && answer(w, r, asked.Method):
			return
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case !asked.isCall():
			w.WriteHeader(http.StatusAccepted)
			return
		case asked.Method == message.MethodInitialize, asked.Method == message.MethodDiscover:
			result = `{"protocolVersion":"` + version + `","supportedVersions":["` + version + `"],"capabilities":{},"serverInfo":{"name":"s","version":"1"}}`
		}
		w.Header().Set(sessionIDKey, "s1")
		mcptest.Respond(w, http.StatusOK, json.RawMessage(`{"jsonrpc":"2.0","id":`+string(asked.ID)+`,"result":`+result+`}`))
	}
}

func sessionOver(t *testing.T, r *Link, version string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	cs, err := client.Connect(soon(t), r, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Stop(); _ = cs.Close() })
	return cs
}

// wantEnd checks how a link ends.
func wantEnd(t *testing.T, r *Link, expired bool, want string) {
	t.Helper()
	await(t, r.Down())
	if err := r.Ended(); err == nil || !strings.HasPrefix(err.Error(), want) || r.Expired() != expired {
		t.Errorf("it ended with %v, expired %v; want %s", err, r.Expired(), want)
	}
}

func TestEndOfASessionTakesTheLinkDown(t *testing.T) {
	for name, tt := range map[string]struct {
		end     func(cs *mcp.ClientSession)
		expired bool
		want    string
	}{
		"closed":          {func(cs *mcp.ClientSession) { _ = cs.Close() }, false, "closed the connection"},
		"expired":         {func(cs *mcp.ClientSession) { _, _ = cs.ListTools(t.Context(), nil) }, true, "ended its session"},
		"another session": {func(cs *mcp.ClientSession) { _, _ = cs.ListPrompts(t.Context(), nil) }, false, "broke the connection: "},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, answerMCP(message.LegacyProtocol, func(w http.ResponseWriter, _ *http.Request, method string) bool {
				switch method {
				case "tools/list":
					w.WriteHeader(http.StatusNotFound)
				case "prompts/list":
					w.Header().Set(sessionIDKey, "s2")
					mcptest.Respond(w, http.StatusOK, json.RawMessage(`{"jsonrpc":"2.0","id":2,"result":{}}`))
				}
				return method == "tools/list" || method == "prompts/list"
			}))
			r := linkWith(t, config.HTTP, server.URL, nil)
			cs := sessionOver(t, r, message.LegacyProtocol)
			r.Begin(soon(t), cs, false)
			tt.end(cs)
			wantEnd(t, r, tt.expired, tt.want)
		})
	}
}

// TestBeginWaitsForTheStreamOfQuestions of an older server, and opens none at a newer one.
func TestBeginWaitsForTheStreamOfQuestions(t *testing.T) {
	for version, streams := range map[string]int{message.LegacyProtocol: 1, FirstWithHeaders: 0} {
		server := serve(t, answerMCP(version, nil))
		r := linkWith(t, config.HTTP, server.URL, nil)
		r.Begin(soon(t), sessionOver(t, r, version), true)
		got := 0
		for _, s := range server.requests() {
			if s.method != http.MethodGet {
				continue
			}
			got++
			if s.header.Get(versionKey) != version || s.header.Get(sessionIDKey) != "s1" || s.header.Get("Accept") != eventStream {
				t.Errorf("%s: asked for a stream with %v", version, s.header)
			}
		}
		if got != streams {
			t.Errorf("%s: asked for %d streams, want %d", version, got, streams)
		}
	}
}

// TestSSEHasOneStream, over which everything comes.
func TestSSEHasOneStream(t *testing.T) {
	sse := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return mcp.NewServer(&mcp.Implementation{Name: "s"}, nil) }, nil)
	server := serve(t, sse.ServeHTTP)
	r := linkWith(t, config.SSE, server.URL, nil)
	r.Begin(soon(t), sessionOver(t, r, message.LegacyProtocol), true)
	streams := 0
	for _, s := range server.requests() {
		if s.method == http.MethodGet {
			streams++
		}
	}
	if streams != 1 {
		t.Errorf("opened %d streams", streams)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestBeginWaitsForAStreamOnlyIfTheServerMayAsk, and not for long: some begin their stream
// with the first event.
func TestBeginWaitsForAStreamOnlyIfTheServerMayAsk(t *testing.T) {
	for asks, want := range map[bool]time.Duration{true: streamWithin, false: 0} {
		synctest.Test(t, func(t *testing.T) {
			r := linkTo(t, "https://mcp.example", nil)
			client, server := r.client, answerMCP(message.LegacyProtocol, nil)
			t.Cleanup(func() { synctest.Wait(); r.client = client })
			r.client = roundTrip(func(req *http.Request) (*http.Response, error) {
				if req.Method == http.MethodGet {
					<-req.Context().Done()
					return nil, req.Context().Err()
				}
				w := httptest.NewRecorder()
				server(w, req)
				return w.Result(), nil
			})
			cs := sessionOver(t, r, message.LegacyProtocol)
			begun := time.Now()
			r.Begin(soon(t), cs, asks)
			if waited := time.Since(begun); waited != want {
				t.Errorf("asks %v: waited %v, want %v", asks, waited, want)
			}
		})
	}
}

func TestStartErrorsSayWhatIsWrong(t *testing.T) {
	late, timeout := errors.New("was not ready"), fmt.Errorf("it: %w", message.ErrNoDiscover)
	refused := &Error{text: "refused"}
	lost := errors.New("x")
	for name, tt := range map[string]struct {
		over       config.Transport
		prepare    func(r *Link)
		err, cause error
		suspect    bool
		want       string
	}{
		"login":         {config.HTTP, func(r *Link) { r.denied.Store(&Error{text: "log in"}) }, refused, late, false, "log in"},
		"refused":       {config.HTTP, nil, fmt.Errorf("the SDK: %w", refused), late, false, "refused"},
		"forgotten":     {config.HTTP, func(r *Link) { r.markDown(errExpired) }, lost, nil, false, "the server forgot the session that it had just begun; if several of it run behind one address, they have to share their sessions"},
		"down":          {config.HTTP, func(r *Link) { r.markDown(errors.New("closed its stream")) }, lost, nil, false, "closed its stream"},
		"broken":        {config.HTTP, nil, lost, nil, false, "the connection to https://mcp.example broke off: x"},
		"late":          {config.HTTP, func(r *Link) { r.answered.Store(true) }, lost, late, false, "was not ready"},
		"late endpoint": {config.SSE, func(r *Link) { r.answered.Store(true) }, lost, late, false, "was not ready: the stream of events began, but the address to send to (the endpoint event) did not come"},
		"late stream":   {config.SSE, nil, lost, late, false, "was not ready"},
		"hangs":         {config.HTTP, func(r *Link) { r.asked.Store(true) }, lost, timeout, true, "it: did not answer server/discover"},
		"asked":         {config.HTTP, func(r *Link) { r.asked.Store(true) }, lost, late, false, "was not ready"},
	} {
		r := linkWith(t, tt.over, "https://mcp.example", nil)
		if tt.prepare != nil {
			tt.prepare(r)
		}
		suspect, why := r.Fail(tt.err, tt.cause)
		if why == nil || why.Error() != tt.want || suspect != tt.suspect {
			t.Errorf("%s: %v, suspect %v; want %s", name, why, suspect, tt.want)
		}
	}
}

// TestServerThatTookDiscoverIsSuspect: it may hang on that method.
func TestServerThatTookDiscoverIsSuspect(t *testing.T) {
	for method, want := range map[string]bool{message.MethodDiscover: true, message.MethodInitialize: false} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
		r := linkWith(t, config.HTTP, server.URL, nil)
		_, _, err := exchange(soon(t), r, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`)
		if suspect, _ := r.Fail(err, message.ErrNoDiscover); suspect != want {
			t.Errorf("%s: suspect %v", method, suspect)
		}
	}
}
