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
	notes := message.NewNotifications(d.ToolsChanged)
	l, err := d.open(ctx, t, notes)
	if err != nil {
		return nil, false, err
	}
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, d.StartTimeout, d.tooLong())
	defer cancelTimeout()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
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
		if d.Launch == nil { // the folders of this host are not a sandbox's
			why = withDirHint(d.Server, why)
		}
		return nil, suspect && !legacy, why
	}
	l.Begin(ctx, cs, can.Any())
	return &Session{link: l, notes: notes, mcp: cs, can: can, since: time.Now()}, false, nil
}

// open makes a link over one transport.
func (d *Dialer) open(ctx context.Context, t config.Transport, notes *message.Notifications) (link, error) {
	if t == config.Stdio || t == "" {
		return d.launch(ctx, notes)
	}
	return remote.New(d.Server, t, notes, d.Tokens, d.MaxMessage)
}

// maxLaunch bounds what a launcher does before the server runs: pulling an image, installing
// packages. It is there for a launcher that hangs.
const maxLaunch = 30 * time.Minute

// launch starts a process. StartTimeout does not count yet: it is the time that a server has to
// answer, and what its launcher has to fetch first is not the server's doing. A caller waits no
// longer for that: it learns that the server is still starting, as with one that fetches its
// packages by itself.
func (d *Dialer) launch(ctx context.Context, notes *message.Notifications) (link, error) {
	launch := d.Launch
	if launch == nil {
		launch = stdio.OnHost(d.Guard)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxLaunch, fmt.Errorf("was not prepared within %s", text.Duration(maxLaunch)))
	defer cancel()
	p, err := stdio.Start(ctx, d.Server, launch, d.Redactor, d.Log, notes)
	switch {
	case err == nil:
		return p, nil
	case errors.Is(err, ctx.Err()): // of the launcher, which does not know why
		return nil, context.Cause(ctx)
	}
	return nil, err
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
