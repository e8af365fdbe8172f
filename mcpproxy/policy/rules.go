package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/internal/toml"
	"github.com/toolcell/toolcell/mcpproxy/policy/condition"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

// rules are a policy file that was understood.
type rules struct {
	file     string     // as messages name it
	digest   string     // SHA-256 of what it has, in hexadecimal
	sections []*section // what says more about its servers first, [default] last
	network  hosts.Rules
	packages packageRules

	approvals approvals
}

// A section says what may be called of the servers that a glob matches. Of a key that it does not
// have, the value is the zero one.
type section struct {
	Allow    toml.Strings[rule.Glob] `json:"allow"`
	Deny     toml.Strings[rule.Glob] `json:"deny"`
	Ask      askRule                 `json:"ask"`
	ReadOnly *bool                   `json:"readOnly"`
	limits
	Unasked      unasked                 `json:"unasked"`
	UnaskedAllow toml.Strings[rule.Glob] `json:"unaskedAllow"`
	Private      *bool                   `json:"private"`
	Open         *bool                   `json:"open"`
	Pins         PinMode                 `json:"pins"`
	Record       RecordMode              `json:"record"`
	sandboxKeys
	WrittenTools toml.Table[rule.Glob, toolSection] `json:"tools"`

	name    string // as the file has it, such as [servers.github]
	key     toml.Key
	servers rule.Glob
	ownKeys bool          // beside tools
	tools   []toolSection // what says more about its tools first
}

// limits are the most calls; 0 is no limit.
type limits struct {
	PerRun    callCount `json:"callsPerRun"`
	PerMinute callCount `json:"callsPerMinute"`
}

// A toolSection limits the tools that a glob matches, each of them by itself, and says
// at which arguments the user is asked.
type toolSection struct {
	limits
	When condition.Conditions `json:"when"`

	name  string
	key   toml.Key
	tools rule.Glob
}

// isMeantBy reports whether a glob is about a tool, by its name or alias in any case. One
// that is the very name of another tool of the server is about that one alone.
func (t Tool) isMeantBy(g rule.Glob) bool {
	if !g.Matches(t.Name) && !g.Matches(t.Alias) {
		return false
	}
	return g.Is(t.Name) || g.Is(t.Alias) || !slices.ContainsFunc(t.Twins, g.Is)
}

// about reports whether a section is about a server, by its name or alias.
func (sec *section) about(s Server) bool {
	return sec.servers.Matches(s.Name) || sec.servers.Matches(s.Alias)
}

// whenName is the section of its conditions, as the file has it.
func (ts toolSection) whenName() string { return "[[" + ts.key.String() + ".when]]" }

// written returns the names of a section and of the sections in it, as the file has them. A
// section that has only tools need not stand there itself.
func (sec *section) written() (names []string) {
	if sec.ownKeys || len(sec.tools) == 0 {
		names = append(names, sec.name)
	}
	for _, ts := range sec.tools {
		if ts.limits != (limits{}) || len(ts.When) == 0 {
			names = append(names, ts.name)
		}
		if len(ts.When) > 0 {
			names = append(names, ts.whenName())
		}
	}
	return names
}

func (sec *section) isDefault() bool { return len(sec.key) == 1 }

// sectionsFor returns the sections that are about a server.
func (r *rules) sectionsFor(s Server) []*section {
	return slices.DeleteFunc(slices.Clone(r.sections), func(sec *section) bool { return !sec.about(s) })
}

// first returns the section that decides about a server by a key: the first about it that has the
// key. nil is none.
func (r *rules) first(s Server, has func(*section) bool) *section {
	i := slices.IndexFunc(r.sections, func(sec *section) bool { return has(sec) && sec.about(s) })
	if i < 0 {
		return nil
	}
	return r.sections[i]
}

// allows reports whether a section says which tools may be called.
func (sec *section) allows() bool { return sec.Allow != nil }

// serverDenied refuses a server when none of its tools may be called.
func (r *rules) serverDenied(s Server) error {
	for _, sec := range r.sectionsFor(s) {
		if i := slices.IndexFunc(sec.Deny, rule.Glob.IsEverything); i >= 0 {
			return r.refuse(sec.name, fmt.Sprintf("deny = %q", sec.Deny[i]), "using server %q is not allowed", s.Name)
		}
	}
	if sec := r.first(s, (*section).allows); sec != nil && len(sec.Allow) == 0 {
		return r.refuse(sec.name, "allow = []", "using server %q is not allowed", s.Name)
	}
	return nil
}

// check refuses a call that a rule forbids, whatever was called before. deny counts wherever it stands; allow
// and readOnly count where they say most about the server.
func (r *rules) check(s Server, t Tool) error {
	for _, sec := range r.sectionsFor(s) {
		if g, ok := firstMatch(sec.Deny, t); ok {
			return r.refuse(sec.name, fmt.Sprintf("deny = %q", g), "calling %q of server %q is not allowed", t.Name, s.Name)
		}
	}
	if sec := r.first(s, (*section).allows); sec != nil {
		if _, ok := firstMatch(sec.Allow, t); !ok {
			return r.refuse(sec.name, "allow", "calling %q of server %q is not allowed: it is none of %s", t.Name, s.Name, listed(sec.Allow))
		}
	}
	if sec := r.first(s, func(sec *section) bool { return sec.ReadOnly != nil }); sec != nil && *sec.ReadOnly && !t.ReadOnly {
		return r.refuse(sec.name, "readOnly = true", "calling %q of server %q is not allowed: %s", t.Name, s.Name, cmp.Or(t.Unaccepted, "the server does not say that it only reads"))
	}
	return nil
}

// limits returns those that apply to a call of a tool: the server's, and those of the tool.
func (r *rules) limits(s Server, t Tool) []limit {
	var ofServer, ofTool []limit
	for _, sec := range r.sectionsFor(s) {
		ofServer = sec.limits.addTo(ofServer, limitKey{section: sec.name, server: s.Name})
		for _, ts := range sec.tools {
			if t.isMeantBy(ts.tools) {
				ofTool = ts.limits.addTo(ofTool, limitKey{section: ts.name, server: s.Name, tool: t.Name})
			}
		}
	}
	return append(ofServer, ofTool...)
}

// refuse makes the error of a call that a rule forbids. It names the rule, so
// that the user can find and change it.
func (r *rules) refuse(section, rule, format string, args ...any) *DeniedError {
	return &DeniedError{err: fmt.Errorf("%s: %s", r.rule(section, rule), fmt.Sprintf(format, args...))}
}

// rule names a rule, so that the user can find it.
func (r *rules) rule(section, rule string) string {
	return fmt.Sprintf("policy %s, %s %s", r.file, section, rule)
}

func firstMatch(globs []rule.Glob, t Tool) (rule.Glob, bool) {
	i := slices.IndexFunc(globs, t.isMeantBy)
	if i < 0 {
		return "", false
	}
	return globs[i], true
}

func listed(globs []rule.Glob) string {
	if len(globs) == 0 {
		return "no tools"
	}
	return text.QuoteList(globs, 10)
}

// A limitKey is what calls are counted by: each server that a section is
// about, and each tool, has a count of its own.
type limitKey struct {
	section, server, tool string
	perMinute             bool
}

// A limit is one that applies to a call.
type limit struct {
	limitKey
	max int
}

func (l limit) rule() string {
	if l.perMinute {
		return fmt.Sprintf("callsPerMinute = %d", l.max)
	}
	return fmt.Sprintf("callsPerRun = %d", l.max)
}

func (l limit) what() string {
	if l.tool == "" {
		return fmt.Sprintf("server %q", l.server)
	}
	return fmt.Sprintf("%q of server %q", l.tool, l.server)
}

// addTo adds the limits of a section to those that were found, unless one of the kind is
// among them: the section that says most comes first.
func (l limits) addTo(found []limit, k limitKey) []limit {
	for i, most := range []callCount{l.PerRun, l.PerMinute} {
		k.perMinute = i == 1
		if most > 0 && !slices.ContainsFunc(found, func(f limit) bool { return f.perMinute == k.perMinute }) {
			found = append(found, limit{k, int(most)})
		}
	}
	return found
}

// wait returns how long it takes until there is room for one more call within the minute, 0
// if there is. p.mu is held.
func (p *Policy) wait(k limitKey, now time.Time, limit int) time.Duration {
	calls := p.minutes[k]
	for len(calls) > 0 && now.Sub(calls[0]) >= time.Minute {
		calls = calls[1:]
	}
	p.minutes[k] = calls
	if len(calls) < limit {
		return 0
	}
	return time.Minute - now.Sub(calls[len(calls)-limit])
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
