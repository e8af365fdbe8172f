package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/internal/toml"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

// Parse returns the policy that a text would be in a file, which messages name. It stays as it is,
// whatever becomes of the file. Err tells what is wrong with it.
func Parse(source []byte, file string) *Policy {
	p := None()
	p.file, p.fixed = file, true
	p.err = contain.Call("reading the policy", func() (err error) {
		if len(source) > maxPolicySize {
			return fmt.Errorf("policy %s: it has more than %d bytes", p.name(), maxPolicySize)
		}
		p.rules, err = parseRules(string(source), p.name())
		return err
	})
	if p.err != nil {
		p.rules = nil
	}
	return p
}

// A Section is one of the file about servers, as it was understood.
type Section struct {
	Name  string // as the file has it, such as [servers.github]
	About string // the servers, in words
	Rules []Rule
}

// A Rule is a key of a section with its value, or with one of a list.
type Rule struct {
	Section toml.Key // that it is in, such as servers, github
	Key     string   // such as deny; when for a condition
	Glob    string   // the tools that it names, if it is one of deny or ask; else ""
	Text    string   // as a file can have it, shortened
	Says    string   // in words

	reason string // how the reasons begin that it gives
}

// ByArguments reports whether the rule goes by the arguments of a call.
func (r Rule) ByArguments() bool { return r.Key == "when" }

// Gives reports whether a reason to ask or to refuse is this rule's.
func (r Rule) Gives(reason string) bool {
	rest, ok := strings.CutPrefix(reason, r.reason)
	return ok && r.reason != "" && (rest == "" || rest[0] == ':' || r.ByArguments() && strings.HasPrefix(rest, ", but "))
}

// Sections returns what was understood of the sections about servers, of those about one server the
// most specific first. It is nil without a file, or if that is not understood.
func (p *Policy) Sections() (all []Section) {
	r, err := p.current()
	if r == nil || err != nil {
		return nil
	}
	for _, sec := range r.sections {
		all = append(all, r.explain(sec))
	}
	return all
}

// AllowedBy returns the rule that lists a tool among those that may be called, as a reason names it,
// "" if no section has such a list.
func (r *Enforcer) AllowedBy(s Server, t Tool) string {
	if !r.known() || t.Name == "" {
		return ""
	}
	sec := r.rules.first(s, (*section).allows)
	if sec == nil {
		return ""
	}
	return r.rules.rule(sec.name, "allow")
}

// ByArguments reports whether a condition looks at the arguments of calls of a tool.
func (r *Enforcer) ByArguments(s Server, t Tool) bool {
	return r.known() && slices.ContainsFunc(r.rules.sectionsFor(s), func(sec *section) bool {
		return slices.ContainsFunc(sec.tools, func(ts toolSection) bool { return len(ts.When) > 0 && t.isMeantBy(ts.tools) })
	})
}

// explain says what a section has, in the order in which a call is checked.
func (r *rules) explain(sec *section) Section {
	e := explanation{file: r, section: Section{Name: sec.name, About: aboutServers(sec)}, in: sec.key, name: sec.name}
	for _, g := range sec.Deny {
		e.tools("deny", g, "may not be called")
	}
	switch {
	case sec.Allow != nil && len(sec.Allow) == 0:
		e.add("allow", "allow = []", "no tool may be called")
	case sec.Allow != nil:
		e.list("allow", sec.Allow, "only these tools may be called")
		e.section.Rules[len(e.section.Rules)-1].reason = r.rule(sec.name, "allow")
	}
	e.flag("readOnly", sec.ReadOnly, "only tools that count as reading may be called", "tools that write may be called, too")
	e.limits(sec.limits, "of each server")
	if sec.Ask.writes {
		e.add("ask", `ask = "writes"`, "you are asked about every tool that does not count as reading")
	}
	for _, g := range sec.Ask.tools {
		e.tools("ask", g, "you are asked about it")
	}
	e.word("unasked", string(sec.Unasked), map[string]string{"deny": "where you cannot be asked, nothing is called", "allow": "where you cannot be asked, it is called all the same"})
	if sec.UnaskedAllow != nil {
		e.list("unaskedAllow", sec.UnaskedAllow, "where you cannot be asked, these are called all the same")
	}
	e.flag("private", sec.Private, "what code reads from it is private", "what code reads from it is not private")
	e.flag("open", sec.Open, "others may see what code sends to it", "others do not see what code sends to it")
	e.word("pins", string(sec.Pins), map[string]string{
		"warn": "a changed definition of a tool is told", "ask": "you are asked about tools whose definitions have changed", "refuse": "tools whose definitions have changed may not be called",
	})
	e.word("record", string(sec.Record), map[string]string{
		"none": "the record keeps none of its values", "arguments": "the record keeps what code sends to it", "all": "the record keeps what code sends to it, and its answers",
	})
	e.sandbox(sec.sandboxKeys)
	for _, ts := range sec.tools {
		e.in, e.name = ts.key, ts.name
		e.limits(ts.limits, "of the tool")
		e.in, e.name = append(slices.Clone(ts.key), "when"), ts.whenName()
		for _, w := range ts.When {
			e.add("when", w.String(), fmt.Sprintf("you are asked about %s if this holds or is not certain", globWords(ts.tools)))
		}
	}
	return e.section
}

// aboutServers says which servers a section is about.
func aboutServers(sec *section) string {
	switch {
	case sec.isDefault():
		return "every server"
	case sec.servers.IsName():
		return fmt.Sprintf("the server %q", sec.servers)
	}
	return fmt.Sprintf("each server whose name matches %q", sec.servers)
}

func globWords(g rule.Glob) string {
	switch {
	case g.IsEverything():
		return "every tool"
	case g.IsName():
		return strconv.Quote(string(g))
	}
	return "each tool that matches " + strconv.Quote(string(g))
}

// An explanation collects the rules of a section.
type explanation struct {
	file    *rules
	section Section
	in      toml.Key // of the table that the next rule is in
	name    string   // of that table
}

func (e *explanation) add(key, shown, says string) {
	e.section.Rules = append(e.section.Rules, Rule{Section: e.in, Key: key, Text: shown, Says: says, reason: e.file.rule(e.name, shown)})
}

func (e *explanation) tools(key string, g rule.Glob, says string) {
	e.add(key, fmt.Sprintf("%s = %q", key, g), globWords(g)+": "+says)
	e.section.Rules[len(e.section.Rules)-1].Glob = string(g)
}

func (e *explanation) list(key string, globs []rule.Glob, says string) {
	quoted := make([]string, len(globs))
	for i, g := range globs {
		quoted[i] = strconv.Quote(string(g))
	}
	e.add(key, text.Bound(fmt.Sprintf("%s = [%s]", key, strings.Join(quoted, ", ")), 1000), says)
}

func (e *explanation) flag(key string, is *bool, yes, no string) {
	switch {
	case is == nil:
	case *is:
		e.add(key, key+" = true", yes)
	default:
		e.add(key, key+" = false", no)
	}
}

func (e *explanation) word(key, word string, says map[string]string) {
	if word != "" {
		e.add(key, fmt.Sprintf("%s = %q", key, word), says[word])
	}
}

func (e *explanation) limits(l limits, of string) {
	if l.PerRun > 0 {
		e.add("callsPerRun", fmt.Sprintf("callsPerRun = %d", l.PerRun), fmt.Sprintf("at most %s %s in a run", text.Plural(int(l.PerRun), "call"), of))
	}
	if l.PerMinute > 0 {
		e.add("callsPerMinute", fmt.Sprintf("callsPerMinute = %d", l.PerMinute), fmt.Sprintf("at most %s %s within a minute", text.Plural(int(l.PerMinute), "call"), of))
	}
}
