package login

import (
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// Bounds of what a server may say in a challenge.
const (
	maxScopes    = 100
	maxScope     = 256      // bytes of one
	maxMetadata  = 8 << 10  // bytes of an address
	maxChallenge = 64 << 10 // bytes of all of it
	maxCommas    = 100      // and parameters: for each comma the library looks through all that follows
)

// challenge is the server's description of the token that it wants.
type challenge struct {
	Scopes       []string `json:"scopes,omitempty"`
	Metadata     string   `json:"metadata,omitempty"` // the address of the resource's metadata
	insufficient bool
}

// readChallenge reads WWW-Authenticate. It ignores invalid parts.
func readChallenge(h http.Header) (c challenge) {
	lines := h.Values("WWW-Authenticate")
	if all := strings.Join(lines, ""); len(all) > maxChallenge || strings.Count(all, ",") > maxCommas {
		return c
	}
	all, err := oauthex.ParseWWWAuthenticate(lines)
	if err != nil {
		return c
	}
	for _, one := range all {
		if one.Scheme != "bearer" {
			continue
		}
		c.insufficient = c.insufficient || one.Params["error"] == "insufficient_scope"
		if c.Scopes == nil {
			c.Scopes = knownScopes(strings.Fields(one.Params["scope"]))
		}
		if at := one.Params["resource_metadata"]; c.Metadata == "" && len(at) <= maxMetadata && checkAddress(at) == nil {
			c.Metadata = at
		}
	}
	return c
}

// metadataOr is the address of the resource's metadata, here or in an earlier challenge.
func (c challenge) metadataOr(earlier *challenge) string {
	if c.Metadata == "" && earlier != nil {
		return earlier.Metadata
	}
	return c.Metadata
}

// after adds what an earlier challenge said and this one does not.
func (c challenge) after(earlier *challenge) *challenge {
	all := &challenge{Scopes: c.Scopes, Metadata: c.metadataOr(earlier)}
	if all.Scopes == nil && earlier != nil {
		all.Scopes = earlier.Scopes
	}
	return all
}

// knownScopes returns the valid scopes (RFC 6749, section 3.3): others could contain control
// characters for a terminal.
func knownScopes(scopes []string) (known []string) {
	for _, s := range scopes {
		bad := strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
		if !bad && s != "" && len(s) <= maxScope && len(known) < maxScopes && !slices.Contains(known, s) {
			known = append(known, s)
		}
	}
	return known
}

// union returns all scopes of several lists once, in their order.
func union(lists ...[]string) []string {
	return knownScopes(slices.Concat(lists...))
}

// containsAll reports whether all of some scopes are among others.
func containsAll(scopes, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(scopes, s) })
}
