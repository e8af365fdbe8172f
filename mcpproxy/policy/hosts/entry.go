package hosts

import (
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// An entry is a rule of allow, deny or ask: a host, and perhaps a method, a scheme, a
// port and a path.
type entry struct {
	text   string
	deny   bool
	ask    bool
	method string // "" is any
	scheme string // http or https; "" is both
	host   hostPattern
	port   uint16 // 0 is that of the scheme, or for deny any
	path   []rune // glob in which * is any text; nil is any path
}

// about reports whether a rule has something to say about requests with this scheme
// to a host and port.
func (r entry) about(scheme, host string, port uint16) bool {
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
func (r entry) wholeHost() bool { return r.method == "" && r.path == nil }

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
	if r.path == nil || text.Glob(r.path, []rune(path)) {
		return true
	}
	return r.deny && text.Glob(r.path, []rune(withoutParameters(path)))
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
