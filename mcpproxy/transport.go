package mcpproxy

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
)

// handshake is what was found out about the way in which a session with a server
// begins. It is kept from one start to the next.
type handshake struct {
	legacy    bool             // it takes only the older handshake
	transport config.Transport // what worked, of the two that Remote may be
}

// dialOptions sets up a dialer. The zero value works.
type dialOptions struct {
	log     *slog.Logger        // none by default
	client  *mcp.Implementation // what servers are told that we are
	timeout time.Duration       // for a server to get ready; 30 s by default
	// patience is how long a server that has read server/discover may leave it
	// without an answer before it is taken to hang on it; 5 s by default.
	patience time.Duration
	// changed is called when the server says that its tools changed.
	changed    func()
	secrets    *redact.Redactor
	guard      *guard      // of processes; may be nil
	maxMessage int         // of a server over HTTP; 128 MiB by default
	tokens     tokenSource // nil where headers of the entry authorize
}

// tokenSource gives the access token for a server, or "" if there is none. One
// that the server rejected is renewed first.
type tokenSource interface {
	Token(ctx context.Context, rejected string) (string, error)
}

// dialer opens sessions with one server.
type dialer struct {
	server  config.Server
	options dialOptions
}

// newDialer makes a dialer for a server.
func newDialer(s config.Server, o dialOptions) *dialer {
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	if o.client == nil {
		o.client = &mcp.Implementation{Name: "toolcell"}
	}
	if o.timeout <= 0 {
		o.timeout = 30 * time.Second
	}
	if o.patience <= 0 {
		o.patience = 5 * time.Second
	}
	if o.changed == nil {
		o.changed = func() {}
	}
	if o.secrets == nil {
		o.secrets = redact.New(s)
	}
	if o.maxMessage <= 0 {
		o.maxMessage = maxMessage
	}
	return &dialer{s, o}
}

// dial starts or reaches the server and shakes hands. Servers written before
// 2026 may die or hang on server/discover; they get a new link and the older
// handshake, and the result reports it, so that the next start need not find
// out again.
func (d *dialer) dial(ctx context.Context, known handshake) (*session, handshake, error) {
	if d.server.Transport != config.Remote {
		return d.dialOver(ctx, d.server.Transport, known)
	}
	if known.transport != "" {
		return d.dialOver(ctx, known.transport, known)
	}
	s, found, err := d.dialOver(ctx, config.HTTP, known)
	if err == nil || !speaksNoHTTP(err) || ctx.Err() != nil {
		found.transport = config.HTTP
		return s, found, err
	}
	s, found, second := d.dialOver(ctx, config.SSE, handshake{})
	found.transport = config.SSE
	if second != nil {
		return nil, known, fmt.Errorf("%w; and as an SSE server: %w", err, unwrapStart(second))
	}
	return s, found, nil
}

// dialOver dials over one transport.
func (d *dialer) dialOver(ctx context.Context, t config.Transport, known handshake) (*session, handshake, error) {
	if t == config.SSE {
		known.legacy = true // this transport ended before server/discover came
	}
	s, suspect, err := d.attempt(ctx, t, known.legacy)
	if suspect && ctx.Err() == nil {
		d.options.log.Debug("trying the older handshake", "server", d.server.Name, "err", d.options.secrets.Error(err))
		known.legacy = true
		s, _, err = d.attempt(ctx, t, true)
	}
	if err != nil {
		return nil, handshake{}, &startError{d.server.Name, d.options.secrets.Error(err)}
	}
	if res := s.mcp.InitializeResult(); res != nil && res.ProtocolVersion <= legacyProtocol {
		known.legacy = true // it need not be asked again
	}
	return s, known, nil
}
