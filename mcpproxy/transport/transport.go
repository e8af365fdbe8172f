// Package transport opens MCP sessions with one server, over stdio, streamable
// HTTP or SSE.
//
// A Dialer starts or reaches a server and shakes hands; a Session sends requests
// and returns results as the server wrote them. Servers that need the older handshake
// get it. A process ends with its whole group. Messages are bounded, and anything else that
// a server sends is dropped or skipped. Headers and tokens go to the server of the entry and
// to no other host. The caller decides when to dial again after a session broke.
package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/elicitation"
	"github.com/toolcell/toolcell/mcpproxy/redact"
	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
)

// Handshake describes how a session with a server begins, as found out by trying. It is kept
// from one start to the next.
type Handshake struct {
	Legacy    bool             // it takes only the older handshake
	Transport config.Transport // what worked, of the two that Remote may be
}

// Dialer opens sessions with one server. All fields but Launch, Guard and Tokens are needed.
type Dialer struct {
	Server       config.Server
	Log          *slog.Logger
	ClientInfo   *mcp.Implementation // name and version that servers see
	StartTimeout time.Duration       // for a server to get ready, once it runs
	// DiscoverTimeout is how long a server that has read server/discover may take to answer
	// before it is assumed to hang on it.
	DiscoverTimeout time.Duration
	// ToolsChanged is called when the server reports that its tools have changed.
	ToolsChanged func()
	Redactor     *redact.Redactor
	Launch       stdio.Launcher     // starts a process; nil is stdio.OnHost(Guard)
	Guard        *stdio.Guard       // of processes; may be nil
	MaxMessage   int                // of a server over HTTP
	Tokens       remote.TokenSource // nil where headers of the entry authorize
}

// Dial starts or reaches the server and shakes hands. Servers written before
// 2026 may die or hang on server/discover; they get a new link and the older
// handshake, and the result reports it, so that the next start need not find
// out again. can are the ways in which the user can be asked.
//
// If can.ByRequest is set, the older handshake comes first: with the later one, tools fail
// that ask by a request of the server. Over HTTP, a server without sessions gets no answers
// to its requests, and so gets the later handshake all the same.
func (d *Dialer) Dial(ctx context.Context, last Handshake, can elicitation.Capabilities) (*Session, Handshake, error) {
	if d.Server.Transport != config.Remote {
		return d.dialOver(ctx, d.Server.Transport, last, can)
	}
	if last.Transport != "" {
		return d.dialOver(ctx, last.Transport, last, can)
	}
	s, found, err := d.dialOver(ctx, config.HTTP, last, can)
	var failed *remote.Error
	if err == nil || ctx.Err() != nil || !errors.As(err, &failed) || !failed.SuggestsSSE() {
		found.Transport = config.HTTP
		return s, found, err
	}
	s, found, second := d.dialOver(ctx, config.SSE, Handshake{}, can)
	found.Transport = config.SSE
	if second != nil {
		return nil, last, fmt.Errorf("%w; and as an SSE server: %w", err, UnwrapStart(second))
	}
	return s, found, nil
}

// dialOver dials over one transport.
func (d *Dialer) dialOver(ctx context.Context, t config.Transport, last Handshake, can elicitation.Capabilities) (*Session, Handshake, error) {
	if t == config.SSE {
		last.Legacy = true // this transport ended before server/discover came
	}
	preferred := !last.Legacy && can.ByRequest
	s, suspect, err := d.attempt(ctx, t, last.Legacy || preferred, can)
	if preferred && ctx.Err() == nil && needsLater(t, s, err) {
		d.Log.Debug("trying the later handshake", "server", d.Server.Name, "err", d.Redactor.Error(err))
		if s != nil {
			s.Close()
		}
		preferred = false
		s, suspect, err = d.attempt(ctx, t, false, can)
	}
	if suspect && ctx.Err() == nil {
		d.Log.Debug("trying the older handshake", "server", d.Server.Name, "err", d.Redactor.Error(err))
		last.Legacy = true
		s, _, err = d.attempt(ctx, t, true, can)
	}
	if err != nil {
		return nil, Handshake{}, &startError{d.Server.Name, d.Redactor.Error(err)}
	}
	if s.Legacy() && !preferred {
		last.Legacy = true // it need not be asked again
	}
	return s, last, nil
}
