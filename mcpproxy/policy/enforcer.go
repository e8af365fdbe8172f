package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
)

// A Server names a server.
type Server struct{ Name, Alias string }

// A Tool names a tool of a server.
type Tool struct {
	Name, Alias string
	// Twins are names and aliases of tools of the server that differ from its own in their
	// case only, its own among them.
	Twins    []string
	ReadOnly bool // its server says that it changes nothing, and the user has accepted that
	// Unaccepted says why ReadOnly is false although the server says it; Acceptable: the user
	// may accept the hint of the definition with this Digest.
	Unaccepted string
	Acceptable bool
	Digest     string
}

// A Call is one call of a tool, as policies see it. Without a tool it reads something
// else of the server, such as a resource.
type Call struct {
	Server    Server
	Identity  string // of the server's entry and the tool's definition, for which an approval holds
	Tool      Tool
	Arguments json.RawMessage // canonical: exactly the bytes that will be sent
	Reasons   []string        // why the user has to be asked about just this call, whatever the rules say
	Changed   string          // how the tool's definition differs from its pin; empty if it does not
	Planned   bool            // it does not go out: it is not asked about, and counts in this run alone
}

// An Enforcer holds one run to a policy: the rules as they were when the run began, and
// how often it has called what. A nil *Enforcer and the zero Enforcer allow nothing.
type Enforcer struct {
	policy *Policy
	rules  *rules // nil allows nothing; without a policy they are empty, so that everything is allowed
	err    error  // why there are no rules
	// counts are those of the run. By the limits of a minute it has what does not go out: a dry
	// run is short, so all of it counts as one minute.
	counts map[limitKey]int
}

// NewEnforcer returns that of a run which begins. It looks whether the file has changed.
func (p *Policy) NewEnforcer() *Enforcer {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	r := &Enforcer{policy: p, rules: p.rules, err: p.err, counts: map[limitKey]int{}}
	if p.rules == nil && p.err == nil && !p.seen.there && !p.required {
		r.rules = &rules{packages: defaultPackages()}
	}
	return r
}

// ServerDenied returns an error if nothing of a server may be used, so that it is
// not started for nothing. It counts nothing.
func (r *Enforcer) ServerDenied(s Server) error {
	switch {
	case r == nil || r.rules == nil && r.err == nil:
		return &DeniedError{err: errNoRules}
	case r.err != nil:
		return &DeniedError{err: fmt.Errorf("%w; nothing may be called until this is fixed", r.err)}
	}
	return r.rules.serverDenied(s)
}

// A DeniedError says that a policy does not allow a call, or all calls while its file is not
// understood.
type DeniedError struct {
	Limit bool // only since a limit has no room for it
	err   error
}

func (e *DeniedError) Error() string { return e.err.Error() }

func (e *DeniedError) Unwrap() error { return e.err }

// errNoRules denies everything while no rules were read.
var errNoRules = errors.New("the policy was not read; nothing may be called until it can be")

// known reports whether there are rules.
func (r *Enforcer) known() bool { return r != nil && r.rules != nil }

// Check decides whether a call may go out. It counts nothing, and looks whether the limits
// have room for it: the user need not be asked about what they refuse. A call that the user
// has to be asked about is returned as an Ask.
func (r *Enforcer) Check(ctx context.Context, c Call) (*Ask, error) {
	if err := r.ServerDenied(c.Server); err != nil {
		return nil, err
	}
	if c.Tool.Name != "" {
		if err := r.rules.check(c.Server, c.Tool); err != nil {
			return nil, err
		}
		if err := r.rules.checkPin(c); err != nil {
			return nil, err
		}
	}
	var ask *Ask
	if !c.Planned {
		if ask = r.rules.ask(ctx, c); ctx.Err() != nil { // it may not have read all the arguments
			return nil, context.Cause(ctx)
		}
	}
	all := r.rules.limits(c.Server, c.Tool)
	r.policy.mu.Lock()
	defer r.policy.mu.Unlock()
	return ask, r.checkLimits(all, r.policy.now())
}

// Reserve counts a call by all limits that apply to it, at once, just before it goes out.
// giveBack takes that back, for a call that did not go out. A planned one counts in this run
// alone.
func (r *Enforcer) Reserve(c Call) (giveBack func(), err error) {
	if err := r.ServerDenied(c.Server); err != nil {
		return func() {}, err
	}
	all, p := r.rules.limits(c.Server, c.Tool), r.policy
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if err := r.checkLimits(all, now); err != nil {
		return nil, err
	}
	r.add(all, c.Planned, now, 1)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		r.add(all, c.Planned, now, -1)
	}, nil
}

// AllowedUnasked reports whether something that has to be asked may be done when no
// user can be. A server without a name stands for the network and packages.
func (r *Enforcer) AllowedUnasked(s Server, t Tool) bool {
	return r.known() && r.rules.allowedUnasked(s, t)
}

// Asks reports whether some rule of the file can lead to a question.
func (r *Enforcer) Asks() bool { return r.known() && r.rules.asks() }

// Flow reports whether data from a server is private, and whether data sent to it may reach
// others. Without a policy that was read, both are true.
func (r *Enforcer) Flow(s Server) (private, open bool) {
	if !r.known() {
		return true, true
	}
	return r.rules.flow(s)
}

// Record returns what the record of runs keeps of the values of a server, "" if the policy does not
// say. Of a private server it is RecordNone unless its section says otherwise, and so it is under a
// policy that is not understood.
func (r *Enforcer) Record(s Server) RecordMode {
	if !r.known() {
		return RecordNone
	}
	return r.rules.record(s)
}

// Digest returns the SHA-256 of the policy file in hexadecimal, "" if there is none or it is not
// understood.
func (r *Enforcer) Digest() string {
	if !r.known() {
		return ""
	}
	return r.rules.digest
}

// GoesByDefinitions reports whether the rules for a call of the server depend on the tool's
// present definition, so that one from an earlier start does not suffice.
func (r *Enforcer) GoesByDefinitions(s Server) bool {
	return r.known() && r.rules.goesByDefinitions(s)
}

// checkLimits returns an error if there is no room for one more call. policy.mu is held.
func (r *Enforcer) checkLimits(all []limit, now time.Time) error {
	for _, l := range all {
		refuse := func(format string, args ...any) error {
			denied := r.rules.refuse(l.section, l.rule(), format, args...)
			denied.Limit = true
			return denied
		}
		switch count := r.counts[l.limitKey]; {
		case count >= l.max && l.perMinute:
			return refuse("the plan of this run calls %s %s already", l.what(), times(l.max))
		case count >= l.max:
			return refuse("this run has called %s %s already", l.what(), times(l.max))
		case l.perMinute:
			if wait := r.policy.wait(l.limitKey, now, l.max-count); wait > 0 {
				return refuse("%s was called %s within the last minute; call it again in %d s",
					l.what(), times(l.max), int((wait+time.Second-1)/time.Second))
			}
		}
	}
	return nil
}

// add counts n calls that were made at a time, or takes them back. policy.mu is held.
func (r *Enforcer) add(all []limit, planned bool, at time.Time, n int) {
	for _, l := range all {
		k := l.limitKey
		switch minute := r.policy.minutes; {
		case !l.perMinute || planned:
			r.counts[k] += n
		case n > 0:
			minute[k] = append(minute[k], at)
		default:
			if i := slices.Index(minute[k], at); i >= 0 {
				minute[k] = slices.Delete(minute[k], i, i+1)
			}
		}
	}
}

// GrantNetwork returns what a run may reach whose call asked for these targets, as
// hosts.Rules.Grant does. Without targets the grant is nil.
func (r *Enforcer) GrantNetwork(targets []string) (*hosts.Grant, error) {
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
func (r *Enforcer) GrantPackages(wanted []requirement.Requirement) (*PackageGrant, error) {
	rules, file, err := r.grantedBy()
	if err != nil {
		return nil, fmt.Errorf("%w; no packages may be used until this is fixed", err)
	}
	return rules.packages.Grant(wanted, file)
}

// GrantNPM returns what a server in a sandbox gets whose entry names these npm packages, NAME or
// @SCOPE/NAME each, without versions. It is an error if the rules do not allow one of them, or the
// variable with the registry's token is not set.
func (r *Enforcer) GrantNPM(names []string) (*NPMGrant, error) {
	rules, file, err := r.grantedBy()
	if err != nil {
		return nil, fmt.Errorf("%w; no packages may be used until this is fixed", err)
	}
	return rules.packages.NPM.Grant(names, file)
}

// grantedBy returns the rules of the run, and the file in which the user can change them, as
// people write it.
func (r *Enforcer) grantedBy() (granting *rules, file string, err error) {
	switch {
	case r != nil && r.err != nil:
		return nil, "", r.err
	case !r.known():
		return nil, "", errNoRules
	}
	return r.rules, r.policy.name(), nil
}
