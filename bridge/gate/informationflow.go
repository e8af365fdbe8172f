package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// flow returns why a use of a server has to be asked about: what was read from private servers
// must not get to open ones unasked.
func (g *Gate) flow(s config.Server) (reasons []string) {
	private, open := g.o.Policy.Flow(policyServer(s))
	if open {
		if reason := g.o.Taint.Reason(); reason != "" {
			reasons = append(reasons, fmt.Sprintf("%s; what is sent to server %q may get to others", reason, s.Name))
		}
	}
	if private && g.ReachesHosts() {
		reasons = append(reasons, fmt.Sprintf("what is read from server %q is private, and this run can reach %s", s.Name, g.reached()))
	}
	return reasons
}

// reached names the hosts that the run can reach.
func (g *Gate) reached() string { return strings.Join(g.o.Hosts[:min(len(g.o.Hosts), 5)], ", ") }

// sent notes that something is being read from a server.
func (g *Gate) sent(s config.Server, what string) {
	if private, _ := g.o.Policy.Flow(policyServer(s)); private {
		g.MarkRead(s.Name + "." + what)
	}
}

// failed notes that the code gets an error with words of a server, which may have come
// before anything was read from it.
func (g *Gate) failed(s config.Server) {
	read := func(what string) bool { return strings.HasPrefix(what, s.Name+".") }
	if !slices.ContainsFunc(g.Reads(), read) {
		g.sent(s, "error")
	}
}

// Reads returns what was read from private servers.
func (g *Gate) Reads() []string { return g.o.Taint.Reads() }

// HasRead reports whether something was read from private servers, or may have been.
func (g *Gate) HasRead() bool { return g.o.Taint.Reason() != "" }

// MarkRead notes that the code gets what was read from private servers before.
func (g *Gate) MarkRead(reads ...string) {
	g.o.Taint.Add(reads...)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, read := range reads {
		g.keeping = g.keeping.And(g.keepingOf(read))
	}
}

// ReachesHosts reports whether what the code has read can get out over the network.
func (g *Gate) ReachesHosts() bool { return len(g.o.Hosts) > 0 }
