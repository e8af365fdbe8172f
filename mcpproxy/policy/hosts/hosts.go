// Package hosts says which hosts code may reach over the network: the section [network] of
// a policy, and what one run is granted under it.
//
// Everything is closed that no rule opens, and deny wins. Hosts are compared in one form
// only, and an address in another notation is refused, so that no other spelling gets past a
// rule. The credentials of a grant are for the host alone.
package hosts

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// Rules are the section [network] of a policy: what code may reach over the network.
// Their zero value lets it reach nothing.
type Rules struct {
	allow, deny []entry // allow ends with those of ask, which the user may allow for a run
	private     []privateRange
	credentials []credential
	viaProxy    bool
	list        func(name string) string // how messages call a list of rules; nil is [network]
}

// maxTargets bounds the hosts that a call may ask for.
const maxTargets = 100

// Count returns how many rules there are.
func (n *Rules) Count() int { return len(n.allow) + len(n.deny) }

// named is how messages call a list of rules, such as [network] allow.
func (n *Rules) named(list string) string {
	if n.list != nil {
		return n.list(list)
	}
	return "[network] " + list
}

// Asks reports whether some rule can lead to a question to the user.
func (n *Rules) Asks() bool {
	return slices.ContainsFunc(n.allow, func(r entry) bool { return r.ask })
}

// Grant returns what a run may reach whose call asked for these targets, each
// https://HOST, https://HOST:PORT or tcp://HOST:PORT, once the user has allowed what its Ask names. A
// target that the rules neither allow nor ask about is an error that names the line to
// add to file.
func (n *Rules) Grant(targets []string, file string) (*Grant, error) {
	if len(targets) > maxTargets {
		return nil, fmt.Errorf("%d hosts were asked for; the most is %d", len(targets), maxTargets)
	}
	g := &Grant{File: file, ViaProxy: n.viaProxy, rules: n}
	for _, name := range targets {
		t, err := parseTarget(name)
		if err != nil {
			return nil, err
		}
		if err := g.add(t); err != nil {
			return nil, g.refuse(text.Bound(name, 120), err)
		}
	}
	return g, g.fillCredentials(os.LookupEnv)
}

// checkLiteral refuses an address in a host's place, unless it is listed.
func (n *Rules) checkLiteral(host string) error {
	addr, err := netip.ParseAddr(host)
	if err != nil || n.allowPrivate(host, addr) {
		return nil
	}
	return fmt.Errorf("add %q to %s: an address in place of a host's name has to be listed there", host, n.named("private"))
}

// allowHost returns the first rule that allows anything at a host and port.
func (n *Rules) allowHost(scheme, host string, port uint16) (rule string, err error) {
	for _, r := range n.deny {
		// What passes with any protocol may be a request that a rule of deny is about.
		if (r.wholeHost() || scheme == "tcp") && r.about(scheme, host, port) {
			return r.text, &denialError{n.named("deny"), r.text}
		}
	}
	for _, r := range n.allow {
		if r.about(scheme, host, port) {
			return r.text, nil
		}
	}
	t := Target{Host: host, Ports: []uint16{port}, TCP: scheme == "tcp"}
	add := t.String()
	if scheme == "http" && port != 443 && n.mention(host) {
		add = t.url(scheme) // what rules allow of https may be little: the host alone would open it all
	}
	if secure, ok := n.secureTarget(scheme, host, port); ok {
		return "", fmt.Errorf("use %s, or add %q to %s", secure.URL(), add, n.named("allow"))
	}
	return "", fmt.Errorf("add %q to %s", add, n.named("allow"))
}

// secureTarget returns where a host that is asked for by http is allowed by https.
func (n *Rules) secureTarget(scheme, host string, port uint16) (t Target, ok bool) {
	if scheme != "http" {
		return t, false
	}
	if port == 80 {
		port = 443
	}
	ok = slices.ContainsFunc(n.allow, func(r entry) bool { return r.about("https", host, port) })
	return Target{Host: host, Ports: []uint16{port}}, ok
}

// mention reports whether some rule of allow is about a host.
func (n *Rules) mention(host string) bool {
	return slices.ContainsFunc(n.allow, func(r entry) bool { return r.host.matches(host) })
}

func (n *Rules) allowPrivate(host string, addr netip.Addr) bool {
	return slices.ContainsFunc(n.private, func(p privateRange) bool { return p.contains(host, addr) })
}

// A Target is a host that a call asked for, with the ports that it may use there.
type Target struct {
	Host  string
	Ports []uint16
	TCP   bool // whatever the protocol is; otherwise https and http
}

// IsTarget reports whether a name among a call's servers asks for a host.
func IsTarget(name string) bool { return strings.Contains(name, "://") }

// maxTarget bounds a target, in bytes: more than the longest name and a port have.
const maxTarget = 512

// parseTarget reads what a call asks for.
func parseTarget(s string) (Target, error) {
	const form = "a host is asked for as https://HOST, https://HOST:PORT or tcp://HOST:PORT"
	rest, ok := strings.CutPrefix(s, "https://")
	tcp := false
	if !ok {
		rest, tcp = strings.CutPrefix(s, "tcp://")
	}
	if !ok && !tcp || len(s) > maxTarget {
		return Target{}, fmt.Errorf("%q is not understood; %s", text.Bound(s, 120), form)
	}
	if strings.ContainsAny(rest, "/?#@*") {
		return Target{}, fmt.Errorf("%q has more than a host and a port, or a *; %s", text.Bound(s, 120), form)
	}
	host, port, err := SplitPort(rest)
	if err != nil {
		return Target{}, fmt.Errorf("%q: %w; %s", text.Bound(s, 120), err, form)
	}
	if tcp {
		if err := checkTCP(host, port); err != nil {
			return Target{}, fmt.Errorf("%q: %w", text.Bound(s, 120), err)
		}
	}
	ports := []uint16{443, 80}
	if port != 0 {
		ports = []uint16{port}
	}
	return Target{host, ports, tcp}, nil
}

// checkTCP checks the host and port of a target or rule that is about any protocol: only by a
// name do clients reach such a host, and only at a port that is known.
func checkTCP(host string, port uint16) error {
	if _, err := netip.ParseAddr(host); err == nil {
		return errors.New("with tcp:// a host is reached by its name, so an address cannot be")
	}
	if port == 0 {
		return errors.New("tcp:// needs a port, as in tcp://db.example.com:5432")
	}
	return nil
}

// String writes a target as a rule for it.
func (t Target) String() string { return strings.TrimPrefix(t.URL(), "https://") }

// URL writes a target as a call asks for it.
func (t Target) URL() string { return t.url(t.scheme()) }

func (t Target) scheme() string {
	if t.TCP {
		return "tcp"
	}
	return "https"
}

func (t Target) url(scheme string) string {
	host := t.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if len(t.Ports) == 1 && (t.TCP || t.Ports[0] != 443 && t.Ports[0] != 80) {
		return fmt.Sprintf("%s://%s:%d", scheme, host, t.Ports[0])
	}
	return scheme + "://" + host
}
