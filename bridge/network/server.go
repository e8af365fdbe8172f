package network

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
	"github.com/toolcell/toolcell/oci/egress"
)

// A Server is an MCP server of the user that gets a sandbox.
type Server struct {
	Section   string // of the policy that lists its hosts, such as [servers.github]
	Key       string // of the section that does; empty is network
	RootsFile string // where its sandbox has a file with Roots, if there are any
}

// A ServerAccess is the egress of one process of a server. Its methods are safe for concurrent
// use once Serve has returned, but for Close.
type ServerAccess struct {
	access *Access
	server Server
}

// proxyAt is where the proxy listens in the sandbox of a server. It is known before the sandbox is
// there, since the process has it in its environment from the start. The port is above those that
// the kernel gives out (net.ipv4.ip_local_port_range), and nothing is registered there.
var proxyAt = netip.MustParseAddrPort("127.0.0.1:61917")

// Prepare prepares the egress that a grant allows to a server. Its Variables and Roots are for the
// process, which is then started in a sandbox: before it connects to anything, Serve has to be
// called. The caller ends it with Close, also if it is never served.
func Prepare(g *hosts.Grant, s Server) (*ServerAccess, error) {
	if s.Section == "" || s.RootsFile == "" {
		panic("network: Prepare needs the section of the server and the place of its roots")
	}
	a, o := newAccess(g, proxyAt.String())
	o.Owner, o.Rules, o.Names = egress.Server, serverRules{g, s}, egress.NewNameTable(a.names())
	var err error
	if a.broker, err = egress.New(o); err != nil {
		return nil, err
	}
	a.trust(HostRoots(), a.broker.Certificate(), s.RootsFile)
	return &ServerAccess{a, s}, nil
}

// Variables returns the environment by which clients find the proxy, the roots and the
// placeholders of credentials.
func (s *ServerAccess) Variables() map[string]string { return maps.Clone(s.access.inside.Variables) }

// Roots returns the certificates for the file that Variables name, in PEM; empty if there are none,
// and no file is named. They do not change, and hold for ten years where the broker's own is among
// them.
func (s *ServerAccess) Roots() []byte { return []byte(s.access.inside.Roots) }

// Serve begins to serve the sandbox of the server. It is called once, at best before the process
// runs: if that has taken the proxy's port, it has no egress, and if it has taken port 53, its hosts
// are reached through the proxy only.
func (s *ServerAccess) Serve(sandbox Sandbox) error {
	packets, listeners, err := sandbox.ListenAt(nil, []netip.AddrPort{proxyAt})
	if err != nil {
		return err
	}
	if len(listeners) != 1 || len(packets) > 0 { // pid 1 has sent something else
		for _, l := range listeners {
			l.Close()
		}
		for _, p := range packets {
			p.Close()
		}
		return fmt.Errorf("the sandbox of the server has no listener at %s", proxyAt)
	}
	s.access.sandbox = sandbox
	var o egress.Options
	s.access.listenByName(&o)
	s.access.broker.Serve(listeners[0], o.NameServers, o.Named)
	return nil
}

// Contacts returns which hosts the server has reached, or was refused, by now, the latest first:
// see egress.Broker.Contacts.
func (s *ServerAccess) Contacts() []egress.Contact { return s.access.broker.Contacts() }

// RefusedSince returns what was refused since a time, or has failed, the latest first: see
// egress.Broker.RefusedSince. A refused host that the user could list has a Reason that names the
// section.
func (s *ServerAccess) RefusedSince(t time.Time) []egress.Refusal {
	return s.access.broker.RefusedSince(t)
}

// Close ends the egress and all connections.
func (s *ServerAccess) Close() { s.access.Close() }

// Explain says for the error of a call that began at a time what was refused since, and where the
// user can change that, and what has failed on the way to a host; "" if nothing. Each is at most
// five hosts or reasons.
func (s *ServerAccess) Explain(since time.Time) string {
	var unlisted, refused, failed []string
	for _, r := range s.RefusedSince(since) {
		switch {
		case r.Failed:
			failed = append(failed, r.Reason)
		case s.IsUnlisted(r):
			unlisted = append(unlisted, HostPort(r))
		default:
			refused = append(refused, HostPort(r)+" ("+r.Reason+")")
		}
	}
	var said []string
	if len(unlisted) > 0 {
		it := "it"
		if len(unlisted) > 1 {
			it = "them"
		}
		said = append(said, fmt.Sprintf("the sandbox of this server refused %s; to allow %s, add %s to %s of %s",
			first(unlisted, ", "), it, it, s.server.list(), s.access.file))
	}
	if len(refused) > 0 {
		said = append(said, "the sandbox of this server refused requests to "+first(refused, ", "))
	}
	if len(failed) > 0 {
		said = append(said, "network requests of this server failed: "+first(failed, "; "))
	}
	return strings.Join(said, "; ")
}

// IsUnlisted reports whether the user could list the host of a refusal in the server's section.
func (s *ServerAccess) IsUnlisted(r egress.Refusal) bool {
	return !r.Failed && strings.Contains(r.Reason, s.server.list())
}

// HostPort names a host as the user lists it: with its port, unless only its name was looked up.
func HostPort(r egress.Refusal) string {
	if r.Port == 0 {
		return r.Host
	}
	return net.JoinHostPort(r.Host, strconv.Itoa(r.Port))
}

// first joins some of what there is to say.
func first(all []string, separator string) string {
	all, more := all[:min(len(all), maxShown)], len(all)-maxShown
	if more > 0 {
		all = append(slices.Clone(all), "and "+strconv.Itoa(more)+" more")
	}
	return strings.Join(all, separator)
}

// list names where the user lists the hosts of the server.
func (s Server) list() string { return s.Section + " " + cmp.Or(s.Key, "network") }

// serverRules are a grant, whose errors name the section of a server.
type serverRules struct {
	*hosts.Grant
	server Server
}

func (r serverRules) AllowHost(scheme, host string, port uint16) (rule string, err error) {
	rule, err = r.Grant.AllowHost(scheme, host, port)
	return rule, r.reword(err)
}

func (r serverRules) ExplainName(host string) (rule string, err error) {
	rule, err = r.Grant.ExplainName(host)
	return rule, r.reword(err)
}

func (r serverRules) AllowRequest(method, scheme, host string, port uint16, path string) (rule string, err error) {
	rule, err = r.Grant.AllowRequest(method, scheme, host, port, path)
	return rule, r.reword(err)
}

// reword replaces what the user of a run would have to change.
func (r serverRules) reword(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.NewReplacer("[network] allow", r.server.list(), "the servers of the call", r.server.list()).Replace(err.Error()))
}
