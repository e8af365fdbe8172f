package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

func parseNetwork(path toml.Key, v any) (n network, err error) {
	keys, err := table(path, v)
	if err != nil {
		return n, err
	}
	for _, key := range sorted(keys) {
		at, v := under(path, key), keys[key]
		switch key {
		case "allow":
			n.allow, err = parseNetRules(at, v, false)
		case "deny":
			n.deny, err = parseNetRules(at, v, true)
		case "ask":
			n.ask, err = parseNetRules(at, v, false)
			for i := range n.ask {
				n.ask[i].ask = true
			}
		case "private":
			err = n.parsePrivate(at, v)
		case "via":
			if v != "env" {
				err = &fault{at, `it must be "env": the proxy that the environment of toolcell names`}
			}
			n.viaProxy = true
		case "credential":
			n.credentials, err = parseCredentials(at, v)
		default:
			err = unknownKey(at, "allow", "deny", "ask", "private", "via", "credential")
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func parseNetRules(path toml.Key, v any, deny bool) ([]netRule, error) {
	texts, err := parseTexts(path, v)
	if err != nil {
		return nil, err
	}
	rules := make([]netRule, 0, len(texts))
	for _, s := range texts {
		r, err := parseNetRule(s)
		if err != nil {
			return nil, &fault{path, fmt.Sprintf("%q: %v", text.Bound(s, 120), err)}
		}
		if r.deny = deny; deny {
			r.path = lower(r.path)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func lower(path []rune) []rune {
	if path == nil {
		return nil
	}
	return []rune(strings.ToLower(string(path)))
}

// parseNetRule reads "[METHOD ][SCHEME://]HOST[:PORT][/PATH]".
func parseNetRule(s string) (r netRule, err error) {
	r.text = s
	rest := strings.TrimSpace(s)
	if method, after, ok := strings.Cut(rest, " "); ok {
		if !isToken(method) || method != strings.ToUpper(method) {
			return r, fmt.Errorf("%q is not a method in capitals, such as GET", text.Bound(method, 20))
		}
		r.method, rest = method, strings.TrimSpace(after)
	}
	if scheme, after, ok := strings.Cut(rest, "://"); ok {
		if scheme != "https" && scheme != "http" {
			return r, fmt.Errorf("the scheme must be https or http, not %q", text.Bound(scheme, 20))
		}
		r.scheme, rest = scheme, after
	}
	host, path, hasPath := strings.Cut(rest, "/")
	if hasPath {
		if r.path, err = parsePathGlob("/" + path); err != nil {
			return r, err
		}
	}
	r.host, r.port, err = parseHostPort(host)
	return r, err
}

// parsePathGlob reads the path of a rule, in which * stands for any text.
func parsePathGlob(path string) ([]rune, error) {
	if strings.ContainsAny(path, "?#[]{}\\") {
		return nil, fmt.Errorf("only * has a meaning in a path, and ?#[]{}\\ may not be in it; a rule does not see what follows a ?")
	}
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return nil, fmt.Errorf("the path: %w", err)
	}
	return []rune(decoded), nil
}

// parseHostPort reads HOST or HOST:PORT; the port is 0 if there is none.
func parseHostPort(s string) (hostPattern, uint16, error) {
	host, port := s, ""
	if end := strings.LastIndexByte(s, ']'); strings.HasPrefix(s, "[") && end > 0 {
		host, port = s[1:end], strings.TrimPrefix(s[end+1:], ":")
		if s[end+1:] != "" && port == s[end+1:] {
			return "", 0, fmt.Errorf("a colon and a port must follow %q", s[:end+1])
		}
	} else if name, number, ok := strings.Cut(s, ":"); ok {
		if strings.Contains(number, ":") {
			return "", 0, fmt.Errorf("an IPv6 address must be in brackets, as in [2001:db8::1]:443")
		}
		host, port = name, number
	}
	var n uint64
	if port != "" || strings.HasSuffix(s, ":") {
		var err error
		if n, err = strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", 0, fmt.Errorf("%q is not a port from 1 to 65535", text.Bound(port, 20))
		}
	}
	pattern, err := parseHostPattern(host)
	return pattern, uint16(n), err
}

// parseHostPattern reads a host name, an address, or *.NAME.
func parseHostPattern(s string) (hostPattern, error) {
	name, below := strings.CutPrefix(s, "*.")
	host, err := CanonicalHost(name)
	if err != nil {
		return "", err
	}
	if below {
		if _, err := netip.ParseAddr(host); err == nil {
			return "", fmt.Errorf("%q is an address, and has nothing below it", text.Bound(name, 80))
		}
		return hostPattern("*." + host), nil
	}
	return hostPattern(host), nil
}

// CanonicalHost returns the one form in which hosts are compared: lower case, without
// a final dot, names in ASCII, addresses as netip writes them. An address in any other
// notation, such as 0x7f000001, is an error.
func CanonicalHost(host string) (string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", fmt.Errorf("the address %q has a zone", text.Bound(host, 80))
		}
		return addr.Unmap().String(), nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	switch {
	case strings.ContainsFunc(host, func(c rune) bool { return c > unicode.MaxASCII }): // before ToLower, which makes k of the Kelvin sign
		return "", fmt.Errorf("%q has letters beyond ASCII; write it as DNS has it, with xn--", text.Bound(host, 80))
	case name == "" || len(name) > 253 || strings.ContainsFunc(name, notInHost) || slices.Contains(strings.Split(name, "."), ""):
		return "", fmt.Errorf("%q is not the name of a host", text.Bound(host, 80))
	}
	if last := name[strings.LastIndexByte(name, '.')+1:]; last[0] >= '0' && last[0] <= '9' {
		// The last label of a name begins with a letter (RFC 1123, 2.1). Resolvers
		// read others as addresses (inet_aton(3)).
		return "", fmt.Errorf("%q is neither a host's name nor an address as in 192.0.2.1", text.Bound(host, 80))
	}
	return name, nil
}

func notInHost(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
}

// parseTarget reads what a call asks for.
func parseTarget(s string) (Target, error) {
	const form = "a host is asked for as https://HOST or https://HOST:PORT"
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok || len(s) > maxGlob {
		return Target{}, fmt.Errorf("%q is not understood; %s", text.Bound(s, 120), form)
	}
	if strings.ContainsAny(rest, "/?#@*") {
		return Target{}, fmt.Errorf("%q has more than a host and a port, or a *; %s", text.Bound(s, 120), form)
	}
	host, port, err := parseHostPort(rest)
	if err != nil {
		return Target{}, fmt.Errorf("%q: %w; %s", text.Bound(s, 120), err, form)
	}
	ports := []uint16{443, 80}
	if port != 0 {
		ports = []uint16{port}
	}
	return Target{string(host), ports}, nil
}

func (n *network) parsePrivate(path toml.Key, v any) error {
	texts, err := parseTexts(path, v)
	if err != nil {
		return err
	}
	for _, s := range texts {
		if prefix, err := netip.ParsePrefix(s); err == nil {
			n.privateAddrs = append(n.privateAddrs, prefix.Masked())
			continue
		}
		if addr, err := netip.ParseAddr(s); err == nil {
			n.privateAddrs = append(n.privateAddrs, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()))
			continue
		}
		host, err := parseHostPattern(s)
		if err != nil {
			return &fault{path, err.Error()}
		}
		n.privateHosts = append(n.privateHosts, host)
	}
	return nil
}

func parseCredentials(path toml.Key, v any) ([]credential, error) {
	list, ok := v.([]map[string]any)
	if !ok {
		return nil, &fault{path, "write it as [[network.credential]], once for each"}
	}
	all := make([]credential, 0, len(list))
	for _, keys := range list {
		c, err := parseCredential(path, keys)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func parseCredential(path toml.Key, keys map[string]any) (c credential, err error) {
	for _, key := range sorted(keys) {
		at := under(path, key)
		s, ok := keys[key].(string)
		if !ok {
			return c, wrongType(at, "a string", keys[key])
		}
		switch key {
		case "host":
			if c.host, err = parseHostPattern(s); err != nil {
				return c, &fault{at, err.Error()}
			}
		case "header":
			if c.header = s; !isToken(s) || slices.Contains(notCredentials, strings.ToLower(s)) {
				return c, &fault{at, fmt.Sprintf("%q is not a header that may have a credential", text.Bound(s, 40))}
			}
		case "value":
			c.value = s
		case "env":
			if c.env = s; !validVariable(s) {
				return c, &fault{at, fmt.Sprintf("%q is not a name for a variable", text.Bound(s, 40))}
			}
		default:
			return c, unknownKey(at, "host", "header", "value", "env")
		}
	}
	if c.host == "" || c.header == "" || c.value == "" {
		return c, &fault{path, "a credential needs host, header and value"}
	}
	return c, nil
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

func validVariable(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9')
	}) && (s[0] < '0' || s[0] > '9')
}

// expandValue replaces each ${env:NAME} by the variable of toolcell's own environment.
// It returns what of the value is secret: those variables, or all of it.
func expandValue(value string, lookup func(string) (string, bool)) (expanded string, secrets []string, err error) {
	var out strings.Builder
	for {
		before, after, ok := strings.Cut(value, "${env:")
		out.WriteString(before)
		if !ok {
			break
		}
		name, rest, ok := strings.Cut(after, "}")
		if !ok {
			return "", nil, errors.New("a ${env: has no }")
		}
		v, set := lookup(name)
		if !set || v == "" {
			return "", nil, fmt.Errorf("the variable %s is not set where toolcell runs", text.Bound(name, 80))
		}
		out.WriteString(v)
		secrets = append(secrets, v)
		value = rest
	}
	if strings.ContainsFunc(out.String(), unicode.IsControl) {
		return "", nil, errors.New("its value cannot stand in a header")
	}
	if secrets == nil { // without the scheme, such as Bearer
		secrets = []string{out.String()[strings.IndexByte(out.String(), ' ')+1:]}
	}
	return out.String(), secrets, nil
}

// parseTexts takes one text or a list of them.
func parseTexts(path toml.Key, v any) ([]string, error) {
	if one, ok := v.(string); ok {
		return []string{one}, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, wrongType(path, "a string or a list of strings", v)
	}
	texts := make([]string, 0, len(list))
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			return nil, wrongType(path, "a string or a list of strings", v)
		}
		texts = append(texts, s)
	}
	return texts, nil
}
