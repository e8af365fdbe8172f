package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// A flow watches that what was read from private servers does not get to open ones
// unasked.
type flow struct {
	policy *policy.Enforcer
	taint  *consent.Taint // of the connection
	hosts  []string       // that the run can reach
}

// reasons returns why a use of a server has to be asked about.
func (f flow) reasons(s config.Server) (reasons []string) {
	private, open := f.policy.Flow(policyServer(s))
	if open {
		if reason := f.taint.Reason(); reason != "" {
			reasons = append(reasons, fmt.Sprintf("%s; what is sent to server %q may get to others", reason, s.Name))
		}
	}
	if private && len(f.hosts) > 0 {
		reasons = append(reasons, fmt.Sprintf("what is read from server %q is private, and this run can reach %s", s.Name, f.reached()))
	}
	return reasons
}

// reached names the hosts that the run can reach.
func (f flow) reached() string { return strings.Join(f.hosts[:min(len(f.hosts), 5)], ", ") }

// sent notes that something is being read from a server.
func (f flow) sent(s config.Server, what string) {
	if private, _ := f.policy.Flow(policyServer(s)); private {
		f.taint.Add(s.Name + "." + what)
	}
}

// failed notes that the code gets an error with words of a server, which may have come
// before anything was read from it.
func (f flow) failed(s config.Server) {
	read := func(what string) bool { return strings.HasPrefix(what, s.Name+".") }
	if !slices.ContainsFunc(f.taint.Reads(), read) {
		f.sent(s, "error")
	}
}

// Reads returns what was read from private servers.
func (g *Gate) Reads() []string { return g.o.Taint.Reads() }

// HasRead reports whether something was read from private servers, or may have been.
func (g *Gate) HasRead() bool { return g.o.Taint.Reason() != "" }

// MarkRead notes that the code gets what was read from private servers before.
func (g *Gate) MarkRead(reads ...string) { g.o.Taint.Add(reads...) }

// ReachesHosts reports whether what the code has read can get out over the network.
func (g *Gate) ReachesHosts() bool { return len(g.o.Hosts) > 0 }
