package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

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
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// await waits for an event that is to come at once.
func await[T any](t *testing.T, event <-chan T) (what T) {
	t.Helper()
	select {
	case what = <-event:
	case <-time.After(2 * time.Minute):
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
