// Package network gives one run the egress that its call asked for and the user's
// policy allows: a broker (oci/egress) behind a listener in the run's sandbox, and
// the variables by which clients in there find it.
//
// It promises that egress ends with the run, also in a session, and
// that credentials stay on the host: code finds placeholders.
package network

import (
	"crypto/rand"
	"net"
	"net/http"
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
	broker *egress.Broker
	inside runner.Network
	file   string // of the policy
}

// Open begins to serve connections from l, which it takes over, as the grant allows.
func Open(l net.Listener, g *hosts.Grant) (*Access, error) {
	o := egress.Options{Rules: g}
	if g.ViaProxy {
		o.Proxy = http.ProxyFromEnvironment
	}
	for _, t := range g.Targets {
		if slices.ContainsFunc(t.Ports, func(port uint16) bool { return g.Inspected("https", t.Host, port) }) {
			o.Inspect = append(o.Inspect, t.Host)
		}
	}
	a := &Access{inside: runner.Network{Variables: proxyVariables("http://"+l.Addr().String(), g.Targets)}, file: g.File}
	o.Credentials = a.addPlaceholders(g.Credentials)
	var err error
	if a.broker, err = egress.Start(l, o); err != nil {
		return nil, err
	}
	a.trust(HostRoots(), a.broker.Certificate())
	return a, nil
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
		return slices.ContainsFunc(targets, func(t hosts.Target) bool { return t.Host == host })
	})
	none := strings.Join(direct, ",")
	return map[string]string{
		"http_proxy": proxy, "https_proxy": proxy, "all_proxy": proxy, "no_proxy": none,
		"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "ALL_PROXY": proxy, "NO_PROXY": none,
	}
}

// trust has clients trust what the host does, and the broker where it stands in for
// hosts. With neither there is nothing to add to what the image trusts.
func (a *Access) trust(roots, broker []byte) {
	if len(roots)+len(broker) == 0 {
		return
	}
	a.inside.Roots = string(roots) + "\n" + string(broker)
	for _, name := range []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"} {
		a.inside.Variables[name] = runner.RootsFile
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
	return Report{
		Uses: a.broker.Uses(), Unchecked: a.broker.ThroughProxy(),
		refused: a.broker.Refusals(), failed: a.broker.Failures(), file: a.file,
	}
}
