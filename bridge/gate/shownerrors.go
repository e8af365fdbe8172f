package gate

import (
	"errors"

	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// Shown returns an error about a server as the code of the run may see it: what a server
// wrote to stderr, in short, only if the run was granted the server. Documentation needs no
// grant and can start a server, which may print secrets of its own or of the user when that
// fails. Of a private server such an error counts as read; in a run that reaches hosts it
// has nothing of that, since the user was not asked.
func (g *Gate) Shown(server string, err error) error {
	if err == nil || g.o.Command {
		return err
	}
	s, lookup := g.o.Upstreams.Lookup(server)
	if lookup != nil || !g.o.Granted[s.Name] {
		return mcpproxy.WithoutOutput(err)
	}
	if mcpproxy.SaidByServer(err) {
		g.failed(s)
	}
	if private, _ := g.o.Policy.Flow(policyServer(s)); private && len(g.o.Hosts) > 0 {
		return mcpproxy.WithoutOutput(err)
	}
	return mcpproxy.ShortOutput(err)
}

// Denied returns an error if the policy denies all of a server. Then not even its
// documentation is there: to have it, the server might have to be started.
func (g *Gate) Denied(name, alias string) error {
	return g.o.Policy.ServerDenied(policy.Server{Name: name, Alias: alias})
}

// ServerName returns the name of a server that the code has named by its name or its alias.
func (g *Gate) ServerName(name string) string {
	if s, err := g.o.Upstreams.Lookup(name); err == nil {
		return s.Name
	}
	return name
}

// NoteSilent notes the server that an error is about, if it has not answered since its start.
func (g *Gate) NoteSilent(err error) {
	if silent, ok := errors.AsType[*mcpproxy.SilentError](err); ok {
		g.silent.CompareAndSwap(nil, silent)
	}
}

// Silent returns the first server that a request was still waiting for when the run ended, since
// it has not answered since its start; nil if there is none.
func (g *Gate) Silent() *mcpproxy.SilentError { return g.silent.Load() }
