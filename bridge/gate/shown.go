package gate

import (
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
		g.flow.failed(s)
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
