package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/requirement"
	"github.com/toolcell/toolcell/mcpproxy/text"
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

// packages is the section [packages] of a policy: which packages scripts get, and where
// they come from.
type packages struct {
	allow        []requirement.Requirement // of names and versions
	allowListed  bool                      // only those of allow; else any
	deny         []requirement.Requirement
	index        string
	excludeNewer *time.Duration
	maxBytes     int64
	maxCount     int
	maxTime      time.Duration
	files        []string
	preload      []string
}

func defaultPackages() packages {
	return packages{index: DefaultIndex, maxBytes: 500_000_000, maxCount: 200, maxTime: 2 * time.Minute}
}

// A PackageGrant is what a script that names packages may get, and from where.
type PackageGrant struct {
	Ask          *Ask          // what the user has to allow before any is used; nil is nothing
	Index        string        // the address of a simple index
	Files        []string      // hosts, HOST or HOST:PORT, beside the index's own, that files may come from
	ExcludeNewer time.Duration // files that were uploaded within it do not count; 0 is none
	Constraints  []string      // requirements that all packages must meet, whatever needs them
	MaxBytes     int64         // unpacked
	MaxCount     int
	MaxTime      time.Duration
	Preload      []string // modules that may be imported ahead of a run

	rules *packages
	file  string
}

// GrantPackages returns what a script gets that names these packages. One that the
// policy does not allow is an error that names the rule.
func (r *Run) GrantPackages(wanted []requirement.Requirement) (*PackageGrant, error) {
	p, file := defaultPackages(), "the policy file"
	if r != nil {
		if r.err != nil {
			return nil, fmt.Errorf("%w; no packages may be used until this is fixed", r.err)
		}
		file = r.policy.name()
		if r.rules != nil {
			p = r.rules.packages
		}
	}
	g := &PackageGrant{
		Index: p.index, Files: p.files, MaxBytes: p.maxBytes, MaxCount: p.maxCount, MaxTime: p.maxTime, Preload: p.preload,
		rules: &p, file: file,
	}
	switch {
	case p.excludeNewer != nil:
		g.ExcludeNewer = *p.excludeNewer
	case p.index == DefaultIndex:
		g.ExcludeNewer = defaultExcludeNewer
	}
	if p.index == DefaultIndex && p.files == nil {
		g.Files = []string{defaultIndexHost}
	}
	for _, w := range wanted {
		if err := g.checkWanted(w); err != nil {
			return nil, err
		}
	}
	for _, a := range p.allow {
		if s := a.Specifier.String(); s != "" {
			g.Constraints = append(g.Constraints, a.String())
		}
	}
	return g, nil
}

// checkWanted checks a package that a script names.
func (g *PackageGrant) checkWanted(w requirement.Requirement) error {
	for _, d := range g.rules.deny {
		if d.Name == w.Name && d.Specifier.String() == "" {
			return g.denied(w.Name, d)
		}
	}
	if g.rules.allowListed && !slices.ContainsFunc(g.rules.allow, func(a requirement.Requirement) bool { return a.Name == w.Name }) {
		return fmt.Errorf("the package %q is not allowed: add it to [packages] allow in %s", w.Name, g.file)
	}
	return nil
}

func (g *PackageGrant) denied(name string, by requirement.Requirement) error {
	return fmt.Errorf("the package %q is not allowed: %s has [packages] deny = %q", name, g.file, by)
}

// Check checks a package that was chosen: one that the script names, or one that
// another needs.
func (g *PackageGrant) Check(name, version string) error {
	name, err := requirement.Name(name)
	if err != nil {
		return err
	}
	v, err := requirement.ParseVersion(version)
	if err != nil {
		return fmt.Errorf("the package %q: %w", name, err)
	}
	for _, d := range g.rules.deny {
		if d.Name == name && d.Specifier.Allows(v) {
			return g.denied(name+" "+text.Bound(version, 40), d)
		}
	}
	for _, a := range g.rules.allow {
		if a.Name == name && !a.Specifier.Allows(v) {
			return fmt.Errorf("version %s of the package %q is not allowed: %s has [packages] allow = %q", text.Bound(version, 40), name, g.file, a)
		}
	}
	return nil
}

func (p *packages) asks() bool { return false }
