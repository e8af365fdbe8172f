//nolint:bodyclose // exchange closes them
package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

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
	r = linkTo(t, gone, nil)
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
			if i == 100_000 {
				t.Fatalf("%s: the call is kept", name)
			}
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
	}
}
