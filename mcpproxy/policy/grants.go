package policy

import (
	"fmt"

	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
)

// GrantNetwork returns what a run may reach whose call asked for these targets, as
// hosts.Rules.Grant does. Without targets the grant is nil.
func (r *Run) GrantNetwork(targets []string) (*hosts.Grant, error) {
	if len(targets) == 0 {
		return nil, nil
	}
	rules, file, err := r.grantedBy()
	if err != nil {
		return nil, fmt.Errorf("%w; nothing may be reached until this is fixed", err)
	}
	return rules.network.Grant(targets, file)
}

// GrantPackages returns what a script gets that names these packages, as
// packageRules.Grant does.
func (r *Run) GrantPackages(wanted []requirement.Requirement) (*PackageGrant, error) {
	rules, file, err := r.grantedBy()
	if err != nil {
		return nil, fmt.Errorf("%w; no packages may be used until this is fixed", err)
	}
	return rules.packages.Grant(wanted, file)
}

// grantedBy returns the rules of the run, those of an empty file if there are none, and the
// file in which the user can change them, as people write it.
func (r *Run) grantedBy() (granting *rules, file string, err error) {
	switch {
	case r == nil:
		return nil, "", errNoRules
	case r.err != nil:
		return nil, "", r.err
	case r.rules != nil:
		return r.rules, r.policy.name(), nil
	case r.free:
		return &rules{packages: defaultPackages()}, r.policy.name(), nil
	}
	return nil, "", errNoRules
}
