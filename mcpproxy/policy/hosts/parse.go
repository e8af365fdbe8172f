package hosts

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

// Parse takes the section [network].
func Parse(v rule.Value) (n Rules, err error) {
	fields, err := v.Fields()
	if err != nil {
		return n, err
	}
	for _, f := range fields {
		switch f.Name() {
		case "allow":
			n.allow, err = parseRules(f, false)
		case "deny":
			n.deny, err = parseRules(f, true)
		case "ask":
			n.ask, err = parseRules(f, false)
			for i := range n.ask {
				n.ask[i].ask = true
			}
		case "private":
			err = n.parsePrivate(f)
		case "via":
			if f.Any() != "env" {
				err = f.Errorf(`it must be "env": the proxy that the environment of toolcell names`)
			}
			n.viaProxy = true
		case "credential":
			n.credentials, err = parseCredentials(f)
		default:
			err = f.UnknownKey("allow", "deny", "ask", "private", "via", "credential")
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func parseRules(v rule.Value, deny bool) ([]entry, error) {
	texts, err := v.Texts()
	if err != nil {
		return nil, err
	}
	rules := make([]entry, 0, len(texts))
	for _, s := range texts {
		r, err := parseRule(s)
		if err != nil {
			return nil, v.Errorf("%q: %v", text.Bound(s, 120), err)
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

// parseRule reads "[METHOD ][SCHEME://]HOST[:PORT][/PATH]".
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
		if scheme != "https" && scheme != "http" {
			return r, fmt.Errorf("the scheme must be https or http, not %q", text.Bound(scheme, 20))
		}
		r.scheme, rest = scheme, after
	} else if meant, ok := misspelledScheme(rest); ok {
		return r, fmt.Errorf("the scheme needs ://, as in %s", text.Bound(meant, 120))
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

func (n *Rules) parsePrivate(v rule.Value) error {
	texts, err := v.Texts()
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
			return v.Errorf("%v", err)
		}
		n.privateHosts = append(n.privateHosts, host)
	}
	return nil
}

func parseCredentials(v rule.Value) ([]credential, error) {
	list, ok := v.Tables()
	if !ok {
		return nil, v.Errorf("write it as [[%s]], once for each", v.Key())
	}
	all := make([]credential, 0, len(list))
	for _, each := range list {
		c, err := parseCredential(each)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func parseCredential(v rule.Value) (c credential, err error) {
	fields, err := v.Fields()
	if err != nil {
		return c, err
	}
	for _, f := range fields {
		s, err := f.Text()
		if err != nil {
			return c, err
		}
		switch f.Name() {
		case "host":
			if c.host, err = parseHostPattern(s); err != nil {
				return c, f.Errorf("%v", err)
			}
		case "header":
			if c.header = s; !isToken(s) || slices.Contains(notCredentials, strings.ToLower(s)) {
				return c, f.Errorf("%q is not a header that may have a credential", text.Bound(s, 40))
			}
		case "value":
			c.value = s
		case "env":
			if c.env = s; !rule.IsVariable(s) {
				return c, f.Errorf("%q is not a name for a variable", text.Bound(s, 40))
			}
		default:
			return c, f.UnknownKey("host", "header", "value", "env")
		}
	}
	if c.host == "" || c.header == "" || c.value == "" {
		return c, v.Errorf("a credential needs host, header and value")
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
