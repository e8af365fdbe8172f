package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// legacyProtocol is the last version whose handshake does not begin with
// server/discover.
const legacyProtocol = "2025-11-25"

// attempt makes one link and one handshake. suspect means that it failed after
// the server took server/discover, so that this may be the reason.
func (d *Dialer) attempt(ctx context.Context, t config.Transport, legacy bool) (_ *Session, suspect bool, err error) {
	tooLong := fmt.Errorf("was not ready within %v", d.options.StartTimeout)
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, d.options.StartTimeout, tooLong)
	defer cancelTimeout()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if t == config.Stdio || t == "" {
		return d.overProcess(ctx, cancel, legacy)
	}
	return d.overHTTP(ctx, cancel, t, legacy)
}

// overProcess is attempt for a command. A server that ended without having
// read server/discover had another reason to.
func (d *Dialer) overProcess(ctx context.Context, cancel context.CancelCauseFunc, legacy bool) (_ *Session, suspect bool, err error) {
	proc, err := startProcess(d.server, d.options.Redactor, d.options.Guard, d.options.Log)
	if err != nil {
		return nil, false, err
	}
	notes := newNotifications(d.options.ToolsChanged)
	w := newStdioTransport(proc, notes)
	if !legacy {
		go w.watchDiscover(ctx, d.options.DiscoverTimeout, cancel)
	}
	cs, err := d.connect(ctx, w, legacy)
	if err == nil {
		return &Session{link: proc, stdio: w, notes: notes, calls: &w.calls, mcp: cs, since: time.Now()}, false, nil
	}
	cause := context.Cause(ctx)
	_ = w.Close()
	proc.stop()
	suspect = !legacy && w.asked.Load() && (errors.Is(cause, errNoDiscover) || w.took.Load() || w.answered.Load())
	return nil, suspect, explainProcess(proc, err, cause)
}

func (d *Dialer) connect(ctx context.Context, t mcp.Transport, legacy bool) (*mcp.ClientSession, error) {
	var options mcp.ClientSessionOptions
	if legacy {
		options.ProtocolVersion = legacyProtocol
	}
	return d.newClient().Connect(ctx, t, &options)
}

// explainProcess says why a start failed. If we ended the server, its exit
// status is our doing and only what it wrote is of interest.
func explainProcess(proc *process, err, cause error) error {
	if cause == nil && IsLost(err) {
		return &exitedError{proc.ended()}
	}
	if cause != nil {
		err = cause
	}
	if tail := proc.output.last(); tail != "" {
		return fmt.Errorf("%w; its stderr ended: %s", err, tail)
	}
	return err
}

var errNoDiscover = errors.New("did not answer server/discover")

// watchDiscover cancels the handshake when the server has read the request
// but leaves it unanswered. One that has not read it yet is still starting.
func (t *stdioTransport) watchDiscover(ctx context.Context, patience time.Duration, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(max(patience/50, time.Millisecond))
	defer tick.Stop()
	var taken time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			switch {
			case t.answered.Load():
				return
			case !t.asked.Load() || !t.proc.tookInput():
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
// capabilities are empty and not nil, which would advertise roots. The handler
// of list_changed is there to make the SDK subscribe; the inbox of the link
// takes the notification before it.
func (d *Dialer) newClient() *mcp.Client {
	return mcp.NewClient(d.options.ClientInfo, &mcp.ClientOptions{
		Capabilities:           &mcp.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { d.options.ToolsChanged() },
	})
}
