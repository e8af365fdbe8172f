package mcpproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	methodListTools     = "tools/list"
	methodCallTool      = "tools/call"
	methodListResources = "resources/list"
	methodListTemplates = "resources/templates/list"
	methodReadResource  = "resources/read"
	methodListPrompts   = "prompts/list"
	methodGetPrompt     = "prompts/get"
)

// A link carries one session: a process and its pipes, or HTTP requests.
type link interface {
	// down is closed when the server ended or stopped talking.
	down() <-chan struct{}
	// stop ends the link, and with it the requests in flight. It may be called
	// at any time and more than once.
	stop()
	// ended waits for the end and says in words how it came.
	ended() string
	// expired reports that the server ended a session that it no longer
	// wanted, which is no fault.
	expired() bool
}

// session is one live connection: a link and the MCP session over it.
type session struct {
	link  link
	stdio *stdioTransport // nil over HTTP
	meta  mcp.Meta        // that the protocol wants in each request over it
	notes *notifications
	mcp   *mcp.ClientSession
	since time.Time
}

// rawParams are the parameters of a method whose result is wanted as it is.
type rawParams struct {
	mcp.ParamsBase
	Name      string          `json:"name,omitempty"`
	URI       string          `json:"uri,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Cursor    string          `json:"cursor,omitempty"`

	// schema is the tool's, which may ask for arguments to be sent as headers.
	schema json.RawMessage
	// progress is called with what the server says of the request while it works
	// on it; total is 0 if it is not known.
	progress func(done, total float64, text string)
}

// withMeta returns the parameters with more metadata.
func (p *rawParams) withMeta(meta mcp.Meta) *rawParams {
	if len(meta) == 0 {
		return p
	}
	more := *p
	more.Meta = maps.Clone(meta)
	maps.Copy(more.Meta, p.Meta)
	return &more
}

// rawResult keeps the bytes of a result.
type rawResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

func (r *rawResult) UnmarshalJSON(data []byte) error {
	r.raw = append(r.raw[:0], data...)
	return nil
}

// request sends one request and waits for its result.
func (s *session) request(ctx context.Context, method string, params *rawParams) (reply, error) {
	if params.progress != nil {
		token, stop := s.notes.listen(params.progress)
		defer stop()
		params = params.withMeta(mcp.Meta{"progressToken": token})
	}
	if s.stdio != nil {
		return s.stdio.request(ctx, method, params.withMeta(s.meta))
	}
	call := &httpCall{method: method, params: params}
	ctx, call.giveUp = context.WithCancel(context.WithValue(ctx, httpCallKey{}, call))
	defer call.giveUp()
	res, err := mcp.CallCustomMethod[*rawParams, *rawResult](ctx, s.mcp, rawPrefix+method, params)
	if err != nil {
		return reply{}, call.explain(err)
	}
	return replyOf(res.raw), nil
}

// initializeResult returns what the server said of itself when it shook hands,
// or nil.
func (s *session) initializeResult() *mcp.InitializeResult { return s.mcp.InitializeResult() }

// offers reports whether the server said that it has something. One that said
// nothing at all is asked.
func (s *session) offers(has func(*mcp.ServerCapabilities) bool) bool {
	said := s.initializeResult()
	return said == nil || said.Capabilities == nil || has(said.Capabilities)
}

// down is closed when the server ended or stopped talking.
func (s *session) down() <-chan struct{} { return s.link.down() }

// ended waits for the end of the session and says in words how it came.
func (s *session) ended() string { return s.link.ended() }

// expired reports that the server ended a session that it no longer wanted,
// which is no fault.
func (s *session) expired() bool { return s.link.expired() }

// age is how long ago the session began.
func (s *session) age() time.Duration { return time.Since(s.since) }

// broken reports whether the server ended or stopped talking.
func (s *session) broken() bool {
	select {
	case <-s.link.down():
		return true
	default:
		return false
	}
}

// close ends the link and then the session, in this order because the SDK
// waits for calls in flight, which only end with the link.
func (s *session) close() {
	s.link.stop()
	_ = s.mcp.Close() // what it was over is closed already
	if r, ok := s.link.(*remote); ok {
		r.finish()
	}
}

// check refuses what is no result to hand on. Under the 2026-07-28 protocol a
// server may answer with questions to the user, whom a script cannot reach.
func (r reply) check() error {
	if t := bytes.TrimSpace(r.result); len(t) == 0 || t[0] != '{' {
		return errors.New("the server's result is not an object")
	}
	if r.asks {
		return errors.New("the tool asks the user for input, which is not supported inside run_python")
	}
	return nil
}
