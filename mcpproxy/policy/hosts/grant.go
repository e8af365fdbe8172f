package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

// A Grant is what one run may reach: what its call asked for and the policy
// allows. A nil *Grant and the zero Grant reach nothing.
type Grant struct {
	Ask         rule.Reasons // what the user has to allow before anything is reached; nil is nothing
	File        string       // in which the user can allow more, as people write it
	Targets     []Target     // the hosts that were granted
	Credentials []Credential // of these hosts
	ViaProxy    bool         // connections go through the proxy that the host's environment names

	rules *Rules
	whole bool // all that the rules allow is granted, whatever Targets has
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

// add grants a target, on those of its ports that a rule allows.
func (g *Grant) add(t Target) error {
	if err := g.rules.checkLiteral(t.Host); err != nil {
		return err
	}
	var allowed []uint16
	var err error
	for _, port := range t.Ports {
		for i, scheme := range t.schemes() {
			_, denied := g.rules.allowHost(scheme, t.Host, port)
			if denied == nil {
				allowed = append(allowed, port)
				break
			}
			if i == 0 && port == t.Ports[0] {
				err = denied
			}
		}
	}
	if len(allowed) == 0 {
		return err
	}
	g.askAbout(Target{t.Host, allowed, t.TCP})
	for i, other := range g.Targets {
		if other.Host == t.Host && other.TCP == t.TCP {
			g.Targets[i].Ports = slices.Compact(slices.Sorted(slices.Values(append(other.Ports, allowed...))))
			return nil
		}
	}
	g.Targets = append(g.Targets, Target{t.Host, allowed, t.TCP})
	return nil
}

// askAbout adds to what the user is asked which rules of ask let the run reach a host,
// beyond what those of allow let it.
func (g *Grant) askAbout(t Target) {
	for _, port := range t.Ports {
		for _, scheme := range t.schemes() {
			about := func(r entry) bool { return r.about(scheme, t.Host, port) }
			if slices.ContainsFunc(g.rules.allow, func(r entry) bool { return !r.ask && r.wholeHost() && about(r) }) {
				continue
			}
			for _, r := range g.rules.allow { // each may let it reach something else
				if r.ask && about(r) {
					reason := fmt.Sprintf("policy %s, [network] ask = %q: the code wants to reach %s", g.File, r.text, Target{t.Host, []uint16{port}, t.TCP})
					if t.TCP {
						reason += " with any protocol: nothing sees what it does there, and it can send that host anything"
					}
					g.Ask.Add(reason)
				}
			}
		}
	}
}

// schemes are those that a target is about.
func (t Target) schemes() []string {
	if t.TCP {
		return []string{"tcp"}
	}
	return []string{"https", "http"}
}

// fillCredentials resolves the credentials of granted hosts. For each header the first
// that is about the host counts.
func (g *Grant) fillCredentials(lookup func(string) (string, bool)) error {
	for _, t := range g.Targets {
		for _, c := range g.rules.credentials {
			if t.TCP || !c.Host.matches(t.Host) || g.hasCredential(t.Host, string(c.Header)) {
				continue
			}
			filled, err := c.fill(t.Host, lookup)
			if err != nil {
				return err
			}
			g.Credentials = append(g.Credentials, filled)
		}
	}
	return nil
}

// fill resolves a credential for a host.
func (c credential) fill(host string, lookup func(string) (string, bool)) (Credential, error) {
	value, secrets, err := rule.Expand(c.Value, lookup)
	if err != nil {
		return Credential{}, fmt.Errorf("the credential of %q: %w", host, err)
	}
	for i, s := range secrets { // spaces around a value do not reach the host (RFC 9110, 5.5), nor come back from it
		secrets[i] = cmp.Or(strings.Trim(s, " "), s)
	}
	return Credential{Host: host, Header: string(c.Header), Value: value, Secrets: secrets, Env: string(c.Env)}, nil
}

// hasCredential reports whether an earlier entry of the policy fills this header.
func (g *Grant) hasCredential(host, header string) bool {
	return slices.ContainsFunc(g.Credentials, func(c Credential) bool { return c.Host == host && strings.EqualFold(c.Header, header) })
}

// valid reports whether Rules.Grant has made the grant.
func (g *Grant) valid() bool { return g != nil && g.rules != nil }

var errNotGranted = errors.New("nothing was granted")

// A denialError says that a rule of deny is about a request.
type denialError struct{ list, rule string }

func (e *denialError) Error() string { return fmt.Sprintf("%s = %q", e.list, e.rule) }

// refuse makes the error of a target that may not be reached.
func (g *Grant) refuse(target string, why error) error {
	if _, ok := errors.AsType[*denialError](why); ok {
		return fmt.Errorf("policy %s, %w: %q is not allowed", g.File, why, target)
	}
	return fmt.Errorf("policy %s: %q is not allowed: %w", g.File, target, why)
}

// AllowHost checks whether anything at a host and port may be reached, and returns
// the rule that says so.
func (g *Grant) AllowHost(scheme, host string, port uint16) (rule string, err error) {
	if !g.valid() {
		return "", errNotGranted
	}
	if rule, err = g.rules.allowHost(scheme, host, port); err != nil {
		return rule, err
	}
	tcp := scheme == "tcp"
	if !g.whole && !slices.ContainsFunc(g.Targets, func(t Target) bool { return t.Host == host && t.TCP == tcp && slices.Contains(t.Ports, port) }) {
		t := Target{host, []uint16{port}, tcp}
		return rule, fmt.Errorf("add %q to the servers of the call", t.URL())
	}
	return rule, nil
}

// ExplainName explains why a host that code looks up has no address: what to add to the call, if
// a rule allows the host, and otherwise to the policy.
func (g *Grant) ExplainName(host string) (rule string, err error) {
	if !g.valid() {
		return "", errNotGranted
	}
	if g.whole {
		return g.explainWhole(host)
	}
	rule, err = g.AllowHost("https", host, 443)
	for _, r := range g.rules.allow {
		t := Target{host, []uint16{r.port}, r.scheme == "tcp"}
		if r.port == 0 || !r.host.matches(host) {
			continue
		}
		if _, denied := g.rules.allowHost(t.scheme(), host, r.port); denied == nil && rule == "" {
			return r.text, fmt.Errorf("add %q to the servers of the call", t.URL())
		}
	}
	return rule, err
}

// AllowRequest checks one request, whose path is decoded, and returns the rule that
// says so.
func (g *Grant) AllowRequest(method, scheme, host string, port uint16, path string) (rule string, err error) {
	if rule, err := g.AllowHost(scheme, host, port); err != nil {
		return rule, err
	}
	q := request{method, scheme, host, port, path}
	for _, r := range g.rules.deny {
		if r.matches(q) {
			return r.text, &denialError{g.rules.named("deny"), r.text}
		}
	}
	for _, r := range g.rules.allow {
		if r.matches(q) {
			return r.text, nil
		}
	}
	if method != strings.ToUpper(method) { // no rule can be written for it
		return "", fmt.Errorf("the method %q is not in capitals, as those of rules are", text.Bound(method, 20))
	}
	t := Target{Host: host, Ports: []uint16{port}}
	return "", fmt.Errorf("add \"%s %s%s\" to %s", text.Bound(method, 20), t.url(scheme), pathForRule(path), g.rules.named("allow"))
}

// maxPath bounds what a refusal shows of a path, in characters.
const maxPath = 200

// pathForRule writes a decoded path as a rule has it.
func pathForRule(path string) string {
	if !strings.HasPrefix(path, "/") {
		return "" // of OPTIONS *, which only a rule without a path allows
	}
	if all := []rune(path); len(all) > maxPath {
		return pathForRule(string(all[:maxPath])) + "*"
	}
	return (&url.URL{Path: path}).EscapedPath()
}

// Inspected reports whether requests to a host and port must be checked one by one:
// a rule names a method or a path there, or a credential is added to them.
func (g *Grant) Inspected(scheme, host string, port uint16) bool {
	if !g.valid() {
		return true
	}
	inside := func(r entry) bool { return r.about(scheme, host, port) && !r.wholeHost() }
	return slices.ContainsFunc(g.rules.allow, inside) || slices.ContainsFunc(g.rules.deny, inside) ||
		scheme == "https" && slices.ContainsFunc(g.Credentials, func(c Credential) bool { return c.Host == host })
}

// CanonicalHost is Canonical.
func (g *Grant) CanonicalHost(host string) (string, error) { return Canonical(host) }

// AllowPrivate reports whether a host may have this address although it is not a
// public one.
func (g *Grant) AllowPrivate(host string, addr netip.Addr) bool {
	return g.valid() && g.rules.allowPrivate(host, addr)
}
