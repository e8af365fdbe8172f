package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"sync"
)

// A suiteAdapter is what the conformance suite sees as a server: HTTP in front, and
// `toolcell serve` behind it, with the suite's fixture as the server that code calls.
// What the suite asks of the fixture by name becomes a run whose code asks for it. All
// else goes through as it is: the handshake, what clients say that they can do,
// questions and their states, answers, progress, errors.
type suiteAdapter struct {
	command func(legacy bool) *exec.Cmd // that serves one client

	mu       sync.Mutex
	begun    int
	sessions map[string]*suiteSession // since 2026-07-28 there are none: all requests are ""'s
}

// A suiteSession is a client of a toolcell of its own.
type suiteSession struct {
	cmd *exec.Cmd
	in  io.WriteCloser

	mu   sync.Mutex
	sent int
	open []*suiteRequest // those that toolcell has not answered, oldest first
}

// A suiteRequest is one of the suite, or of the adapter.
type suiteRequest struct {
	id       string
	token    string            // of its progress
	messages chan suiteMessage // that belong to it; the last one is the answer
}

// A suiteMessage is one of JSON-RPC, unread but for what the adapter has to know.
type suiteMessage struct {
	Version string                     `json:"jsonrpc"`
	ID      json.RawMessage            `json:"id,omitempty"`
	Method  string                     `json:"method,omitempty"`
	Params  map[string]json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage            `json:"result,omitempty"`
	Error   json.RawMessage            `json:"error,omitempty"`
}

const sessionHeader = "Mcp-Session-Id"

func (a *suiteAdapter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m suiteMessage
	if r.Method == http.MethodPost && json.NewDecoder(r.Body).Decode(&m) != nil {
		http.Error(w, "no message", http.StatusBadRequest)
		return
	}
	id := r.Header.Get(sessionHeader)
	legacy := id != "" || m.Method == "initialize" && m.Params["_meta"] == nil
	s, id, err := a.session(id, legacy)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusNotFound)
	case r.Method == http.MethodDelete:
		a.end(id)
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.Method == "" || m.ID == nil:
		s.write(m)
		w.WriteHeader(http.StatusAccepted)
	default:
		if legacy {
			w.Header().Set(sessionHeader, id)
		}
		s.serve(r.Context(), w, m, legacy)
	}
}

// session returns a client's session, or begins one.
func (a *suiteAdapter) session(id string, legacy bool) (*suiteSession, string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[id]; s != nil {
		return s, id, nil
	}
	if id != "" {
		return nil, "", fmt.Errorf("there is no session %q", id)
	}
	if legacy {
		a.begun++
		id = "session-" + strconv.Itoa(a.begun)
	}
	s := &suiteSession{cmd: a.command(legacy)}
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, "", err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, "", err
	}
	go s.read(out)
	a.sessions[id] = s
	return s, id, nil
}

// end ends a session, and waits for its toolcell.
func (a *suiteAdapter) end(id string) {
	a.mu.Lock()
	s := a.sessions[id]
	delete(a.sessions, id)
	a.mu.Unlock()
	if s != nil {
		_ = s.in.Close()
		_ = s.cmd.Wait()
	}
}

// endAll ends all sessions.
func (a *suiteAdapter) endAll() {
	a.mu.Lock()
	ids := slices.Collect(maps.Keys(a.sessions))
	a.mu.Unlock()
	for _, id := range ids {
		a.end(id)
	}
}

// serve answers a request.
func (s *suiteSession) serve(ctx context.Context, w http.ResponseWriter, m suiteMessage, legacy bool) {
	id, translate := m.ID, func(result json.RawMessage) json.RawMessage { return result }
	switch code := codeFor(m); {
	case code != "":
		m.Method, m.Params = "tools/call", runOf(code, m.Params)
		translate = printedResult
	case m.Method == "tools/list":
		var tools json.RawMessage
		for one := range s.request(ctx, suiteMessage{Method: "tools/call", Params: runOf(listCode, m.Params)}) {
			tools = printed(one.Result)
		}
		translate = func(result json.RawMessage) json.RawMessage { return withMember(result, "tools", tools) }
	}
	streams := false
	for one := range s.request(ctx, m) {
		if one.Method == "" {
			one.ID, one.Result = id, translate(one.Result)
		}
		body, err := json.Marshal(one)
		if err != nil {
			panic(err)
		}
		switch {
		case one.Method == "" && !streams:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(httpStatus(one.Error, legacy))
			_, _ = w.Write(body)
			return
		case !streams:
			w.Header().Set("Content-Type", "text/event-stream")
			streams = true
		}
		fmt.Fprintf(w, "event: message\ndata: %s\n\n", body)
		w.(http.Flusher).Flush()
	}
}

// httpStatus is that of an answer: since 2026-07-28 it tells errors.
func httpStatus(wire json.RawMessage, legacy bool) int {
	var e struct{ Code int }
	switch _ = json.Unmarshal(wire, &e); {
	case e.Code == 0 || legacy:
		return http.StatusOK
	case e.Code == -32601:
		return http.StatusNotFound
	}
	return http.StatusBadRequest
}

// request sends a request, under another ID: those of several clients may be the same. It
// returns what toolcell sends for it; the last is the answer. A client that leaves takes
// its request back.
func (s *suiteSession) request(ctx context.Context, m suiteMessage) iter.Seq[suiteMessage] {
	return func(yield func(suiteMessage) bool) {
		r := s.begin(m)
		for {
			select {
			case one, more := <-r.messages:
				if !more || !yield(one) {
					return
				}
			case <-ctx.Done():
				s.mu.Lock()
				s.open = slices.DeleteFunc(s.open, func(o *suiteRequest) bool { return o == r })
				s.mu.Unlock()
				s.write(suiteMessage{Method: "notifications/cancelled", Params: map[string]json.RawMessage{"requestId": json.RawMessage(r.id)}})
				return
			}
		}
	}
}

// begin sends a request.
func (s *suiteSession) begin(m suiteMessage) *suiteRequest {
	var meta struct {
		ProgressToken json.RawMessage `json:"progressToken"`
	}
	_ = json.Unmarshal(m.Params["_meta"], &meta)
	s.mu.Lock()
	s.sent++
	m.ID = json.RawMessage(strconv.Itoa(s.sent))
	r := &suiteRequest{id: string(m.ID), token: string(meta.ProgressToken), messages: make(chan suiteMessage, 100)}
	s.open = append(s.open, r)
	s.mu.Unlock()
	s.write(m)
	return r
}

func (s *suiteSession) write(m suiteMessage) {
	m.Version = "2.0"
	body, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.in.Write(append(body, '\n'))
}

// read passes on what toolcell sends, to the request that it belongs to.
func (s *suiteSession) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 10<<20)
	for lines.Scan() {
		var m suiteMessage
		if json.Unmarshal(lines.Bytes(), &m) == nil {
			s.passOn(m)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.open { // toolcell has ended
		close(r.messages)
	}
	s.open = nil
}

func (s *suiteSession) passOn(m suiteMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := len(s.open) - 1 // questions do not say which call they are for: clients have one at a time
	token, progress := m.Params["progressToken"]
	switch {
	case m.Method == "":
		i = slices.IndexFunc(s.open, func(r *suiteRequest) bool { return r.id == string(m.ID) })
	case progress:
		i = slices.IndexFunc(s.open, func(r *suiteRequest) bool { return r.token == string(token) })
	}
	if i < 0 {
		return // the client has left
	}
	r := s.open[i]
	r.messages <- m
	if m.Method == "" {
		close(r.messages)
		s.open = slices.Delete(s.open, i, i+1)
	}
}
