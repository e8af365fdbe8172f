package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// tellingServer keeps the requests that it gets.
type tellingServer struct {
	*httptest.Server
	mu  sync.Mutex
	got []gotRequest
}

type gotRequest struct {
	method, path, body string
	header             http.Header
}

// serve starts a server, which answers a ping if answer is nil.
func serve(t *testing.T, answer http.HandlerFunc) *tellingServer {
	t.Helper()
	if answer == nil {
		answer = func(w http.ResponseWriter, _ *http.Request) {
			mcptest.Respond(w, http.StatusOK, json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{}}`))
		}
	}
	s := &tellingServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		s.mu.Lock()
		s.got = append(s.got, gotRequest{r.Method, r.URL.Path, string(body), r.Header.Clone()})
		n := len(s.got)
		s.mu.Unlock()
		if n > 20 {
			http.Error(w, "too many requests for a test", http.StatusInternalServerError)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *tellingServer) requests() []gotRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]gotRequest(nil), s.got...)
}

// linkWith returns a link over one transport. With tokens, the user may log in.
func linkWith(t *testing.T, over config.Transport, address string, tokens TokenSource) *Link {
	t.Helper()
	r, err := New(config.Server{Name: "fake", URL: address, Source: "test.json"}, over, message.NewNotifications(func() {}), tokens, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Stop(); r.WaitClosed() })
	return r
}

// soon bounds what could hang.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// await waits for an event that is to come at once.
func await[T any](t *testing.T, event <-chan T) (what T) {
	t.Helper()
	select {
	case what = <-event:
	case <-time.After(10 * time.Second):
		t.Fatal("it did not come")
	}
	return what
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// exchange sends a message as the SDK does, and returns the answer with its body.
func exchange(ctx context.Context, r *Link, method, body string, header ...string) (*http.Response, string, error) {
	var out io.Reader
	if body != "" {
		out = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.server.URL, out)
	if err != nil {
		return nil, "", err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := r.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp, string(answer), err
}

func isPanic(err error) bool { return errors.Is(err, contain.ErrInternal) }

// fakeTokens is a TokenSource that records what it is asked and told.
type fakeTokens struct {
	token   func(rejected string) (string, error)
	refused func() (again bool, err error)
	told    []string
}

func (f *fakeTokens) Token(_ context.Context, rejected string) (string, error) {
	f.told = append(f.told, "token, rejected "+rejected)
	return f.token(rejected)
}

func (f *fakeTokens) Refused(_ context.Context, token string, answer *http.Response) (bool, error) {
	f.told = append(f.told, fmt.Sprintf("refused %s, %d", token, answer.StatusCode))
	return f.refused()
}

func TestTokensAreRenewedOnce(t *testing.T) {
	renew := func(rejected string) (string, error) {
		return map[string]string{"": "old", "old": "new"}[rejected], nil
	}
	none := func(string) (string, error) { return "", nil }
	for name, tt := range map[string]struct {
		accepts string
		token   func(string) (string, error)
		refused func() (bool, error)
		sent    []string // the Authorization of each request
		told    []string
		want    string // the error
	}{
		"accepted": {
			accepts: "Bearer old", token: renew,
			sent: []string{"Bearer old"}, told: []string{"token, rejected "},
		},
		"expired": {
			accepts: "Bearer new", token: renew,
			sent: []string{"Bearer old", "Bearer new"}, told: []string{"token, rejected ", "token, rejected old"},
		},
		"the new one is refused": {
			token: renew, refused: func() (bool, error) { return false, nil },
			sent: []string{"Bearer old", "Bearer new"}, told: []string{"token, rejected ", "token, rejected old", "refused new, 401"},
			want: "servers login fake",
		},
		"another one is refused too": {
			token: renew, refused: func() (bool, error) { return true, nil },
			sent: []string{"Bearer old", "Bearer new", "Bearer new"},
			told: []string{"token, rejected ", "token, rejected old", "refused new, 401", "token, rejected old"},
			want: "servers login fake",
		},
		"none": {
			token: none, refused: func() (bool, error) { return false, errors.New("log in, please") },
			sent: []string{""}, told: []string{"token, rejected ", "refused , 401"},
			want: "log in, please",
		},
		"cannot be renewed": {
			token: func(string) (string, error) { return "", errors.New("the token expired") },
			told:  []string{"token, rejected "},
			want:  "the token expired",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if tt.accepts == "" || r.Header.Get("Authorization") != tt.accepts {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				mcptest.Respond(w, http.StatusOK, json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{}}`))
			})
			tokens := &fakeTokens{token: tt.token, refused: tt.refused}
			_, _, err := exchange(soon(t), linkWith(t, config.HTTP, server.URL, tokens), http.MethodPost, ping)
			if tt.want == "" && err != nil {
				t.Error(err)
			} else if tt.want != "" {
				mcptest.WantError(t, err, tt.want)
				if failed, ok := errors.AsType[*Error](err); !ok || !failed.IsCurable() {
					t.Errorf("the user cannot log in at %#v", err)
				}
			}
			var sent []string
			for _, r := range server.requests() {
				sent = append(sent, r.header.Get("Authorization"))
				if r.body != ping {
					t.Errorf("sent %q", r.body)
				}
			}
			if fmt.Sprintf("%q", sent) != fmt.Sprintf("%q", tt.sent) || fmt.Sprintf("%q", tokens.told) != fmt.Sprintf("%q", tt.told) {
				t.Errorf("sent %q, told %q", sent, tokens.told)
			}
		})
	}
}

// TestDiscoverThatWantsALoginFailsTheHandshake, whatever the older handshake comes to.
func TestDiscoverThatWantsALoginFailsTheHandshake(t *testing.T) {
	for name, tt := range map[string]struct {
		method  string
		refused error
		want    string
	}{
		"said by the status": {message.MethodDiscover, nil, "servers login fake"},
		"said by the tokens": {message.MethodDiscover, errors.New("log in, please"), "log in, please"},
		"another method":     {"initialize", nil, "the other error"},
	} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
		tokens := &fakeTokens{token: func(string) (string, error) { return "", nil }, refused: func() (bool, error) { return false, tt.refused }}
		r := linkWith(t, config.HTTP, server.URL, tokens)
		_, _, err := exchange(soon(t), r, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"`+tt.method+`"}`)
		if err == nil || isPanic(err) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.Fail(errors.New("x"), errors.New("the other error")); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: the handshake fails with %v, want %s", name, err, tt.want)
		}
	}
}

func TestNothingIsSentToAnotherHost(t *testing.T) {
	other, server := serve(t, nil), serve(t, nil)
	req, err := http.NewRequestWithContext(soon(t), http.MethodPost, other.URL, strings.NewReader(ping))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := linkTo(t, server.URL, map[string]string{"X-Api-Key": "s3cret"}).RoundTrip(req)
	if err == nil {
		resp.Body.Close()
	}
	mcptest.WantError(t, err, "wants messages to be sent to another host, "+other.URL+", which is refused")
	if got := append(other.requests(), server.requests()...); len(got) > 0 {
		t.Errorf("sent %v", got)
	}
}

func TestRedirectsKeepTheMessage(t *testing.T) {
	for name, tt := range map[string]struct {
		status   int
		location string
		sent     []string // paths
		want     []string
	}{
		"kept":       {http.StatusTemporaryRedirect, "/new", []string{"/", "/new"}, nil},
		"lost":       {http.StatusFound, "/new", []string{"/"}, []string{"/new in a way that loses the message", "test.json"}},
		"no address": {http.StatusTemporaryRedirect, "http://[::1", []string{"/"}, []string{"redirects to what is no address"}},
	} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				w.Header().Set("Location", tt.location)
				w.Header().Set("Connection", "close") // package http sends again over an old connection
				w.WriteHeader(tt.status)
				return
			}
			mcptest.Respond(w, http.StatusOK, json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{}}`))
		})
		_, _, err := exchange(soon(t), linkTo(t, server.URL, nil), http.MethodPost, ping)
		if tt.want != nil {
			mcptest.WantError(t, err, tt.want...)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var sent []string
		for _, r := range server.requests() {
			sent = append(sent, r.path)
			if r.body != ping {
				t.Errorf("%s: sent %q to %s", name, r.body, r.path)
			}
		}
		if fmt.Sprint(sent) != fmt.Sprint(tt.sent) {
			t.Errorf("%s: sent to %v, want %v", name, sent, tt.sent)
		}
	}
}

// TestHeadersOfAServerAreBounded: package http takes 10 MiB of them.
func TestHeadersOfAServerAreBounded(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 1<<20+8<<10))
		mcptest.Respond(w, http.StatusOK, json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	})
	_, _, err := exchange(soon(t), linkTo(t, server.URL, nil), http.MethodPost, ping)
	mcptest.WantError(t, err, "broke off", "headers exceeded 1048576 bytes")
}

func TestEntryDoesNotSayWhatAnswersItAccepts(t *testing.T) {
	server := serve(t, nil)
	r := linkTo(t, server.URL, map[string]string{"accept": "text/html", "X-A": "b"})
	if _, _, err := exchange(soon(t), r, http.MethodPost, ping, "Accept", "application/json"); err != nil {
		t.Fatal(err)
	}
	if h := server.requests()[0].header; h.Get("Accept") != "application/json" || h.Get("X-A") != "b" {
		t.Errorf("sent %v", h)
	}
}

// TestMessagesOfOurOwnBelongToTheSession: they have the version and the ID that the SDK's
// messages had.
func TestMessagesOfOurOwnBelongToTheSession(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(sessionIDKey, "s1")
		mcptest.Respond(w, http.StatusOK, json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	})
	r := linkTo(t, server.URL, nil)
	id, err := jsonrpc.MakeID("x")
	if err != nil {
		t.Fatal(err)
	}
	answer := &jsonrpc.Response{ID: id, Result: json.RawMessage("{}")}
	if err := r.respond(soon(t), answer); err != nil {
		t.Fatal(err)
	}
	if _, _, err := exchange(soon(t), r, http.MethodPost, ping, versionKey, "2026-07-28"); err != nil {
		t.Fatal(err)
	}
	if err := r.respond(soon(t), answer); err != nil {
		t.Fatal(err)
	}
	got := server.requests()
	for i, want := range map[int]http.Header{
		0: {versionKey: {message.LegacyProtocol}},
		2: {versionKey: {"2026-07-28"}, sessionIDKey: {"s1"}},
	} {
		h := got[i].header
		if h.Get(versionKey) != want.Get(versionKey) || h.Get(sessionIDKey) != want.Get(sessionIDKey) ||
			h.Get("Accept") != "application/json, text/event-stream" || h.Get("Content-Type") != "application/json" ||
			got[i].method != http.MethodPost || got[i].body != `{"jsonrpc":"2.0","id":"x","result":{}}` {
			t.Errorf("message %d: %+v", i, got[i])
		}
	}
	get, err := r.newRequest(t.Context(), http.MethodGet, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(get.Header) != fmt.Sprint(http.Header{"Accept": {"text/event-stream"}, sessionIDKey: {"s1"}}) {
		t.Errorf("asks for a stream with %v", get.Header)
	}
}

func TestAnswersThatCannotBeSentAreErrors(t *testing.T) {
	server := serve(t, nil)
	r := linkTo(t, server.URL, nil)
	id, err := jsonrpc.MakeID("x")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.respond(soon(t), &jsonrpc.Response{ID: id, Result: json.RawMessage("{")}); err == nil || len(server.requests()) > 0 {
		t.Errorf("half an answer: %v; sent %v", err, server.requests())
	}
	server.Close()
	mcptest.WantError(t, r.respond(soon(t), &jsonrpc.Response{ID: id, Result: json.RawMessage("{}")}), "nothing listens there")
}

// TestAnswersToAServerHaveItsIDs: the SDK answers requests that have ours, and the user's
// answers do not go through the SDK.
func TestAnswersToAServerHaveItsIDs(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	r := linkTo(t, server.URL, nil)
	const id = `"a long ID of the server, which ours is not"`
	msg, err := r.notes.Decode(t.Context(), []byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`), nil)
	asked, ok := msg.(*jsonrpc.Request)
	if err != nil || !ok {
		t.Fatal(msg, err)
	}
	answer, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: asked.ID, Result: json.RawMessage("{}")})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := exchange(soon(t), r, http.MethodPost, string(answer)); err != nil {
		t.Fatal(err)
	}
	c, questions := &message.Call{}, message.NewQuestions()
	stop := r.notes.Collect(soon(t), c, questions)
	_, err = r.notes.Decode(t.Context(), []byte(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`), c)
	if err != nil || len(questions) != 1 {
		t.Fatalf("%d questions, %v", len(questions), err)
	}
	(<-questions).Answer(json.RawMessage(`{"action":"accept"}`), nil)
	stop()
	want := []string{`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`, `{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}`}
	got := server.requests()
	for i := range want {
		if i >= len(got) || got[i].body != want[i] {
			t.Errorf("sent %+v, want %s", got, want[i])
		}
	}
}

// readCloser is the body of a request of the SDK.
type readCloser struct {
	io.Reader
	closed bool
}

func (b *readCloser) Close() error {
	b.closed = true
	return nil
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func TestMessagesAreSentWholeOrNotAtAll(t *testing.T) {
	half := errors.New("half of it is missing")
	for name, tt := range map[string]struct {
		body io.Reader
		want string // the error
	}{
		"whole":    {strings.NewReader(ping), ""},
		"half":     {io.MultiReader(strings.NewReader(ping), failingReader{half}), half.Error()},
		"not JSON": {strings.NewReader("{"), "unexpected end of JSON"},
	} {
		server := serve(t, nil)
		body := &readCloser{Reader: tt.body}
		req, err := http.NewRequestWithContext(soon(t), http.MethodPost, server.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := linkTo(t, server.URL, nil).RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		sent := len(server.requests())
		if tt.want == "" && (err != nil || sent != 1) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || sent != 0) {
			t.Errorf("%s: %v; sent %d", name, err, sent)
		}
		if !body.closed {
			t.Errorf("%s: the body is not closed", name)
		}
	}
}

func TestAnswersComeToTheirCalls(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var asked outgoingBody
		_ = json.NewDecoder(r.Body).Decode(&asked)
		if asked.Method == "notifications/cancelled" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		mcptest.Respond(w, http.StatusOK, json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{"big":12345678901234567890}}`))
	})
	r := linkTo(t, server.URL, nil)
	if !r.HangsOnDiscover(t.Context(), 0) {
		t.Error("nothing was sent, and the server answered")
	}
	_, got, err := exchange(soon(t), r, http.MethodPost, ping)
	if want := `{"jsonrpc":"2.0","id":1,"result":{"big":12345678901234567890}}`; err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	if r.HangsOnDiscover(t.Context(), 0) {
		t.Error("a server that answered hangs")
	}
	c := &message.Call{}
	ctx := c.Begin(soon(t))
	defer c.GiveUp()
	if _, _, err := exchange(ctx, r, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`); err != nil {
		t.Error(err)
	}
	if reply, ok := c.Result(); !ok || string(reply.Result) != `{"big":12345678901234567890}` {
		t.Errorf("the call came to %s, %v", reply.Result, ok)
	}
	// What becomes of another message does not fail the call.
	resp, _, err := exchange(ctx, r, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, sessionIDKey, "s1")
	if err != nil || resp.StatusCode != http.StatusNotFound || !r.Expired() || c.Failure() != nil {
		t.Errorf("a note of a session that is gone: %v; the call: %v", err, c.Failure())
	}
}

func TestCallsKnowWhyTheyFail(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for name, tt := range map[string]struct {
		token func(string) (string, error)
		want  func(error) bool
	}{
		"refused": {func(string) (string, error) { return "", nil }, func(err error) bool {
			failed, ok := errors.AsType[*Error](err)
			return ok && failed.status == http.StatusTeapot
		}},
		"panic": {func(string) (string, error) { panic("x") }, isPanic},
	} {
		c := &message.Call{}
		_, _, err := exchange(c.Begin(soon(t)), linkWith(t, config.HTTP, server.URL, &fakeTokens{token: tt.token}), http.MethodPost, ping)
		c.GiveUp()
		if err == nil || !errors.Is(c.Failure(), err) || !tt.want(err) {
			t.Errorf("%s: %v; the call: %v", name, err, c.Failure())
		}
	}
}

// TestCallsAreNotKeptWhenTheyAreOver: a link may live for long, and a result may be large.
func TestCallsAreNotKeptWhenTheyAreOver(t *testing.T) {
	server := serve(t, nil)
	for name, tt := range map[string]struct {
		tokens error
		want   string
	}{
		"answered": {nil, ""},
		"failed":   {errors.New("no token"), "no token"},
	} {
		r := linkWith(t, config.HTTP, server.URL, &fakeTokens{token: func(string) (string, error) { return "", tt.tokens }})
		call := func() weak.Pointer[message.Call] {
			c := &message.Call{}
			ctx := c.Begin(soon(t))
			defer c.GiveUp()
			_, _, err := exchange(ctx, r, http.MethodPost, ping)
			if got := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
				t.Errorf("%s: %v", name, err)
			}
			return weak.Make(c)
		}
		first := call()
		for range 3 { // the connection may hold the last request
			call()
		}
		for i := 0; first.Value() != nil; i++ {
			if i == 100 {
				t.Fatalf("%s: the call is kept", name)
			}
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
	}
}

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
	server.Close()
	_, _, err = exchange(soon(t), r, http.MethodDelete, "")
	if err == nil || isPanic(err) {
		t.Errorf("a server that is gone: %v", err)
	}
}

func TestServerThatIsGoneIsNamed(t *testing.T) {
	server := serve(t, nil)
	server.Close()
	_, _, err := exchange(soon(t), linkTo(t, server.URL, nil), http.MethodPost, ping)
	mcptest.WantError(t, err, "cannot reach "+server.URL, "nothing listens there")
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
		case <-time.After(5 * time.Second):
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
