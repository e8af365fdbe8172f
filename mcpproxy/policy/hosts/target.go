package hosts

import (
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// A Target is a host that a call asked for, with the ports that it may use there.
type Target struct {
	Host  string
	Ports []uint16
}

// IsTarget reports whether a name among a call's servers asks for a host.
func IsTarget(name string) bool { return strings.Contains(name, "://") }

// maxTarget bounds a target, in bytes: more than the longest name and a port have.
const maxTarget = 512

// parseTarget reads what a call asks for.
func parseTarget(s string) (Target, error) {
	const form = "a host is asked for as https://HOST or https://HOST:PORT"
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok || len(s) > maxTarget {
		return Target{}, fmt.Errorf("%q is not understood; %s", text.Bound(s, 120), form)
	}
	if strings.ContainsAny(rest, "/?#@*") {
		return Target{}, fmt.Errorf("%q has more than a host and a port, or a *; %s", text.Bound(s, 120), form)
	}
	host, port, err := SplitPort(rest)
	if err != nil {
		return Target{}, fmt.Errorf("%q: %w; %s", text.Bound(s, 120), err, form)
	}
	ports := []uint16{443, 80}
	if port != 0 {
		ports = []uint16{port}
	}
	return Target{host, ports}, nil
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
