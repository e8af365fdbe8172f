package policy

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/internal/toml"
)

// UnmarshalJSONFrom reads the section [packages.npm].
func (n *npmRules) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	type fields npmRules
	if err := json.UnmarshalDecode(d, (*fields)(n)); err != nil {
		return err
	}
	switch {
	case n.MaxCount < 1 || n.MaxCount > maxNPMCount:
		return toml.KeyError(d, "maxCount", fmt.Errorf("it must be a number of packages from 1 to %d, such as 1500", maxNPMCount))
	case n.MaxTime <= 0:
		return toml.KeyError(d, "maxTime", errors.New("it must be more than 0"))
	case n.Credential != nil && n.Registry == defaultRegistry:
		return toml.KeyError(d, "credential", errors.New("it is for a registry of your own, which [packages.npm] registry names"))
	}
	return nil
}

// maxNPMCount is the most packages that are read of a lock, whatever the policy says.
const maxNPMCount = 3000

// UnmarshalJSONFrom takes { token = "${env:NAME}" }.
func (l *registryLogin) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	type fields registryLogin
	if err := json.UnmarshalDecode(d, (*fields)(l)); err != nil {
		return err
	}
	if l.Token == "" {
		return errors.New(`it needs a token, as in { token = "${env:NPM_TOKEN}" }`)
	}
	return nil
}

// A registryURL is the address of an npm registry.
type registryURL string

// UnmarshalText takes an address, by the rules of sourceAddress: a registry, too, says which
// hashes its tarballs have.
func (r *registryURL) UnmarshalText(address []byte) error {
	s, err := sourceAddress(string(address), defaultRegistry, `credential = { token = "${env:NPM_TOKEN}" }`)
	*r = registryURL(s)
	return err
}

// An npmList is all packages, or those that it lists.
type npmList struct {
	any    bool
	listed []npmGlob
}

// UnmarshalJSONFrom takes a list of packages, "any" or "none".
func (l *npmList) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*l = npmList{}
	if d.PeekKind() == jsontext.KindBeginArray {
		return json.UnmarshalDecode(d, &l.listed)
	}
	word, err := d.ReadValue()
	if written := unquoted(word); err != nil || written != "any" && written != "none" {
		return errors.New(`it must be "any", "none", or a list of packages such as ["@modelcontextprotocol/*", "mcp-remote"]`)
	}
	l.any = unquoted(word) == "any"
	return nil
}

// has reports whether the list has a package. Unlike in deny, case counts: names that differ
// only in it can be different packages, such as JSONStream and jsonstream.
func (l npmList) has(name string) bool {
	return l.any || slices.ContainsFunc(l.listed, func(g npmGlob) bool { return text.Glob(string(g), name) })
}

// An npmGlob is a rule.Glob of the names of packages.
type npmGlob string

// UnmarshalText takes what is a name where its wildcards stand for a letter: another text would
// match no package, and so protect from none.
func (g *npmGlob) UnmarshalText(written []byte) error {
	s := string(written)
	switch {
	case isNPMName(strings.NewReplacer("*", "a", "?", "a").Replace(s)):
		*g = npmGlob(s)
		return nil
	case strings.LastIndexByte(s, '@') > 0:
		return fmt.Errorf(`%q: versions are not supported here; write the name alone`, text.Bound(s, 120))
	case strings.HasPrefix(s, "@") && !strings.Contains(s, "/"):
		return fmt.Errorf(`%q is a scope alone; for all its packages write "%s/*"`, text.Bound(s, 120), text.Bound(s, 120))
	}
	return fmt.Errorf(`%q is not the name of an npm package: NAME or @SCOPE/NAME, in which * stands for any text`, text.Bound(s, 120))
}

// What names and versions of npm packages may have. Old names have capitals, which new ones must
// not have.
var (
	npmName    = text.Pattern(`^(?:@[A-Za-z0-9~-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*$`)
	npmVersion = text.Pattern(`^[0-9]+\.[0-9]+\.[0-9]+(?:[-+][A-Za-z0-9.+-]+)?$`)
)

const (
	maxNPMName    = 214 // bytes, as npm has it
	maxNPMVersion = 256
)

func isNPMName(s string) bool { return len(s) <= maxNPMName && npmName().MatchString(s) }
