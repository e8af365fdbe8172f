package network

import (
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/oci/egress"
)

// A Report says what a run has reached, and what it has not.
type Report struct {
	Uses      []egress.Use
	Unchecked bool     // addresses: connections went through a proxy
	refused   []string // why
	failed    []string // why, on the way to a host
	file      string   // in which the user can allow more
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

// BypassedHint says what to do about an error of code that was given egress and
// did not use it; it is empty for other errors.
func BypassedHint(failure string) string {
	switch {
	case !unreachable().MatchString(failure):
		return ""
	case strings.Contains(failure, "Cannot connect to host"):
		return "aiohttp uses the proxy only if it is told to: aiohttp.ClientSession(trust_env=True)"
	}
	return "the network is reached only through the HTTP proxy in the variable HTTPS_PROXY, which this client does not use"
}

// namedHosts finds those that code or an error names, in the forms of addresses and of
// Python's clients.
var namedHosts = text.Pattern(`(?:https?://|host='|Cannot connect to host )([A-Za-z0-9._-]{1,253})(?:(?::|', port=)(\d{1,5}))?`)

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
			target := "https://" + found[1]
			if port := found[2]; port != "" && port != "443" && port != "80" {
				target += ":" + port
			}
			if _, err := run.GrantNetwork([]string{target}); err == nil {
				return fmt.Sprintf("the call did not ask for this host: add %q to servers", target)
			}
		}
	}
	return ""
}
