package mcpproxy

import (
	"context"
	"errors"
	"net/url"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/mcpproxy/transport"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// export begins the Span of a request that goes out over a session, and returns what ends it.
func (r request) export(ctx context.Context, u *upstream, s *transport.Session) (_ context.Context, end func(message.Reply, error)) {
	if signals.SpanOf(ctx) == nil {
		return ctx, func(message.Reply, error) {}
	}
	call := signals.Call{Method: r.want.Method, Server: u.server.Name, Writes: r.facts.Writes(), Protocol: s.Protocol()}
	if call.Method == CallTool {
		call.Tool = r.facts.Name
	}
	call.Address, call.Port = u.address()
	ctx, span := signals.CallServer(ctx, call)
	failed := signals.Failure{Type: signals.OtherError} // if it panics
	return ctx, func(reply message.Reply, err error) {
		if reply.Result != nil || err != nil {
			failed = failureOf(ctx, reply, err)
		}
		if failed == (signals.Failure{}) && call.Method == GetPrompt {
			span.Prompt(call.Method, r.want.Name)
		}
		span.End(failed)
	}
}

// address returns the host and port of a remote server, unless they hold a secret.
func (u *upstream) address() (host string, port int) {
	if u.server.URL == "" {
		return "", 0
	}
	at, err := url.Parse(u.server.URL)
	if err != nil || u.secrets.Text(at.Host) != at.Host {
		return hiddenHost, 0
	}
	if port, err = strconv.Atoi(at.Port()); err != nil {
		port = map[string]int{"http": 80, "https": 443}[at.Scheme]
	}
	return at.Hostname(), port
}

// hiddenHost stands for a host that is not exported.
const hiddenHost = "_OTHER"

// failureOf returns how a request has failed, in words of ours: errors may hold what the server
// has said.
func failureOf(ctx context.Context, reply message.Reply, err error) signals.Failure {
	var refused *jsonrpc.Error
	switch {
	case err == nil && reply.IsError:
		return signals.Failure{Type: signals.ToolError}
	case err == nil:
		return signals.Failure{}
	case errors.As(err, &refused):
		return signals.Failure{Code: strconv.FormatInt(refused.Code, 10)}
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return signals.Failure{Type: "timeout"}
	case ctx.Err() != nil:
		return signals.Failure{Type: "cancelled"}
	case message.IsLost(err):
		return signals.Failure{Type: "connection_lost"}
	}
	return signals.Failure{Type: signals.OtherError}
}

// exportSession counts a session that has ended.
func (u *upstream) exportSession(s *transport.Session) {
	if u.proxy.options.Signals == nil {
		return
	}
	host, _ := u.address()
	u.proxy.options.Signals.ClientSession(u.server.Name, host, s.Protocol(), s.Age())
}
