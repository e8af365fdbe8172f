package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A fakeModel is a model on loopback, for products that are agents: it answers in the
// HTTP APIs that they speak, and does what its play says. It sees what a real one would.
type fakeModel struct {
	url  string
	play func(results []string) move

	mu       sync.Mutex
	requests []string   // bodies, in the order in which they came
	results  [][]string // of tools, as each request for a move had them
}

// A move is what the model does next: it calls a tool, or ends its turn with a text.
type move struct {
	tool string // the end of its name: clients put names of their own before it
	args map[string]any
	text string
}

// modelAPIs are the ends of paths, and the APIs there.
var modelAPIs = map[string]modelAPI{
	"/messages":              {readMessages, writeMessages},
	"/chat/completions":      {readCompletions, writeCompletions},
	":streamGenerateContent": {readGenerate, writeGenerate},
	":generateContent":       {readGenerate, writeGenerate},
}

// A modelAPI is how a product talks with its model.
type modelAPI struct {
	read  func(body []byte) (asked turn, err error)
	write func(w http.ResponseWriter, m move, id string, stream bool)
}

// A turn is what a request to a model has.
type turn struct {
	tools   []string // that the model may call
	results []string // of the calls that it made, in their order
	stream  bool
}

// startModel starts a model.
func startModel(t *testing.T, play func(results []string) move) *fakeModel {
	t.Helper()
	m := &fakeModel{play: play}
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	m.url = s.URL
	return m
}

func (m *fakeModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body json.RawMessage
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<20)).Decode(&body); err != nil {
		http.NotFound(w, r) // such as a list of models
		return
	}
	for end, api := range modelAPIs {
		if !strings.HasSuffix(r.URL.Path, end) {
			continue
		}
		asked, err := api.read(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		asked.stream = asked.stream || strings.HasPrefix(end, ":stream")
		next := m.next(asked, string(body))
		if asked.stream {
			w.Header().Set("Content-Type", "text/event-stream")
		} else {
			w.Header().Set("Content-Type", "application/json")
		}
		api.write(w, next, fmt.Sprintf("call_%d", len(asked.results)+1), asked.stream)
		return
	}
	http.NotFound(w, r)
}

// next is the next move. Requests without our tool are a product's own, such as for a
// title.
func (m *fakeModel) next(asked turn, body string) move {
	ours := slices.ContainsFunc(asked.tools, func(name string) bool { return strings.HasSuffix(name, "run_python") })
	m.mu.Lock()
	m.requests = append(m.requests, body)
	if ours {
		m.results = append(m.results, asked.results)
	}
	m.mu.Unlock()
	if !ours {
		return move{text: "none"}
	}
	next := m.play(asked.results) // it may wait for the test
	for _, name := range asked.tools {
		if next.tool != "" && strings.HasSuffix(name, next.tool) {
			next.tool = name
			return next
		}
	}
	if next.tool != "" {
		return move{text: fmt.Sprintf("there is no tool %s in %q", next.tool, asked.tools)}
	}
	return next
}

// seen returns the results of tools that the model has seen last.
func (m *fakeModel) seen() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.results) == 0 {
		return nil
	}
	return m.results[len(m.results)-1]
}
