package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/elicitation"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
)

// attempt makes one link and one handshake. suspect means that it failed after
// the server took server/discover, so that this may be the reason.
func (d *Dialer) attempt(ctx context.Context, t config.Transport, legacy bool, can elicitation.Capabilities) (_ *Session, suspect bool, err error) {
	tooLong := d.tooLong()
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, d.StartTimeout, tooLong)
	defer cancelTimeout()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if t == config.Stdio || t == "" {
		return d.overProcess(ctx, cancel, legacy, can)
	}
	return d.overHTTP(ctx, cancel, t, legacy, can)
}

// tooLong returns the error of a server that did not answer in time. It says where to look.
func (d *Dialer) tooLong() error {
	said := "was not ready within " + text.Duration(d.StartTimeout)
	if d.Server.Command == "" {
		return errors.New(said)
	}
	return fmt.Errorf("%s: %q runs, but has not answered as an MCP server; if it needs longer, set start-timeout (or \"startup_timeout_sec\" in its entry), else check its command and arguments in %s",
		said, text.Printable(d.Server.Command, maxCommandShown), d.Server.Source)
}

// notMCP explains the error of a server that does not know the first request of a session.
func notMCP(err error) error {
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && wire.Code == jsonrpc.CodeMethodNotFound {
		return &notMCPError{wire}
	}
	return err
}

type notMCPError struct{ answer *jsonrpc.Error }

func (e *notMCPError) Error() string {
	return fmt.Sprintf("it does not speak MCP: it answered %q to initialize", text.Printable(e.answer.Message, maxCommandShown))
}

func (e *notMCPError) Unwrap() error { return e.answer }

// needsLater reports whether a server refused the older handshake, or keeps no session with
// it over HTTP, so that it would get no answers to its requests.
func needsLater(t config.Transport, s *Session, err error) bool {
	if err == nil {
		return t == config.HTTP && s.mcp.ID() == ""
	}
	var answer *jsonrpc.Error
	var status *remote.Error
	return errors.As(err, &answer) || errors.As(err, &status) && status.SuggestsSSE()
}

// maxCommandShown bounds what an error quotes, in characters.
const maxCommandShown = 200

// overProcess is attempt for a command. A server that ended without having
// read server/discover had another reason to.
func (d *Dialer) overProcess(ctx context.Context, cancel context.CancelCauseFunc, legacy bool, can elicitation.Capabilities) (_ *Session, suspect bool, err error) {
	proc, err := stdio.Start(d.Server, d.Redactor, d.Guard, d.Log)
	if err != nil {
		return nil, false, err
	}
	notes := message.NewNotifications(d.ToolsChanged)
	w := stdio.NewTransport(proc, notes)
	if !legacy {
		go w.WatchDiscover(ctx, d.DiscoverTimeout, cancel)
	}
	cs, err := d.connect(ctx, w, legacy, can)
	if err == nil {
		proc.Served()
		return &Session{link: proc, stdio: w, notes: notes, calls: w.WaitingCalls(), mcp: cs, can: can, since: time.Now()}, false, nil
	}
	cause := context.Cause(ctx)
	_ = w.Close()
	proc.Stop()
	suspect = !legacy && w.TookDiscover(cause)
	var long *message.TooLongError
	if cause == nil && errors.As(w.EndError(), &long) { // it may have exited because we closed its output
		return nil, suspect, proc.WithOutput(long)
	}
	return nil, suspect, withDirHint(d.Server, explainProcess(proc, err, cause))
}

// overHTTP is attempt for a URL.
func (d *Dialer) overHTTP(ctx context.Context, cancel context.CancelCauseFunc, t config.Transport, legacy bool, can elicitation.Capabilities) (_ *Session, suspect bool, err error) {
	notes := message.NewNotifications(d.ToolsChanged)
	r, err := remote.New(d.Server, t, notes, d.Tokens, d.MaxMessage)
	if err != nil {
		return nil, false, err
	}
	if !legacy {
		go r.WatchDiscover(ctx, d.DiscoverTimeout, cancel)
	}
	cs, err := d.connect(ctx, r, legacy, can)
	if err != nil {
		cause := context.Cause(ctx)
		why := r.ExplainStart(err, cause)
		r.Stop()
		r.WaitClosed()
		return nil, !legacy && r.TookDiscover(cause), why
	}
	r.Watch(cs)
	s := &Session{link: r, notes: notes, calls: r.WaitingCalls(), mcp: cs, can: can, since: time.Now()}
	if t == config.HTTP && s.Legacy() && can.Any() {
		r.AwaitStream(ctx)
	}
	return s, false, nil
}

func (d *Dialer) connect(ctx context.Context, t mcp.Transport, legacy bool, can elicitation.Capabilities) (_ *mcp.ClientSession, err error) {
	defer contain.Error("shaking hands with a server", &err)
	var options mcp.ClientSessionOptions
	if legacy {
		options.ProtocolVersion = message.LegacyProtocol
	}
	return d.newClient(can).Connect(ctx, t, &options)
}

// explainProcess returns why a start failed. If we ended the server, its exit status is our
// doing, and only its output is of interest.
func explainProcess(proc *stdio.Process, err, cause error) error {
	if cause == nil && IsLost(err) {
		return &exitedError{proc.Ended()}
	}
	if cause != nil {
		err = cause
	}
	return proc.WithOutput(notMCP(err))
}

// newClient makes a client for one session. It offers the server what the user can be
// asked, and nothing else: capabilities are not nil, which would advertise roots. The
// handler of list_changed is there to make the SDK subscribe; message.Notifications
// handles the notification before the SDK sees it, and likewise elicitations during a call:
// the SDK's handler gets those that belong to no call. Results that ask for input go to the
// caller: the SDK would ask and repeat the request by itself.
func (d *Dialer) newClient(can elicitation.Capabilities) *mcp.Client {
	o := &mcp.ClientOptions{
		Capabilities:           can.ForSession(),
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { d.ToolsChanged() },
		MultiRoundTrip:         &mcp.MultiRoundTripOptions{Disabled: true},
	}
	if can.Any() {
		o.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		}
	}
	c := mcp.NewClient(d.ClientInfo, o)
	c.AddReceivingMiddleware(containRequests)
	return c
}

// containRequests contains a panic in the message of the server that caused it: the SDK
// handles each message in a goroutine of its own.
func containRequests(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer contain.Recover("answering a server", func(panicked error) {
			res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: panicked.Error()}
		})
		return next(ctx, method, req)
	}
}
