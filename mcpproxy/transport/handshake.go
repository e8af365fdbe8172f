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
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, d.StartTimeout, d.tooLong())
	defer cancelTimeout()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	notes := message.NewNotifications(d.ToolsChanged)
	l, err := d.open(t, notes)
	if err != nil {
		return nil, false, err
	}
	if !legacy {
		go func() {
			defer contain.Recover("waiting for server/discover", func(err error) { cancel(err) })
			if l.HangsOnDiscover(ctx, d.DiscoverTimeout) {
				cancel(message.ErrNoDiscover)
			}
		}()
	}
	cs, err := d.connect(ctx, l, legacy, can)
	if err != nil {
		suspect, why := l.Fail(err, context.Cause(ctx))
		return nil, suspect && !legacy, withDirHint(d.Server, why)
	}
	l.Begin(ctx, cs, can.Any())
	return &Session{link: l, notes: notes, mcp: cs, can: can, since: time.Now()}, false, nil
}

// open makes a link over one transport.
func (d *Dialer) open(t config.Transport, notes *message.Notifications) (link, error) {
	if t == config.Stdio || t == "" {
		return stdio.Start(d.Server, d.Redactor, d.Guard, d.Log, notes)
	}
	return remote.New(d.Server, t, notes, d.Tokens, d.MaxMessage)
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

func (d *Dialer) connect(ctx context.Context, t mcp.Transport, legacy bool, can elicitation.Capabilities) (_ *mcp.ClientSession, err error) {
	defer contain.Error("shaking hands with a server", &err)
	var options mcp.ClientSessionOptions
	if legacy {
		options.ProtocolVersion = message.LegacyProtocol
	}
	return d.newClient(can).Connect(ctx, t, &options)
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
