package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// legacyProtocol is the last version whose handshake does not begin with
// server/discover.
const legacyProtocol = "2025-11-25"

// rawMethods are the requests whose results are wanted as the server wrote
// them.
var rawMethods = []string{
	methodListTools, methodCallTool,
	"resources/list", "resources/templates/list", "resources/read", "prompts/list", "prompts/get",
}

// session is one live connection: a process and the MCP session with it.
type session struct {
	proc *process
	mcp  *mcp.ClientSession
}

// rawParams are the parameters of a method whose result is wanted as it is.
type rawParams struct {
	mcp.ParamsBase
	Name      string          `json:"name,omitempty"`
	URI       string          `json:"uri,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Cursor    string          `json:"cursor,omitempty"`
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

// request sends one request and returns the result as the server wrote it.
func (s *session) request(ctx context.Context, method string, params *rawParams) (json.RawMessage, error) {
	res, err := mcp.CallCustomMethod[*rawParams, *rawResult](ctx, s.mcp, rawPrefix+method, params)
	if err != nil {
		return nil, err
	}
	return res.raw, nil
}

// broken reports whether the server ended or stopped talking.
func (s *session) broken() bool {
	select {
	case <-s.proc.exited:
		return true
	case <-s.proc.read:
		return true
	default:
		return false
	}
}

// close ends the process and then the session, in this order because the SDK
// waits for calls in flight, which only end with the process.
func (s *session) close() {
	s.proc.stop()
	_ = s.mcp.Close() // the pipes are closed already
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
}

// dial starts the server and shakes hands. Servers written before 2026 may die
// or hang on server/discover; they get a new process and the older handshake,
// and legacy reports it, so that the next start need not find out again.
func (d *dialer) dial(ctx context.Context, legacy bool) (s *session, isLegacy bool, err error) {
	s, suspect, err := d.attempt(ctx, legacy)
	if suspect && ctx.Err() == nil {
		d.log.Debug("trying the older handshake", "server", d.server.Name, "err", err)
		legacy = true
		s, _, err = d.attempt(ctx, legacy)
	}
	return s, legacy && err == nil, err
}

// attempt makes one process and one handshake. suspect means that it failed
// after the server took server/discover, so that this may be the reason. A
// server that ended without having read it had another.
func (d *dialer) attempt(ctx context.Context, legacy bool) (_ *session, suspect bool, err error) {
	proc, err := startProcess(d.server, d.log)
	if err != nil {
		return nil, false, err
	}
	w := newWire(proc)
	tooLong := fmt.Errorf("was not ready within %v", d.timeout)
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, d.timeout, tooLong)
	defer cancelTimeout()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var options mcp.ClientSessionOptions
	if legacy {
		options.ProtocolVersion = legacyProtocol
	} else {
		go w.watchDiscover(ctx, d.patience, cancel)
	}
	cs, err := d.newClient().Connect(ctx, w, &options)
	if err == nil {
		return &session{proc: proc, mcp: cs}, false, nil
	}
	cause := context.Cause(ctx)
	suspect = !legacy && w.asked.Load() && (errors.Is(cause, errNoDiscover) || w.took.Load() || w.answered.Load())
	_ = w.Close()
	proc.stop()
	return nil, suspect, d.explain(proc, err, cause)
}

// explain says why a start failed. If we ended the server, its exit status is
// our doing and only what it wrote is of interest.
func (d *dialer) explain(proc *process, err, cause error) error {
	if cause == nil && isLost(err) {
		return fmt.Errorf("server %q %s", d.server.Name, proc.ended())
	}
	if cause != nil {
		err = cause
	}
	if tail := proc.diag.text(); tail != "" {
		return fmt.Errorf("starting server %q: %w; its stderr ended: %s", d.server.Name, err, tail)
	}
	return fmt.Errorf("starting server %q: %w", d.server.Name, err)
}

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

// newClient makes a client for one session. It offers the server nothing:
// capabilities are empty and not nil, which would advertise roots.
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
