package policy

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/internal/toml"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

// DefaultIndex is where packages come from if the policy names no other index. Its
// files are on a host of their own.
const (
	DefaultIndex     = "https://pypi.org/simple"
	defaultIndexHost = "files.pythonhosted.org"
)

// defaultExcludeNewer is how old files of the default index must be. Packages with a
// name that is easily mistaken for another are mostly found and removed within it.
const defaultExcludeNewer = 3 * 24 * time.Hour

// packageRules are the section [packages] of a policy: which packages scripts get, and where
// they come from. The zero value grants none.
type packageRules struct {
	Allow        packageList                `json:"allow"`
	Deny         toml.Strings[namedPackage] `json:"deny"`
	Ask          packageList                `json:"ask"` // of those that allow does not list
	Index        indexURL                   `json:"index"`
	ExcludeNewer *period                    `json:"excludeNewer"`
	MaxBytes     byteCount                  `json:"maxBytes"`
	MaxCount     int                        `json:"maxCount"`
	MaxTime      period                     `json:"maxTime"`
	Files        toml.Strings[fileHost]     `json:"files"`
	Preload      toml.Strings[moduleName]   `json:"preload"`
	Credential   *indexLogin                `json:"credential"`
	NPM          npmRules                   `json:"npm"`
}

// An indexLogin is a name and a password for the index, with ${env:NAME}.
type indexLogin struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// credential fills in the values, for HTTP's basic authentication (RFC 7617).
func (l *indexLogin) credential(lookup func(string) (string, bool)) (*IndexCredential, error) {
	user, _, err := rule.Expand(l.User, lookup)
	if err != nil {
		return nil, fmt.Errorf("[packages] credential: the user: %w", err)
	}
	if strings.Contains(user, ":") {
		return nil, errors.New("[packages] credential: a user cannot have a colon")
	}
	password, _, err := rule.Expand(l.Password, lookup)
	if err != nil {
		return nil, fmt.Errorf("[packages] credential: the password: %w", err)
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	return &IndexCredential{"Basic " + encoded, []string{encoded, password}}, nil
}

// An IndexCredential is what requests to an index or a registry carry. It is for the host alone and enters no
// sandbox.
type IndexCredential struct {
	Authorization string   // the header
	Secrets       []string // the parts of it that must not be seen
}

var errNoPackages = errors.New("there are no rules for packages, so none may be used")

// defaultPackages returns the rules of a policy without that section.
func defaultPackages() packageRules {
	return packageRules{
		Allow: packageList{any: true, words: []string{"any", "none"}}, Ask: packageList{words: []string{"any"}},
		Index: DefaultIndex, MaxBytes: 500_000_000, MaxCount: 200, MaxTime: period(2 * time.Minute),
		NPM: defaultNPM(),
	}
}

// A PackageGrant is what a script that names packages may get, and from where. Check refuses every
// package if the grant is nil or the zero Grant.
type PackageGrant struct {
	Ask          rule.Reasons  // what the user has to allow before any is used; nil is nothing
	Index        string        // the address of a simple index
	Files        []string      // hosts, HOST or HOST:PORT, beside the index's own, that files may come from
	ExcludeNewer time.Duration // files that were uploaded within it do not count; 0 is none
	Constraints  []string      // requirements that all packages must meet, whatever needs them
	MaxBytes     int64         // unpacked
	MaxCount     int
	MaxTime      time.Duration
	Preload      []string // modules that may be imported ahead of a run
	Credential   *IndexCredential

	rules *packageRules
	file  string
}

// Grant returns what a script gets that names these packages, once the user has
// allowed what its Ask names. One that the rules neither allow nor ask about is an
// error that names the rule, and file, in which the user can change it.
func (p *packageRules) Grant(wanted []requirement.Requirement, file string) (*PackageGrant, error) {
	if p.Index == "" {
		return nil, errNoPackages
	}
	g := &PackageGrant{
		Index: string(p.Index), MaxBytes: int64(p.MaxBytes), MaxCount: p.MaxCount, MaxTime: time.Duration(p.MaxTime),
		rules: p, file: file,
	}
	for _, host := range p.Files {
		g.Files = append(g.Files, string(host))
	}
	for _, module := range p.Preload {
		g.Preload = append(g.Preload, string(module))
	}
	switch {
	case p.ExcludeNewer != nil:
		g.ExcludeNewer = time.Duration(*p.ExcludeNewer)
	case p.Index == DefaultIndex:
		g.ExcludeNewer = defaultExcludeNewer
	}
	if p.Index == DefaultIndex && p.Files == nil {
		g.Files = []string{defaultIndexHost}
	}
	if p.Credential != nil {
		var err error
		if g.Credential, err = p.Credential.credential(os.LookupEnv); err != nil {
			return nil, err
		}
	}
	for _, w := range wanted {
		if err := g.checkWanted(w); err != nil {
			return nil, err
		}
	}
	for _, a := range p.bounds() {
		if s := a.Specifier.String(); s != "" {
			g.Constraints = append(g.Constraints, a.String())
		}
	}
	return g, nil
}

// checkWanted checks a package that a script names.
func (g *PackageGrant) checkWanted(w requirement.Requirement) error {
	for _, d := range g.rules.Deny {
		if d.Name == w.Name && d.Specifier.String() == "" {
			return g.denied(w.Name, d)
		}
	}
	if _, listed := findPackage(g.rules.Allow.listed, w.Name); listed {
		return nil
	}
	if rule, ok := g.rules.askRule(w.Name); ok {
		g.Ask.Add(fmt.Sprintf("policy %s, [packages] ask = %q: the code wants the package %q", g.file, rule, w.Name))
		return nil
	}
	if !g.rules.Allow.any {
		return fmt.Errorf("policy %s: the package %q is not allowed: add it to [packages] allow", g.file, w.Name)
	}
	return nil
}

// Listed reports whether [packages] allow lists a package, and the code asks for no other
// versions of it and no extras.
func (g *PackageGrant) Listed(w requirement.Requirement) bool {
	if g == nil || g.rules == nil || w.Extras != nil || w.Marker != "" {
		return false
	}
	a, listed := findPackage(g.rules.Allow.listed, w.Name)
	versions := w.Specifier.String()
	return listed && (versions == "" || versions == a.Specifier.String())
}

// Names reports whether [packages] names a package, in allow or in ask.
func (g *PackageGrant) Names(name string) bool {
	if g == nil || g.rules == nil {
		return false
	}
	if plain, err := requirement.Name(name); err == nil {
		_, named := findPackage(g.rules.bounds(), plain)
		return named
	}
	return false
}

// Asks reports whether some package has to be asked for.
func (p *packageRules) Asks() bool { return p.Ask.any || len(p.Ask.listed) > 0 }

// askRule returns the entry of ask that names a package.
func (p *packageRules) askRule(name string) (rule string, ok bool) {
	if a, listed := findPackage(p.Ask.listed, name); listed {
		return a.String(), true
	}
	return "any", p.Ask.any
}

// bounds are the entries that say which versions packages may have. Of two about one
// package, that of allow counts.
func (p *packageRules) bounds() []namedPackage {
	all := slices.Clone(p.Allow.listed)
	for _, a := range p.Ask.listed {
		if _, listed := findPackage(p.Allow.listed, a.Name); !listed {
			all = append(all, a)
		}
	}
	return all
}

func findPackage(all []namedPackage, name string) (namedPackage, bool) {
	i := slices.IndexFunc(all, func(r namedPackage) bool { return r.Name == name })
	if i < 0 {
		return namedPackage{}, false
	}
	return all[i], true
}

func (g *PackageGrant) denied(name string, by namedPackage) error {
	return fmt.Errorf("policy %s, [packages] deny = %q: the package %q is not allowed", g.file, by, name)
}

// Check checks a package that was chosen: one that the script names, or one that
// another needs.
func (g *PackageGrant) Check(name, version string) error {
	if g == nil || g.rules == nil {
		return errNoPackages
	}
	name, err := requirement.Name(name)
	if err != nil {
		return err
	}
	v, err := requirement.ParseVersion(version)
	if err != nil {
		return fmt.Errorf("the package %q: %w", name, err)
	}
	for _, d := range g.rules.Deny {
		if d.Name == name && d.Specifier.Allows(v) {
			return g.denied(name+" "+text.Bound(version, 40), d)
		}
	}
	if a, ok := findPackage(g.rules.bounds(), name); ok && !a.Specifier.Allows(v) {
		key := "allow"
		if _, listed := findPackage(g.rules.Allow.listed, name); !listed {
			key = "ask"
		}
		return fmt.Errorf("policy %s, [packages] %s = %q: version %s of the package %q is not allowed", g.file, key, a, text.Bound(version, 40), name)
	}
	return nil
}
