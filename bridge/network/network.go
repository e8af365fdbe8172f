// Package network gives one run the egress that its call asked for and the user's
// policy allows: a broker (oci/egress) behind a listener in the run's sandbox, the variables
// by which clients in there find it, and a name server and listeners for those that do not look
// for it. It gives the same to an MCP server of the user that has a sandbox (Prepare).
//
// It promises that egress ends with the run, also in a session, or with the server, and
// that credentials stay on the host: code finds placeholders.
package network

import (
	"crypto/rand"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/internal/netguard"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
	"github.com/toolcell/toolcell/oci/egress"
)

// An Access is the egress of one run. A nil *Access is none.
type Access struct {
	sandbox Sandbox
	broker  *egress.Broker
	inside  runner.Network
	targets []hosts.Target
	named   bool   // hosts are reached by name as well
	file    string // of the policy
}

// A Sandbox makes sockets in its own network, as oci.Sandbox does.
type Sandbox interface {
	Listen() (net.Listener, error)
	ListenAt(udp, tcp []netip.AddrPort) ([]net.PacketConn, []net.Listener, error)
	Resolve(names bool) error
}

// Open begins to serve what the grant allows to the code in a sandbox. If the sandbox cannot have
// a name server, since its code or this host does not let it, hosts are reached through the proxy
// alone.
func Open(sandbox Sandbox, g *hosts.Grant) (*Access, error) {
	l, err := sandbox.Listen()
	if err != nil {
		return nil, err
	}
	a, o := newAccess(g, l.Addr().String())
	a.sandbox = sandbox
	a.listenByName(&o)
	if a.broker, err = egress.Start(l, o); err != nil {
		_ = sandbox.Resolve(false)
		return nil, err
	}
	a.trust(HostRoots(), a.broker.Certificate(), runner.RootsFile)
	return a, nil
}

// newAccess returns what does not need the sandbox: the variables for clients of a proxy at an
// address inside, and the options of a broker.
func newAccess(g *hosts.Grant, proxy string) (a *Access, o egress.Options) {
	o.Rules = g
	if g.ViaProxy {
		o.Proxy = http.ProxyFromEnvironment
	}
	a = &Access{targets: g.Targets, file: g.File}
	for _, t := range g.Targets {
		if !t.TCP && slices.ContainsFunc(t.Ports, func(port uint16) bool { return g.Inspected("https", t.Host, port) }) {
			o.Inspect = append(o.Inspect, t.Host)
		}
	}
	a.inside = runner.Network{Variables: proxyVariables("http://"+proxy, g.Targets)}
	o.Credentials = a.addPlaceholders(g.Credentials)
	return a, o
}

// listenByName adds what serves hosts by name, if the sandbox can have it.
func (a *Access) listenByName(o *egress.Options) {
	names := egress.NewNameTable(a.names())
	if names == nil || a.sandbox.Resolve(true) != nil {
		return
	}
	packets, listeners, err := a.sandbox.ListenAt(names.UDP(), names.TCP())
	if a.named = err == nil && len(packets) > 0; a.named {
		o.Names, o.NameServers, o.Named = names, packets, listeners
		return
	}
	for _, l := range listeners {
		l.Close()
	}
	_ = a.sandbox.Resolve(false)
}

// names are the hosts that can be reached by name. A client that has an address asks for none.
func (a *Access) names() (all []egress.Name) {
	for _, t := range a.targets {
		if _, err := netip.ParseAddr(t.Host); err == nil {
			continue
		}
		for _, port := range t.Ports {
			all = append(all, egress.Name{Host: t.Host, Port: port, Any: t.TCP})
		}
	}
	return all
}

// addPlaceholders gives each credential what stands in for it inside: the same for all
// with one variable.
func (a *Access) addPlaceholders(credentials []hosts.Credential) (all []egress.Credential) {
	byVariable := map[string]string{}
	for _, c := range credentials {
		placeholder := byVariable[c.Env]
		if c.Env == "" || placeholder == "" {
			placeholder = "tc_" + (rand.Text() + rand.Text())[:32]
			byVariable[c.Env] = placeholder
		}
		all = append(all, egress.Credential{Host: c.Host, Header: c.Header, Value: c.Value, Secrets: c.Secrets, Placeholder: placeholder})
		if _, taken := a.inside.Variables[c.Env]; c.Env != "" && !taken {
			a.inside.Variables[c.Env] = placeholder
		}
	}
	return all
}

// proxyVariables are those by which clients find their proxy. Programs differ in the
// case that they read.
func proxyVariables(proxy string, targets []hosts.Target) map[string]string {
	// The loopback is the sandbox itself, unless the grant names it: then it is the host's.
	direct := slices.DeleteFunc(slices.Clone(netguard.Loopback), func(host string) bool {
		return slices.ContainsFunc(targets, func(t hosts.Target) bool { return t.Host == host && !t.TCP })
	})
	none := strings.Join(direct, ",")
	return map[string]string{
		"http_proxy": proxy, "https_proxy": proxy, "all_proxy": proxy, "no_proxy": none,
		"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "ALL_PROXY": proxy, "NO_PROXY": none,
	}
}

// trust has clients trust what the host does, and the broker where it stands in for
// hosts, once they are in a file inside. With neither there is nothing to add to what the image
// trusts.
func (a *Access) trust(roots, broker []byte, file string) {
	if len(roots)+len(broker) == 0 {
		return
	}
	a.inside.Roots = string(roots) + "\n" + string(broker)
	for _, name := range []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"} {
		a.inside.Variables[name] = file
	}
}

// maxRoots bounds the host's certificates; distributions have some 200 KiB.
const maxRoots = 4 << 20

// HostRoots returns the certificates that this host trusts, in PEM, nil if there are none in
// the places that distributions have for them (crypto/x509, root_linux.go).
func HostRoots() []byte {
	for _, file := range []string{
		os.Getenv("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
	} {
		if pem, err := state.ReadRegular(file, maxRoots); err == nil && len(pem) > 0 {
			return pem
		}
	}
	return nil
}

// Inside returns what the runner needs to know of it, nil if there is none.
func (a *Access) Inside() *runner.Network {
	if a == nil {
		return nil
	}
	return &a.inside
}

// Close ends the egress and all connections, and reports what was reached.
func (a *Access) Close() Report {
	if a == nil {
		return Report{}
	}
	a.broker.Close()
	if a.named {
		_ = a.sandbox.Resolve(false) // it may have ended
	}
	return Report{
		Uses: a.broker.Uses(), Unchecked: a.broker.ThroughProxy(), named: a.named, targets: a.targets,
		refused: a.broker.Refusals(), failed: a.broker.Failures(), file: a.file,
	}
}
