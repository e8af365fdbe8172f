package policy

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/internal/toml"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

// defaultRegistry is where npm packages come from if the policy names no other registry. Its
// tarballs are on the same host.
const defaultRegistry = "https://registry.npmjs.org"

// npmRules are the section [packages.npm] of a policy: which npm packages servers in
// sandboxes get, and where they come from. The zero value grants none.
type npmRules struct {
	Allow        npmList                `json:"allow"`
	Deny         toml.Strings[npmGlob]  `json:"deny"`
	Registry     registryURL            `json:"registry"`
	Files        toml.Strings[fileHost] `json:"files"`
	ExcludeNewer *period                `json:"excludeNewer"`
	MaxBytes     byteCount              `json:"maxBytes"`
	MaxCount     int                    `json:"maxCount"`
	MaxTime      period                 `json:"maxTime"`
	Credential   *registryLogin         `json:"credential"`
}

// defaultNPM returns the rules of a policy without that section.
func defaultNPM() npmRules {
	return npmRules{
		Allow: npmList{any: true}, Registry: defaultRegistry,
		MaxBytes: 500_000_000, MaxCount: 1500, MaxTime: period(5 * time.Minute),
	}
}

// A registryLogin is a token for the registry, with ${env:NAME}.
type registryLogin struct {
	Token string `json:"token"`
}

// credential fills in the values, as a bearer token (RFC 6750).
func (l *registryLogin) credential(lookup func(string) (string, bool)) (*IndexCredential, error) {
	token, _, err := rule.Expand(l.Token, lookup)
	if err != nil {
		return nil, fmt.Errorf("[packages.npm] credential: the token: %w", err)
	}
	if strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return nil, errors.New("[packages.npm] credential: a token has neither spaces nor characters outside ASCII; write it without Bearer")
	}
	return &IndexCredential{"Bearer " + token, []string{token}}, nil
}

// An NPMGrant is what a server may get of npm packages, and from where. Check refuses every
// package if the grant is nil or the zero value.
type NPMGrant struct {
	Registry     string        // its address, without a / at its end
	Files        []string      // hosts, HOST or HOST:PORT, beside the registry's own, that tarballs may come from
	ExcludeNewer time.Duration // versions that were published within it do not count; 0 is none
	MaxBytes     int64         // unpacked
	MaxCount     int
	MaxTime      time.Duration
	Credential   *IndexCredential // for the registry's own host alone; nil is none

	rules *npmRules
	file  string
}

// Grant returns what a server gets whose entry names these packages. One that the rules do not
// allow is an error that names the rule, and file, in which the user can change it.
func (n *npmRules) Grant(names []string, file string) (*NPMGrant, error) {
	if n.Registry == "" {
		return nil, errNoPackages
	}
	g := &NPMGrant{
		Registry: string(n.Registry), MaxBytes: int64(n.MaxBytes), MaxCount: n.MaxCount, MaxTime: time.Duration(n.MaxTime),
		rules: n, file: file,
	}
	for _, host := range n.Files {
		g.Files = append(g.Files, string(host))
	}
	switch {
	case n.ExcludeNewer != nil:
		g.ExcludeNewer = time.Duration(*n.ExcludeNewer)
	case n.Registry == defaultRegistry:
		g.ExcludeNewer = defaultExcludeNewer
	}
	for _, name := range names {
		if err := g.checkNamed(name); err != nil {
			return nil, err
		}
	}
	if n.Credential != nil {
		var err error
		if g.Credential, err = n.Credential.credential(os.LookupEnv); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// checkNamed checks a package that an entry names.
func (g *NPMGrant) checkNamed(name string) error {
	if err := g.checkDenied(name, ""); err != nil {
		return err
	}
	if !g.rules.Allow.has(name) {
		return fmt.Errorf("policy %s: the npm package %q is not allowed: add it to [packages.npm] allow", g.file, name)
	}
	return nil
}

// checkDenied checks a package against deny. The version is for the message only.
func (g *NPMGrant) checkDenied(name, version string) error {
	if !isNPMName(name) {
		return fmt.Errorf("%q is not the name of an npm package", text.Bound(name, 80))
	}
	for _, d := range g.rules.Deny {
		if rule.Glob(d).Matches(name) {
			shown := strings.TrimSpace(name + " " + version)
			return fmt.Errorf("policy %s, [packages.npm] deny = %q: the npm package %q is not allowed", g.file, d, shown)
		}
	}
	return nil
}

// Check checks a package that was chosen: one that the entry names, or one that another needs.
// The name is the package's own, not that of an alias.
func (g *NPMGrant) Check(name, version string) error {
	if g == nil || g.rules == nil {
		return errNoPackages
	}
	if len(version) > maxNPMVersion || !npmVersion().MatchString(version) {
		return fmt.Errorf("the npm package %q: %q is not a version", text.Bound(name, 80), text.Bound(version, 40))
	}
	return g.checkDenied(name, text.Bound(version, 40))
}
