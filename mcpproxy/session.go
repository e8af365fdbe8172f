package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// legacyProtocol is the last version whose handshake does not begin with
// server/discover.
const legacyProtocol = "2025-11-25"

// rawPrefix marks the methods whose results the SDK is to hand over
// undecoded; it is taken off before the request leaves. The typed results of the
// SDK go through float64 and would change large integers.
const rawPrefix = "toolcell/"

// rawMethods are the requests whose results are wanted as the server wrote
// them.
var rawMethods = []string{
	methodListTools, methodCallTool,
	"resources/list", "resources/templates/list", "resources/read", "prompts/list", "prompts/get",
}

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
	wire  *wire    // of stdio
	meta  mcp.Meta // that the protocol wants in each request over it
	inbox *inbox
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
}

// with adds to what is said beside the parameters.
func (p *rawParams) with(meta mcp.Meta) *rawParams {
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
	if s.wire != nil {
		return s.wire.request(ctx, method, params.with(s.meta))
	}
	ex := &exchange{method: method, params: params}
	ctx, ex.giveUp = context.WithCancel(context.WithValue(ctx, exchangeKey{}, ex))
	defer ex.giveUp()
	res, err := mcp.CallCustomMethod[*rawParams, *rawResult](ctx, s.mcp, rawPrefix+method, params)
	if err != nil {
		return reply{}, ex.explain(err)
	}
	return replyOf(res.raw), nil
}

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

// manner is what was found out about how a server wants to be spoken to. It is
// kept from one start to the next.
type manner struct {
	legacy    bool      // it takes only the older handshake
	transport Transport // what worked, of the two that Remote may be
}

// dialer opens sessions with one server.
type dialer struct {
	server  Server
	log     *slog.Logger
	client  *mcp.Implementation
	timeout time.Duration // for a server to get ready
	// patience is how long a server that has read server/discover may leave it
	// without an answer before it is taken to hang on it.
	patience time.Duration
	// changed is called when the server says that its tools changed.
	changed func()
	secrets *redactor
	guard   *guard     // of processes
	limit   int        // of one message over HTTP
	login   *loginKeep // of tokens; nil where headers of the entry authorize
}

// dial starts or reaches the server and shakes hands. Servers written before
// 2026 may die or hang on server/discover; they get a new link and the older
// handshake, and the manner reports it, so that the next start need not find
// out again.
func (d *dialer) dial(ctx context.Context, m manner) (*session, manner, error) {
	if d.server.Transport != Remote {
		return d.dialOver(ctx, d.server.Transport, m)
	}
	if m.transport != "" {
		return d.dialOver(ctx, m.transport, m)
	}
	s, found, err := d.dialOver(ctx, HTTP, m)
	if err == nil || !speaksNoHTTP(err) || ctx.Err() != nil {
		found.transport = HTTP
		return s, found, err
	}
	s, found, second := d.dialOver(ctx, SSE, manner{})
	found.transport = SSE
	if second != nil {
		return nil, m, fmt.Errorf("%w; and as an SSE server: %w", err, unwrapStart(second))
	}
	return s, found, nil
}

// dialOver dials over one transport.
func (d *dialer) dialOver(ctx context.Context, t Transport, m manner) (*session, manner, error) {
	if t == SSE {
		m.legacy = true // this transport ended before server/discover came
	}
	s, suspect, err := d.attempt(ctx, t, m.legacy)
	if suspect && ctx.Err() == nil {
		d.log.Debug("trying the older handshake", "server", d.server.Name, "err", d.secrets.hideError(err))
		m.legacy = true
		s, _, err = d.attempt(ctx, t, true)
	}
	if err != nil {
		return nil, manner{}, &startError{d.server.Name, d.secrets.hideError(err)}
	}
	if res := s.mcp.InitializeResult(); res != nil && res.ProtocolVersion <= legacyProtocol {
		m.legacy = true // it need not be asked again
	}
	return s, m, nil
}

// attempt makes one link and one handshake. suspect means that it failed after
// the server took server/discover, so that this may be the reason.
func (d *dialer) attempt(ctx context.Context, t Transport, legacy bool) (_ *session, suspect bool, err error) {
	tooLong := fmt.Errorf("was not ready within %v", d.timeout)
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, d.timeout, tooLong)
	defer cancelTimeout()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if t == Stdio || t == "" {
		return d.overProcess(ctx, cancel, legacy)
	}
	return d.overHTTP(ctx, cancel, t, legacy)
}

// overProcess is attempt for a command. A server that ended without having
// read server/discover had another reason to.
func (d *dialer) overProcess(ctx context.Context, cancel context.CancelCauseFunc, legacy bool) (_ *session, suspect bool, err error) {
	proc, err := startProcess(d.server, d.secrets, d.guard, d.log)
	if err != nil {
		return nil, false, err
	}
	box := newInbox(d.changed)
	w := newWire(proc, box)
	if !legacy {
		go w.watchDiscover(ctx, d.patience, cancel)
	}
	cs, err := d.connect(ctx, w, legacy)
	if err == nil {
		return &session{link: proc, wire: w, meta: d.metaOf(cs), inbox: box, mcp: cs, since: time.Now()}, false, nil
	}
	cause := context.Cause(ctx)
	_ = w.Close()
	proc.stop()
	suspect = !legacy && w.asked.Load() && (errors.Is(cause, errNoDiscover) || w.took.Load() || w.answered.Load())
	return nil, suspect, explainProcess(proc, err, cause)
}

func (d *dialer) connect(ctx context.Context, t mcp.Transport, legacy bool) (*mcp.ClientSession, error) {
	var options mcp.ClientSessionOptions
	if legacy {
		options.ProtocolVersion = legacyProtocol
	}
	return d.newClient().Connect(ctx, t, &options)
}

// explainProcess says why a start failed. If we ended the server, its exit
// status is our doing and only what it wrote is of interest.
func explainProcess(proc *process, err, cause error) error {
	if cause == nil && isLost(err) {
		return &exitedError{proc.ended()}
	}
	if cause != nil {
		err = cause
	}
	if tail := proc.diag.text(); tail != "" {
		return fmt.Errorf("%w; its stderr ended: %s", err, tail)
	}
	return err
}

// startError says that a server could not be started or reached.
type startError struct {
	server string
	err    error
}

func (e *startError) Error() string {
	var exited *exitedError
	if errors.As(e.err, &exited) {
		return fmt.Sprintf("server %q %s", e.server, e.err)
	}
	return fmt.Sprintf("starting server %q: %s", e.server, e.err)
}
func (e *startError) Unwrap() error { return e.err }

// unwrapStart takes the name of the server off an error that has it already.
func unwrapStart(err error) error {
	var start *startError
	if errors.As(err, &start) {
		return start.err
	}
	return err
}

// exitedError says how a process ended that should not have.
type exitedError struct{ how string }

func (e *exitedError) Error() string { return e.how }

var errNoDiscover = errors.New("did not answer server/discover")

// watchDiscover cancels the handshake when the server has read the request
// but leaves it unanswered. One that has not read it yet is still starting.
func (w *wire) watchDiscover(ctx context.Context, patience time.Duration, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(max(patience/50, time.Millisecond))
	defer tick.Stop()
	var taken time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			switch {
			case w.answered.Load():
				return
			case !w.asked.Load() || !w.proc.tookInput():
				taken = time.Time{}
			case taken.IsZero():
				taken = now
			case now.Sub(taken) >= patience:
				cancel(errNoDiscover)
				return
			}
		}
	}
}

// metaOf gives what is said in each request since protocol 2026-07-28, which has
// no session (SEP-2575).
func (d *dialer) metaOf(cs *mcp.ClientSession) mcp.Meta {
	res := cs.InitializeResult()
	if res == nil || res.ProtocolVersion <= legacyProtocol {
		return nil
	}
	return mcp.Meta{
		mcp.MetaKeyProtocolVersion:    res.ProtocolVersion,
		mcp.MetaKeyClientInfo:         d.client,
		mcp.MetaKeyClientCapabilities: struct{}{}, // none
	}
}

// newClient makes a client for one session. It offers the server nothing:
// capabilities are empty and not nil, which would advertise roots. The handler
// of list_changed is there to make the SDK subscribe; the inbox of the link
// takes the notification before it.
func (d *dialer) newClient() *mcp.Client {
	client := mcp.NewClient(d.client, &mcp.ClientOptions{
		Capabilities:           &mcp.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { d.changed() },
	})
	for _, method := range rawMethods {
		if err := mcp.AddSendingCustomMethod[*rawParams, *rawResult](client, rawPrefix+method); err != nil {
			panic("mcpproxy: " + err.Error() + ": choose another rawPrefix")
		}
	}
	return client
}
