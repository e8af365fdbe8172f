package hosts

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/internal/toml"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

// UnmarshalJSONFrom reads the section [network].
func (n *Rules) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var s struct {
		Allow      toml.Strings[entry]        `json:"allow"`
		Deny       toml.Strings[entry]        `json:"deny"`
		Ask        toml.Strings[entry]        `json:"ask"`
		Private    toml.Strings[privateRange] `json:"private"`
		Via        viaProxy                   `json:"via"`
		Credential []credential               `json:"credential"`
	}
	if err := json.UnmarshalDecode(d, &s); err != nil {
		return err
	}
	markDenied(s.Deny)
	for i := range s.Ask {
		s.Ask[i].ask = true
	}
	*n = Rules{allow: slices.Concat(s.Allow, s.Ask), deny: s.Deny, private: s.Private, credentials: s.Credential, viaProxy: bool(s.Via)}
	return nil
}

// markDenied makes rules those of deny.
func markDenied(all []entry) {
	for i, r := range all {
		all[i].deny, all[i].path = true, strings.ToLower(r.path)
	}
}

// UnmarshalText reads a rule.
func (r *entry) UnmarshalText(rule []byte) (err error) {
	if *r, err = parseRule(string(rule)); err != nil {
		return fmt.Errorf("%q: %w", text.Bound(string(rule), 120), err)
	}
	return nil
}

// parseRule reads "[METHOD ][SCHEME://]HOST[:PORT][/PATH]", and tcp:HOST:PORT as tcp://HOST:PORT.
func parseRule(s string) (r entry, err error) {
	r.text = s
	rest := strings.TrimSpace(s)
	if method, after, ok := strings.Cut(rest, " "); ok {
		if !isToken(method) || method != strings.ToUpper(method) {
			return r, fmt.Errorf("%q is not a method in capitals, such as GET", text.Bound(method, 20))
		}
		r.method, rest = method, strings.TrimSpace(after)
	}
	if scheme, after, ok := strings.Cut(rest, "://"); ok {
		if scheme != "https" && scheme != "http" && scheme != "tcp" {
			return r, fmt.Errorf("the scheme must be https, http or tcp, not %q", text.Bound(scheme, 20))
		}
		r.scheme, rest = scheme, after
	} else if after, ok := strings.CutPrefix(rest, "tcp:"); ok && strings.Contains(after, ":") { // tcp:8080 is a host and a port
		r.scheme, rest = "tcp", after
	} else if meant, ok := misspelledScheme(rest); ok {
		return r, fmt.Errorf("the scheme needs ://, as in %s", text.Bound(meant, 120))
	}
	host, path, hasPath := strings.Cut(rest, "/")
	if hasPath {
		if r.path, err = parsePathGlob("/" + path); err != nil {
			return r, err
		}
	}
	host, r.port, err = SplitPort(host)
	r.host = hostPattern(host)
	if err == nil && r.scheme == "tcp" {
		if !r.wholeHost() {
			return r, errors.New("tcp:// is about any protocol, so no method and no path can be in the rule")
		}
		err = checkTCP(host, r.port)
	}
	return r, err
}

// misspelledScheme finds a scheme without its ://, which would be read as a host's name, and
// returns what was meant. http:8080 is a host and a port.
func misspelledScheme(s string) (meant string, ok bool) {
	scheme := "https"
	rest, ok := strings.CutPrefix(s, scheme)
	if !ok {
		scheme = "http"
		rest, ok = strings.CutPrefix(s, scheme)
	}
	after := strings.TrimLeft(rest, ":/")
	if !ok || after == "" || after == rest || after[0] >= '0' && after[0] <= '9' && !strings.HasPrefix(rest, "/") {
		return "", false
	}
	return scheme + "://" + after, true
}

// parsePathGlob reads the path of a rule, in which * stands for any text.
func parsePathGlob(path string) (string, error) {
	if strings.ContainsAny(path, "?#[]{}\\") {
		return "", errors.New("only * has a meaning in a path, and ?#[]{}\\ may not be in it; " +
			"a rule does not see what follows a ?")
	}
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return "", fmt.Errorf("the path: %w", err)
	}
	return decoded, nil
}

// A privateRange is where addresses are that are not public ones: hosts, or addresses.
type privateRange struct {
	host  hostPattern
	addrs netip.Prefix
}

// UnmarshalText reads a host, an address, or a range of them.
func (p *privateRange) UnmarshalText(written []byte) (err error) {
	s := string(written)
	if prefix, err := netip.ParsePrefix(s); err == nil {
		p.addrs = prefix
		return nil
	}
	if addr, err := netip.ParseAddr(s); err == nil {
		p.addrs = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen())
		return nil
	}
	p.host, err = parseHostPattern(s)
	return err
}

func (p privateRange) contains(host string, addr netip.Addr) bool {
	return p.host != "" && p.host.matches(host) || p.addrs.Contains(addr)
}

// viaProxy is whether connections go through the proxy of toolcell's environment.
type viaProxy bool

// UnmarshalText takes "env".
func (p *viaProxy) UnmarshalText(word []byte) error {
	if *p = string(word) == "env"; !*p {
		return errors.New(`it must be "env": the proxy that the environment of toolcell names`)
	}
	return nil
}

// A credential is a Credential whose value has yet to be filled in.
type credential struct {
	Host   hostPattern  `json:"host"`
	Header headerName   `json:"header"`
	Value  string       `json:"value"` // with ${env:NAME}
	Env    variableName `json:"env"`
}

// UnmarshalJSONFrom reads an entry of [[network.credential]].
func (c *credential) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	type fields credential
	if err := json.UnmarshalDecode(d, (*fields)(c)); err != nil {
		return err
	}
	if c.Host == "" || c.Header == "" || c.Value == "" {
		return errors.New("a credential needs host, header and value")
	}
	return nil
}

// A headerName is that of a header that may have a credential.
type headerName string

// UnmarshalText takes a name.
func (h *headerName) UnmarshalText(name []byte) error {
	*h = headerName(name)
	if !isToken(string(name)) || slices.Contains(notCredentials, strings.ToLower(string(name))) {
		return fmt.Errorf("%q is not a header that may have a credential", text.Bound(string(name), 40))
	}
	return nil
}

// A variableName is that of a variable in code's environment.
type variableName string

// UnmarshalText takes a name.
func (v *variableName) UnmarshalText(name []byte) error {
	*v = variableName(name)
	if !rule.IsVariable(string(name)) {
		return fmt.Errorf("%q is not a name for a variable", text.Bound(string(name), 40))
	}
	return nil
}

// notCredentials are headers that say how a message is to be read or where it goes.
var notCredentials = []string{
	"connection", "content-length", "content-encoding", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer",
	"transfer-encoding", "upgrade", "accept-encoding",
}

// isToken reports whether s may be a method or the name of a header (RFC 9110, 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}
