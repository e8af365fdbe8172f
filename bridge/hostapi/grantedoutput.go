package hostapi

import (
	"context"

	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/signature"
)

// grantedOutput are Upstreams whose errors have what a server wrote to stderr, in
// short, only if the run was granted the server. Documentation needs no grant and can
// start a server, which may print secrets of its own or of the user when that fails. Of a
// private server such an error counts as read; in a run that reaches hosts it is short,
// since the user was not asked.
type grantedOutput struct {
	Upstreams
	granted map[string]bool
	flow    flow
}

// bound returns an error as the run may see it.
func (g grantedOutput) bound(server string, err error) error {
	if err == nil {
		return nil
	}
	s, lookup := g.Lookup(server)
	if lookup != nil || !g.granted[s.Name] {
		return mcpproxy.WithoutOutput(err)
	}
	if mcpproxy.SaidByServer(err) {
		g.flow.failed(s)
	}
	if private, _ := g.flow.policy.Flow(policyNames(s)); private && len(g.flow.hosts) > 0 {
		return mcpproxy.WithoutOutput(err)
	}
	return mcpproxy.ShortOutput(err)
}

// Call implements Upstreams.
func (g grantedOutput) Call(ctx context.Context, r mcpproxy.CallRequest) (mcpproxy.CallResult, error) {
	result, err := g.Upstreams.Call(ctx, r)
	return result, g.bound(r.Server, err)
}

// AwaitTools implements Upstreams.
func (g grantedOutput) AwaitTools(ctx context.Context, server string) error {
	return g.bound(server, g.Upstreams.AwaitTools(ctx, server))
}

// Tools implements Upstreams.
func (g grantedOutput) Tools(ctx context.Context, server string) ([]catalog.Tool, error) {
	tools, err := g.Upstreams.Tools(ctx, server)
	return tools, g.bound(server, err)
}

// Docs implements Upstreams.
func (g grantedOutput) Docs(ctx context.Context, server, tool string, full bool) ([]mcpproxy.ToolDoc, error) {
	docs, err := g.Upstreams.Docs(ctx, server, tool, full)
	return docs, g.bound(server, err)
}

// Signature implements Upstreams.
func (g grantedOutput) Signature(ctx context.Context, server, tool string, live bool) (catalog.Tool, *signature.Signature, error) {
	t, sig, err := g.Upstreams.Signature(ctx, server, tool, live)
	return t, sig, g.bound(server, err)
}
