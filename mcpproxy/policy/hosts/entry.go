package hosts

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/toolcell/toolcell/internal/text"
)

// A hostPattern is a host, or with a leading "*." all hosts below it.
type hostPattern string

func (p hostPattern) matches(host string) bool {
	if below, ok := strings.CutPrefix(string(p), "*"); ok {
		return strings.HasSuffix(host, below) && len(host) > len(below)
	}
	return host == string(p)
}

// UnmarshalText is parseHostPattern.
func (p *hostPattern) UnmarshalText(written []byte) (err error) {
	*p, err = parseHostPattern(string(written))
	return err
}

// SplitPort reads HOST or HOST:PORT, where HOST may be *.HOST; the port is 0 if there is
// none.
func SplitPort(s string) (hostname string, portNumber uint16, err error) {
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
		if n, err = strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", 0, fmt.Errorf("%q is not a port from 1 to 65535", text.Bound(port, 20))
		}
	}
	pattern, err := parseHostPattern(host)
	return string(pattern), uint16(n), err
}

// parseHostPattern reads a host name, an address, or *.NAME.
func parseHostPattern(s string) (hostPattern, error) {
	name, below := strings.CutPrefix(s, "*.")
	host, err := Canonical(name)
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

// Canonical returns the one form in which hosts are compared: lower case, without
// a final dot, names in ASCII, addresses as netip writes them. An address in any other
// notation, such as 0x7f000001, is an error.
func Canonical(host string) (string, error) {
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

// An entry is a rule of allow, deny or ask: a host, and perhaps a method, a scheme, a
// port and a path.
type entry struct {
	text   string
	deny   bool
	ask    bool
	method string // "" is any
	scheme string // http, https, or tcp for any protocol; "" is http and https, and for deny all
	host   hostPattern
	port   uint16 // 0 is that of the scheme, or for deny any
	path   string // glob in which * is any text; "" is any path
}

// about reports whether a rule has something to say about requests with this scheme
// to a host and port.
func (r entry) about(scheme, host string, port uint16) bool {
	if scheme == "tcp" { // a rule of deny that is about some protocol is about any
		return r.host.matches(host) && (r.deny || r.scheme == "tcp") && (r.port == port || r.deny && r.port == 0)
	}
	return (r.scheme == "" || r.scheme == scheme) && r.host.matches(host) && r.hasPort(port)
}

func (r entry) hasPort(port uint16) bool {
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
func (r entry) wholeHost() bool { return r.method == "" && r.path == "" }

func (r entry) matches(q request) bool {
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
	if r.path == "" || text.Glob(r.path, path) {
		return true
	}
	return r.deny && text.Glob(r.path, withoutParameters(path))
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
