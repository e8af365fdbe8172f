// Package remote reaches a server over streamable HTTP or SSE.
//
// It uses the SDK's transports. Each of their requests goes through a Link, which sends
// headers, tokens and messages only to the host of the entry, bounds answers, drops invalid
// ones, and describes errors to the user.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// A Link is the link to a server over HTTP. Each request of the SDK's transports goes
// through RoundTrip (roundtrip.go).
type Link struct {
	endpoint
	transport config.Transport
	client    http.RoundTripper
	notes     *message.Notifications
	calls     message.Calls // over SSE
	tokens    TokenSource
	limit     int // of one message

	ctx    context.Context // ends with Stop
	cancel context.CancelFunc
	work   sync.WaitGroup

	asked     atomic.Bool           // server/discover is on its way
	denied    atomic.Pointer[Error] // it was refused for want of a login
	answered  atomic.Bool           // something came back
	sessionID atomic.Value
	version   atomic.Value              // of the protocol, as the SDK sends it
	events    atomic.Pointer[eventConn] // over SSE

	listening chan struct{} // closed when the stream of changes was asked for and answered
	heard     sync.Once     // closes it
	down      context.Context
	markDown  context.CancelCauseFunc // takes the link out of use; the first reason counts
}

// TokenSource gives the access token for a server.
type TokenSource interface {
	// Token returns the token, or "" if there is none. One that the server rejected is
	// renewed first.
	Token(ctx context.Context, rejected string) (string, error)
	// Refused is told of an answer with 401 or 403 to a request with a token, or
	// without. It reports whether there is another token to try; an error says what
	// the user can do.
	Refused(ctx context.Context, token string, answer *http.Response) (again bool, err error)
}

// New returns a link to the server of an entry. It sends nothing. limit bounds one message;
// tokens may be nil.
func New(s config.Server, t config.Transport, notes *message.Notifications, tokens TokenSource, limit int) (*Link, error) {
	origin, err := url.Parse(s.URL)
	if err != nil || origin.Host == "" || origin.Scheme != "http" && origin.Scheme != "https" {
		return nil, &Error{curable: true, text: fmt.Sprintf(`its "url" is not an http or https address; correct it in %s`, s.Source)}
	}
	base := http.DefaultTransport.(*http.Transport).Clone() // proxies and certificates as everywhere
	base.MaxResponseHeaderBytes = 1 << 20
	base.MaxIdleConnsPerHost = 16
	base.IdleConnTimeout = 30 * time.Second
	r := &Link{
		endpoint: endpoint{s, origin, tokens != nil}, transport: t, client: base, notes: notes, tokens: tokens,
		limit: limit, listening: make(chan struct{}),
	}
	r.down, r.markDown = context.WithCancelCause(context.Background())
	r.ctx, r.cancel = context.WithCancel(context.Background())
	notes.RespondWith(r.respond)
	return r, nil
}

// Down implements the link of package transport.
func (r *Link) Down() <-chan struct{} { return r.down.Done() }

// Stop implements the link of package transport.
func (r *Link) Stop() {
	r.markDown(errors.New("closed the connection"))
	r.cancel()
}

// WaitClosed waits until nothing of the link is left.
func (r *Link) WaitClosed() {
	r.work.Wait()
	r.client.(*http.Transport).CloseIdleConnections()
}

// Ended implements the link of package transport.
func (r *Link) Ended() error {
	<-r.down.Done()
	return errors.New(context.Cause(r.down).Error()) // how it ended is no fault of a later request
}

// Explain implements the link of package transport: nothing is known of a remote server.
func (r *Link) Explain(err error, _ time.Time) error { return err }

// Expired implements the link of package transport.
func (r *Link) Expired() bool {
	return errors.Is(context.Cause(r.down), mcp.ErrSessionMissing)
}

var errExpired = fmt.Errorf("ended its session (%w); the next call begins a new one", mcp.ErrSessionMissing)

// Connect implements mcp.Transport.
func (r *Link) Connect(ctx context.Context) (mcp.Connection, error) {
	// The redirects that are safe are followed by RoundTrip itself.
	client := &http.Client{Transport: r, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if r.transport == config.SSE {
		// The stream lives as long as the context it was opened with.
		defer context.AfterFunc(ctx, contain.Func("ending a connection", r.cancel))()
		conn, err := (&mcp.SSEClientTransport{Endpoint: r.server.URL, HTTPClient: client, MaxEventSize: -1}).Connect(r.ctx)
		if err != nil {
			return nil, err
		}
		c := &eventConn{conn, r}
		r.events.Store(c)
		return c, nil
	}
	// The stream that the server may send notifications over is listen's: the
	// SDK would wait for its beginning without an end, and would give up the
	// session when a proxy has cut it a few times.
	return (&mcp.StreamableClientTransport{
		Endpoint: r.server.URL, HTTPClient: client, MaxEventSize: -1, DisableStandaloneSSE: true,
	}).Connect(ctx)
}

// Begin implements the link of package transport. It records how the session ends, and keeps
// the stream of changes of an older server open. If the server may ask the user, it waits a
// while for that stream: questions come over it, and what is sent before is lost.
func (r *Link) Begin(ctx context.Context, cs *mcp.ClientSession, asks bool) {
	r.work.Go(func() {
		defer contain.Recover("waiting for the end of a session", r.markDown)
		err := cs.Wait()
		switch {
		case errors.Is(err, mcp.ErrSessionMissing):
			r.markDown(errExpired)
		case err == nil || errors.Is(err, io.EOF):
			r.markDown(errors.New("closed the connection"))
		default:
			r.markDown(fmt.Errorf("broke the connection: %w", r.words(err)))
		}
	})
	res := cs.InitializeResult()
	if r.transport != config.HTTP || res == nil || res.ProtocolVersion > message.LegacyProtocol {
		return
	}
	req, err := r.newRequest(r.ctx, http.MethodGet, res.ProtocolVersion, nil)
	if err != nil {
		return
	}
	r.listen(req)
	if !asks {
		return
	}
	select {
	case <-r.listening:
	case <-time.After(streamWithin):
	case <-r.down.Done():
	case <-ctx.Done():
	}
}

// streamWithin is how long to wait for the beginning of a stream. Some servers send nothing
// before the first event.
const streamWithin = time.Second

// WaitingCalls returns the calls that wait for an answer over the link.
func (r *Link) WaitingCalls() *message.Calls { return &r.calls }

// EndError implements the link of package transport: requests fail with reasons of their own.
func (r *Link) EndError() error { return nil }

// Written implements the link of package transport: what a remote server writes stays there.
func (r *Link) Written() []string { return nil }

// Fail implements the link of package transport.
func (r *Link) Fail(err, cause error) (suspect bool, why error) {
	defer r.WaitClosed()
	defer r.Stop()
	return r.asked.Load() && errors.Is(cause, message.ErrNoDiscover), r.explainStart(err, cause)
}

// explainStart returns why a handshake failed.
func (r *Link) explainStart(err, cause error) error {
	// Then the SDK tries initialize, which some let through, and others refuse since they
	// are too new to know it.
	if denied := r.denied.Load(); denied != nil {
		return denied
	}
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed
	}
	why := context.Cause(r.down)
	if cause == nil && errors.Is(why, mcp.ErrSessionMissing) {
		return errors.New("the server forgot the session that it had just begun; if several of it run behind one address, they have to share their sessions")
	}
	if cause == nil && why != nil {
		return why
	}
	if cause == nil {
		return r.words(err)
	}
	if r.transport == config.SSE && r.answered.Load() {
		return fmt.Errorf("%w: the stream of events began, but the address to send to (the endpoint event) did not come", cause)
	}
	return cause
}

// HangsOnDiscover implements the link of package transport.
func (r *Link) HangsOnDiscover(ctx context.Context, timeout time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(timeout):
		return !r.answered.Load()
	}
}
