package network

import (
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
	"github.com/toolcell/toolcell/oci/egress"
)

// A Report says what a run has reached, and what it has not.
type Report struct {
	Uses      []egress.Use
	Unchecked bool     // addresses: connections went through a proxy
	refused   []string // why
	failed    []string // why, on the way to a host
	file      string   // in which the user can allow more
	named     bool     // hosts were reached by name as well
	targets   []hosts.Target
}

// Unsent says what was refused, and where the user can change that, and what has failed on
// the way to a host; "" if nothing.
func (r Report) Unsent() string {
	var said []string
	if len(r.refused) > 0 {
		said = append(said, "toolcell refused network requests: "+strings.Join(r.refused, "; "))
		if strings.Contains(said[0], "[network]") {
			said[0] += "; the policy is " + r.file
		}
	}
	if len(r.failed) > 0 {
		said = append(said, "network requests failed: "+strings.Join(r.failed, "; "))
	}
	return strings.Join(said, "; ")
}

// unreachable finds what clients say that have tried to connect by themselves.
var unreachable = text.Pattern(`(?i)name resolution|name or service not known|no address associated|network is unreachable|` +
	`no route to host|could not resolve host|nameresolutionerror|cannot connect to host|gaierror`)

// closedPort finds what they say where nothing listens.
var closedPort = text.Pattern(`(?i)connection refused|ECONNREFUSED|connect call failed`)

// BypassedHint says what to do about an error of code that was given egress and
// did not use it; it is empty for other errors.
func (r Report) BypassedHint(failure string) string {
	switch {
	case r.named && closedPort().MatchString(failure):
		return "by name, code reaches " + r.reached() + "; for another port or protocol, ask for tcp://HOST:PORT, which the policy must allow"
	case !unreachable().MatchString(failure):
		return ""
	case r.named:
		return "code reaches " + r.reached() + ", by name: addresses of the internet and UDP lead nowhere"
	case strings.Contains(failure, "Cannot connect to host"):
		return "aiohttp uses the proxy only if it is told to: aiohttp.ClientSession(trust_env=True)"
	}
	return "the network is reached only through the HTTP proxy in the variable HTTPS_PROXY, which this client does not use"
}

// maxShown bounds the hosts that a hint names.
const maxShown = 5

// reached names the hosts of the grant.
func (r Report) reached() string {
	var all []string
	for _, t := range r.targets[:min(len(r.targets), maxShown)] {
		for _, port := range t.Ports {
			all = append(all, fmt.Sprintf("%s:%d", t.Host, port))
		}
	}
	if len(r.targets) > maxShown {
		all = append(all, "and other hosts")
	}
	return strings.Join(all, ", ")
}

// namedHosts finds those that code or an error names, in the forms of addresses and of
// Python's clients.
var namedHosts = text.Pattern(`(?:\b([a-z][a-z0-9+]{1,30})://(?:[^\s/@'"]{0,200}@)?|host='|Cannot connect to host )([A-Za-z0-9._-]{1,253})(?:(?::|', port=)(\d{1,5}))?`)

// maxHosts bounds those that are looked at.
const maxHosts = 20

// UnaskedHint says what to do about an error of code whose call did not ask for the
// network, where the policy would let it; it is empty for other errors.
func UnaskedHint(run *policy.Enforcer, code, failure string) string {
	if !unreachable().MatchString(failure) {
		return ""
	}
	for _, text := range []string{failure, code} {
		for _, found := range namedHosts().FindAllStringSubmatch(text, maxHosts) {
			scheme, target, port := found[1], "https://"+found[2], found[3]
			switch {
			case scheme != "" && scheme != "https" && scheme != "http":
				target = "tcp://" + found[2] + ":" + port
			case port != "" && port != "443" && port != "80":
				target += ":" + port
			}
			if _, err := run.GrantNetwork([]string{target}); err == nil {
				return fmt.Sprintf("the call did not ask for this host: add %q to servers", target)
			}
		}
	}
	return ""
}
