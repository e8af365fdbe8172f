package policy

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/mcpproxy/match"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// network is the section [network] of a policy: what code may reach over the network.
type network struct {
	allow, deny  []netRule
	ask          []netRule // what allow does not cover, and the user may allow for a run
	privateHosts []hostPattern
	privateAddrs []netip.Prefix
	credentials  []credential
	viaProxy     bool
}

// A netRule is an entry of allow or deny: a host, and perhaps a method, a scheme, a
// port and a path.
type netRule struct {
	text   string
	deny   bool
	ask    bool
	method string // "" is any
	scheme string // http or https; "" is both
	host   hostPattern
	port   uint16 // 0 is that of the scheme, or for deny any
	path   []rune // glob in which * is any text; nil is any path
}

// A hostPattern is a host, or with a leading "*." all hosts below it.
type hostPattern string

func (p hostPattern) matches(host string) bool {
	if below, ok := strings.CutPrefix(string(p), "*"); ok {
		return strings.HasSuffix(host, below) && len(host) > len(below)
	}
	return host == string(p)
}

// about reports whether a rule has something to say about requests with this scheme
// to a host and port.
func (r netRule) about(scheme, host string, port uint16) bool {
	return (r.scheme == "" || r.scheme == scheme) && r.host.matches(host) && r.hasPort(port)
}

func (r netRule) hasPort(port uint16) bool {
	switch {
	case r.port != 0:
		return r.port == port
	case r.deny: // of all ports
		return true
	case r.scheme == "https":
		return port == 443
	case r.scheme == "http":
		return port == 80
	}
	return port == 443 || port == 80
}

// wholeHost reports whether the rule is about everything that its host answers.
func (r netRule) wholeHost() bool { return r.method == "" && r.path == nil }

func (r netRule) matches(q request) bool {
	if !r.about(q.scheme, q.host, q.port) {
		return false
	}
	method, path := q.method, q.path
	if r.deny { // some servers ignore case
		method, path = strings.ToUpper(method), strings.ToLower(path)
	}
	if r.method != "" && r.method != method && (r.method != "GET" || method != "HEAD") {
		return false
	}
	if r.path == nil || match.Glob(r.path, []rune(path)) {
		return true
	}
	return r.deny && match.Glob(r.path, []rune(withoutParameters(path)))
}

// withoutParameters drops what some servers do in a path: ;a=b behind the name of a
// segment (RFC 3986, 3.3).
func withoutParameters(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return strings.Join(segments, "/")
}

// A request is one HTTP request that code makes.
type request struct {
	method, scheme, host string
	port                 uint16
	path                 string // decoded
}

// A Target is a host that a call asked for, with the ports that it may use there.
type Target struct {
	Host  string
	Ports []uint16
}

// A NetworkGrant is what one run may reach: what its call asked for and the policy
// allows. A nil *NetworkGrant reaches nothing.
type NetworkGrant struct {
	Ask *Ask // what the user has to allow before anything is reached; nil is nothing

	file    string // that the user can change, as people write it
	targets []Target
	rules   *network
	secrets []Credential
}

// A Credential is a header that requests to a host get outside the sandbox.
type Credential struct {
	Host   string
	Header string
	Value  string // secret
	// Secrets are the parts of Value that must not be seen, at least one.
	Secrets []string
	Env     string // variable that code finds a placeholder in; "" is none
}

// A credential is a Credential whose value has yet to be filled in.
type credential struct {
	host        hostPattern
	header, env string
	value       string // with ${env:NAME}
}

// IsTarget reports whether a name among a call's servers asks for a host.
func IsTarget(name string) bool { return strings.Contains(name, "://") }

// maxTargets bounds the hosts that a call may ask for.
const maxTargets = 100

// GrantNetwork returns what a run may reach whose call asked for these targets, each
// https://HOST or https://HOST:PORT, once the user has allowed what its Ask names. A
// target that the policy neither allows nor asks about is an error that names the line to
// add. Without targets the grant is nil.
func (r *Run) GrantNetwork(targets []string) (*NetworkGrant, error) {
	switch {
	case len(targets) == 0:
		return nil, nil
	case len(targets) > maxTargets:
		return nil, fmt.Errorf("%d hosts were asked for; the most is %d", len(targets), maxTargets)
	}
	g := &NetworkGrant{rules: &network{}, file: "the policy file"}
	if r != nil {
		if r.err != nil {
			return nil, fmt.Errorf("%w; nothing may be reached until this is fixed", r.err)
		}
		g.file = r.policy.name()
		if r.rules != nil {
			g.rules = r.rules.network.withAsk()
		}
	}
	for _, name := range targets {
		t, err := parseTarget(name)
		if err != nil {
			return nil, err
		}
		if err := g.add(t); err != nil {
			return nil, fmt.Errorf("%q is not allowed: %w; the user can change %s", text.Bound(name, 120), err, g.file)
		}
	}
	return g, g.fillCredentials(os.LookupEnv)
}

// add grants a target, on those of its ports that a rule allows.
func (g *NetworkGrant) add(t Target) error {
	if err := g.rules.checkLiteral(t.Host); err != nil {
		return err
	}
	var allowed []uint16
	var err error
	for _, port := range t.Ports {
		for _, scheme := range []string{"https", "http"} {
			_, denied := g.rules.allowHost(scheme, t.Host, port)
			if denied == nil {
				allowed = append(allowed, port)
				break
			}
			if scheme == "https" && port == t.Ports[0] {
				err = denied
			}
		}
	}
	if len(allowed) == 0 {
		return err
	}
	g.askAbout(t.Host, allowed)
	for i, other := range g.targets {
		if other.Host == t.Host {
			g.targets[i].Ports = slices.Compact(slices.Sorted(slices.Values(append(other.Ports, allowed...))))
			return nil
		}
	}
	g.targets = append(g.targets, Target{t.Host, allowed})
	return nil
}

// checkLiteral refuses an address in a host's place, unless it is listed.
func (n *network) checkLiteral(host string) error {
	addr, err := netip.ParseAddr(host)
	if err != nil || n.allowPrivate(host, addr) {
		return nil
	}
	return fmt.Errorf("add %q to [network] private: an address in place of a host's name has to be listed there", host)
}

// allowHost returns the first rule that allows anything at a host and port.
func (n *network) allowHost(scheme, host string, port uint16) (rule string, err error) {
	for _, r := range n.deny {
		if r.wholeHost() && r.about(scheme, host, port) {
			return r.text, denialBy(r)
		}
	}
	for _, r := range n.allow {
		if r.about(scheme, host, port) {
			return r.text, nil
		}
	}
	t := Target{Host: host, Ports: []uint16{port}}
	return "", fmt.Errorf("add %q to [network] allow", t.String())
}

// fillCredentials resolves the credentials of granted hosts. For each header the first
// that is about the host counts.
func (g *NetworkGrant) fillCredentials(lookup func(string) (string, bool)) error {
	for _, t := range g.targets {
		for _, c := range g.rules.credentials {
			if !c.host.matches(t.Host) || g.hasCredential(t.Host, c.header) {
				continue
			}
			value, secrets, err := expandValue(c.value, lookup)
			if err != nil {
				return fmt.Errorf("the credential of %q: %w", t.Host, err)
			}
			g.secrets = append(g.secrets, Credential{Host: t.Host, Header: c.header, Value: value, Secrets: secrets, Env: c.env})
		}
	}
	return nil
}

// hasCredential reports whether an earlier entry of the policy fills this header.
func (g *NetworkGrant) hasCredential(host, header string) bool {
	return slices.ContainsFunc(g.secrets, func(c Credential) bool { return c.Host == host && strings.EqualFold(c.Header, header) })
}

// File returns the file in which the user can allow more, as people write it.
func (g *NetworkGrant) File() string { return g.file }

// Targets returns the hosts that were granted.
func (g *NetworkGrant) Targets() []Target {
	if g == nil {
		return nil
	}
	return g.targets
}

// Credentials returns those of the granted hosts.
func (g *NetworkGrant) Credentials() []Credential {
	if g == nil {
		return nil
	}
	return g.secrets
}

// ViaProxy reports whether connections go through the proxy that the host's
// environment names.
func (g *NetworkGrant) ViaProxy() bool { return g.rules.viaProxy }

func denialBy(r netRule) error { return fmt.Errorf("[network] deny = %q", r.text) }

// AllowHost checks whether anything at a host and port may be reached, and returns
// the rule that says so.
func (g *NetworkGrant) AllowHost(scheme, host string, port uint16) (rule string, err error) {
	if rule, err = g.rules.allowHost(scheme, host, port); err != nil {
		return rule, err
	}
	if !slices.ContainsFunc(g.targets, func(t Target) bool { return t.Host == host && slices.Contains(t.Ports, port) }) {
		t := Target{Host: host, Ports: []uint16{port}}
		return rule, fmt.Errorf("add %q to the servers of the call", t.URL())
	}
	return rule, nil
}

// AllowRequest checks one request, whose path is decoded, and returns the rule that
// says so.
func (g *NetworkGrant) AllowRequest(method, scheme, host string, port uint16, path string) (rule string, err error) {
	if rule, err := g.AllowHost(scheme, host, port); err != nil {
		return rule, err
	}
	q := request{method, scheme, host, port, path}
	for _, r := range g.rules.deny {
		if r.matches(q) {
			return r.text, denialBy(r)
		}
	}
	for _, r := range g.rules.allow {
		if r.matches(q) {
			return r.text, nil
		}
	}
	t := Target{Host: host, Ports: []uint16{port}}
	return "", fmt.Errorf("add \"%s %s%s\" to [network] allow", text.Bound(method, 20), t.url(scheme), text.Bound(path, 200))
}

// Inspected reports whether requests to a host and port must be checked one by one:
// a rule names a method or a path there, or a credential is added to them.
func (g *NetworkGrant) Inspected(scheme, host string, port uint16) bool {
	inside := func(r netRule) bool { return r.about(scheme, host, port) && !r.wholeHost() }
	return slices.ContainsFunc(g.rules.allow, inside) || slices.ContainsFunc(g.rules.deny, inside) ||
		scheme == "https" && slices.ContainsFunc(g.secrets, func(c Credential) bool { return c.Host == host })
}

// CanonicalHost is the function of that name.
func (g *NetworkGrant) CanonicalHost(host string) (string, error) { return CanonicalHost(host) }

// AllowPrivate reports whether a host may have this address although it is not a
// public one.
func (g *NetworkGrant) AllowPrivate(host string, addr netip.Addr) bool {
	return g.rules.allowPrivate(host, addr)
}

func (n *network) allowPrivate(host string, addr netip.Addr) bool {
	return slices.ContainsFunc(n.privateHosts, func(p hostPattern) bool { return p.matches(host) }) ||
		slices.ContainsFunc(n.privateAddrs, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// String writes a target as a rule for it.
func (t Target) String() string { return strings.TrimPrefix(t.URL(), "https://") }

// URL writes a target as a call asks for it.
func (t Target) URL() string { return t.url("https") }

func (t Target) url(scheme string) string {
	host := t.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if len(t.Ports) == 1 && t.Ports[0] != 443 && t.Ports[0] != 80 {
		return fmt.Sprintf("%s://%s:%d", scheme, host, t.Ports[0])
	}
	return scheme + "://" + host
}
