package hosts

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/internal/toml"
)

// ServerRules are what one server in a sandbox may reach. They are written like the list of [network]
// allow, or as a table with allow, deny, private and via. Those of [network] itself are about code and
// do not count here.
type ServerRules struct {
	rules   Rules
	isTable bool
}

// UnmarshalJSONFrom reads the key network of a server.
func (n *ServerRules) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var s struct {
		Allow   toml.Strings[entry]        `json:"allow"`
		Deny    toml.Strings[entry]        `json:"deny"`
		Private toml.Strings[privateRange] `json:"private"`
		Via     viaProxy                   `json:"via"`
	}
	switch d.PeekKind() {
	case jsontext.KindBeginObject:
		n.isTable = true
		if err := json.UnmarshalDecode(d, &s); err != nil {
			return err
		}
	case jsontext.KindString, jsontext.KindBeginArray:
		if err := json.UnmarshalDecode(d, &s.Allow); err != nil {
			return err
		}
	default:
		return toml.KindError("a list of hosts, or a table with allow, deny, private and via")
	}
	for _, list := range []int{len(s.Allow), len(s.Deny), len(s.Private)} {
		if list > maxTargets {
			return fmt.Errorf("it lists %d hosts; the most is %d", list, maxTargets)
		}
	}
	markDenied(s.Deny)
	n.rules = Rules{allow: s.Allow, deny: s.Deny, private: s.Private, viaProxy: bool(s.Via)}
	return n.check()
}

// check refuses rules that would do nothing. Requests are inspected only at hosts whose names are known
// when the server starts, since the certificates are made for these alone, and a port with any protocol
// is reached by the host's name.
func (n *ServerRules) check() error {
	for _, r := range slices.Concat(n.rules.allow, n.rules.deny) {
		if !r.wholeHost() && r.host.isBelow() {
			return fmt.Errorf("%q: a rule with a method or a path needs the name of one host, without *", text.Bound(r.text, 120))
		}
	}
	for _, r := range n.rules.allow {
		if r.scheme == "tcp" && r.host.isBelow() {
			return fmt.Errorf("%q: tcp:// needs the name of one host, without *", text.Bound(r.text, 120))
		}
		addr, err := netip.ParseAddr(string(r.host))
		if err == nil && !n.rules.allowPrivate(string(r.host), addr) {
			return fmt.Errorf("%q: an address in place of a host's name has to be listed in private, too: network = { allow = [%q], private = [%q] }",
				text.Bound(r.text, 120), text.Bound(r.text, 120), addr)
		}
	}
	return nil
}

// isBelow reports whether the pattern stands for all hosts below one.
func (p hostPattern) isBelow() bool { return p[0] == '*' }

// Named sets how messages call the key that has the rules, such as [servers.github] network. Of nil it
// does nothing.
func (n *ServerRules) Named(key string) {
	if n == nil {
		return
	}
	n.rules.list = func(name string) string {
		if name == "allow" && !n.isTable {
			return key
		}
		return key + "." + name
	}
}

// With returns the rules with further hosts, in the form of allow, but for those that they allow already.
// What would not be valid is left out, with the reason. The rules, which may be nil, do not change.
func (n *ServerRules) With(more []string) (with *ServerRules, wrong []error) {
	with = &ServerRules{}
	if n != nil {
		*with = *n
		with.rules.allow = slices.Clone(n.rules.allow)
	}
	for _, written := range more {
		var r entry
		err := r.UnmarshalText([]byte(written))
		if err == nil && slices.ContainsFunc(with.rules.allow, r.isIn) {
			continue
		}
		longer := *with
		longer.rules.allow = append(slices.Clone(with.rules.allow), r)
		if err == nil {
			err = longer.check()
		}
		switch {
		case err != nil:
			wrong = append(wrong, err)
		case len(longer.rules.allow) > maxTargets:
			return with, append(wrong, fmt.Errorf("%q and others: the most is %d hosts", text.Bound(written, 120), maxTargets))
		default:
			*with = longer
		}
	}
	return with, wrong
}

// isIn reports whether another rule allows what this one, about a whole host, is for: a rule for https
// is enough for a host without a scheme.
func (r entry) isIn(other entry) bool {
	if r.text == other.text {
		return true
	}
	sameScheme := other.scheme == r.scheme || other.scheme == "" && r.scheme != "tcp" || other.scheme == "https" && r.scheme == ""
	return other.wholeHost() && sameScheme && other.port == r.port && other.host.matches(string(r.host))
}

// Empty reports whether the rules allow nothing.
func (n *ServerRules) Empty() bool { return len(n.rules.allow) == 0 }

// String writes the rules as a policy has them.
func (n *ServerRules) String() string {
	list := func(all []entry) string {
		quoted := make([]string, len(all))
		for i, r := range all {
			quoted[i] = toml.Quote(r.text)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	if !n.isTable {
		return list(n.rules.allow)
	}
	parts := []string{"allow = " + list(n.rules.allow)}
	if n.rules.deny != nil {
		parts = append(parts, "deny = "+list(n.rules.deny))
	}
	if n.rules.private != nil {
		quoted := make([]string, len(n.rules.private))
		for i, p := range n.rules.private {
			quoted[i] = toml.Quote(p.String())
		}
		parts = append(parts, "private = ["+strings.Join(quoted, ", ")+"]")
	}
	if n.rules.viaProxy {
		parts = append(parts, `via = "env"`)
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

func (p privateRange) String() string {
	if p.host != "" {
		return string(p.host)
	}
	return p.addrs.String()
}

// Lines are the rules, one on a line, for people.
func (n *ServerRules) Lines(key string) (lines []string) {
	for _, r := range n.rules.allow {
		lines = append(lines, key+": "+r.text)
	}
	for _, r := range n.rules.deny {
		lines = append(lines, key+", but not: "+r.text)
	}
	for _, p := range n.rules.private {
		lines = append(lines, key+", private: "+p.String())
	}
	if n.rules.viaProxy {
		lines = append(lines, key+": through the proxy of toolcell's environment")
	}
	return lines
}

// GrantAll grants everything that the rules allow, with these credentials. Its Targets are the hosts
// that a rule or a credential names; those below a *. are reached through the proxy alone. A
// credential for a host that is not allowed is an error. Messages name file, in which the user can
// allow more.
func (n *ServerRules) GrantAll(file string, credentials []Credential) (*Grant, error) {
	g := &Grant{File: file, ViaProxy: n.rules.viaProxy, Credentials: credentials, rules: &n.rules, whole: true}
	for _, r := range slices.Concat(n.rules.allow, n.rules.deny) {
		if !r.host.isBelow() {
			g.addAllowed(r.target())
		}
	}
	for _, c := range credentials {
		g.addAllowed(Target{Host: c.Host, Ports: []uint16{443, 80}})
		if !slices.ContainsFunc(g.Targets, func(t Target) bool { return t.Host == c.Host && !t.TCP }) {
			return nil, &NotAllowedError{c.Host, n.rules.named("allow")}
		}
	}
	return g, nil
}

// Allows reports whether GrantAll grants a host to HTTP, so that it may have a credential.
func (n *ServerRules) Allows(host string) bool {
	_, err := n.GrantAll("", []Credential{{Host: host}})
	return err == nil
}

// A NotAllowedError says that a credential is for a host that the server may not reach.
type NotAllowedError struct{ Host, List string }

func (e *NotAllowedError) Error() string {
	return fmt.Sprintf("%q may not be reached: add it to %s", e.Host, e.List)
}

// addAllowed adds those ports of a target that some rule allows.
func (g *Grant) addAllowed(t Target) { _ = g.add(t) }

// target is what a rule is about that names a host.
func (r entry) target() Target {
	t := Target{Host: string(r.host), Ports: []uint16{443, 80}, TCP: r.scheme == "tcp"}
	switch {
	case r.port != 0:
		t.Ports = []uint16{r.port}
	case r.scheme == "https":
		t.Ports = []uint16{443}
	case r.scheme == "http":
		t.Ports = []uint16{80}
	case t.TCP: // of a deny
		t.Ports = nil
	}
	return t
}

// explainWhole is ExplainName of a grant that GrantAll has made.
func (g *Grant) explainWhole(host string) (rule string, err error) {
	for _, r := range g.rules.allow {
		t := r.target()
		if !r.host.matches(host) || !slices.ContainsFunc(t.Ports, func(port uint16) bool {
			_, denied := g.rules.allowHost(t.schemes()[0], host, port)
			return denied == nil
		}) {
			continue
		}
		return r.text, fmt.Errorf("%q names no single host, so only clients that use the proxy of HTTPS_PROXY reach it; for others add %q to %s",
			r.text, host, g.rules.named("allow"))
	}
	return g.AllowHost("https", host, 443)
}

// A ServerSecret is a value that one host gets from outside the sandbox. The server finds a placeholder
// in a variable.
type ServerSecret struct{ of credential }

// Variable is the variable that has the value outside and the placeholder inside.
func (s ServerSecret) Variable() string { return string(s.of.Env) }

// Host is the host that gets the value.
func (s ServerSecret) Host() string { return string(s.of.Host) }

// Header is the header that the value is sent in.
func (s ServerSecret) Header() string { return string(s.of.Header) }

// UnmarshalJSONFrom reads { env, host, header, value }. Without header and value it is
// Authorization: Bearer VALUE.
func (s *ServerSecret) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	type fields credential
	f := fields{Header: "Authorization"}
	if err := json.UnmarshalDecode(d, &f); err != nil {
		return err
	}
	switch {
	case f.Host == "" || f.Env == "":
		return errors.New(`a secret for a host needs env and host, as in { env = "TOKEN", host = "api.example.com" }`)
	case f.Host.isBelow():
		return toml.KeyError(d, "host", fmt.Errorf("%q: it must be one host, without *", string(f.Host)))
	case f.Value == "":
		f.Value = bearer(f.Env)
	}
	s.of = credential(f)
	return nil
}

// String writes the secret as a policy has it.
func (s ServerSecret) String() string {
	parts := []string{"env = " + toml.Quote(s.Variable()), "host = " + toml.Quote(s.Host())}
	if s.Header() != "Authorization" {
		parts = append(parts, "header = "+toml.Quote(s.Header()))
	}
	if s.of.Value != bearer(s.of.Env) {
		parts = append(parts, "value = "+toml.Quote(s.of.Value))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

// bearer is the value of a header that has the variable as a token.
func bearer(env variableName) string { return "Bearer ${env:" + string(env) + "}" }

// Credential is what the host gets. lookup gives the values of variables.
func (s ServerSecret) Credential(lookup func(string) (string, bool)) (Credential, error) {
	return s.of.fill(string(s.of.Host), lookup)
}
