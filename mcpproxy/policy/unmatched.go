package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

// An UnmatchedSection is about none of the user's servers: a misspelled name protects
// nothing.
type UnmatchedSection struct {
	Name  string // as the file has it
	Meant string // the server that it is probably about; "" is none
}

// UnmatchedSections returns the sections that are about none of these servers.
func (p *Policy) UnmatchedSections(servers []Server) (sections []UnmatchedSection) {
	r, err := p.current()
	if r == nil || err != nil {
		return nil
	}
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Name
	}
	for _, sec := range r.sections {
		if !slices.ContainsFunc(servers, sec.about) && !sec.servers.IsEverything() {
			for _, name := range sec.written() {
				sections = append(sections, UnmatchedSection{name, text.Meant(string(sec.servers), names, 3)})
			}
		}
	}
	return sections
}

// An UnmatchedTool is a name or glob in the file that matches no tool of the servers that
// its section is about: a misspelled name protects nothing.
type UnmatchedTool struct {
	Section string // as the file has it
	Rule    string // such as deny = "list_task"
	Meant   string // the tool that it probably stands for; "" is none
	Plain   bool   // it is a name of a tool of one server, so that it is wrong, or too early
}

func (u UnmatchedTool) String() string {
	said := fmt.Sprintf("%s %s matches no tool", u.Section, u.Rule)
	if u.Meant != "" {
		said += fmt.Sprintf("; did you mean %q?", u.Meant)
	}
	return said
}

// KnownTools are the tools of a server, as far as they are known.
type KnownTools struct {
	Server Server
	Tools  []Tool // nil if they are not
}

// UnmatchedTools returns what in the file matches no tool of these servers. Sections about
// a server whose tools are not known are left out.
func (p *Policy) UnmatchedTools(servers []KnownTools) []UnmatchedTool {
	r, _ := p.current() // nil with an error
	return r.unmatchedTools(servers, func(*section) bool { return true })
}

// UnmatchedTools returns what in the rules of the run matches no tool of a server, of the
// sections that name this server and no other.
func (r *Enforcer) UnmatchedTools(s KnownTools) []UnmatchedTool {
	if r == nil || s.Tools == nil {
		return nil
	}
	return r.rules.unmatchedTools([]KnownTools{s}, func(sec *section) bool { return sec.servers.IsName() })
}

// NamesTools reports whether a section about one server names tools.
func (r *Enforcer) NamesTools() bool {
	return r.known() && slices.ContainsFunc(r.rules.sections, func(sec *section) bool {
		return sec.servers.IsName() && len(sec.Deny)+len(sec.Allow)+len(sec.Ask.tools)+len(sec.UnaskedAllow)+len(sec.tools) > 0
	})
}

func (r *rules) unmatchedTools(servers []KnownTools, of func(*section) bool) (all []UnmatchedTool) {
	if r == nil {
		return nil
	}
	for _, sec := range r.sections {
		if !of(sec) {
			continue
		}
		tools, known := toolsOf(sec, servers)
		if !known {
			continue
		}
		add := func(section, rule string, g rule.Glob) {
			if g.IsEverything() || slices.ContainsFunc(tools, func(t Tool) bool { return g.Matches(t.Name) || g.Matches(t.Alias) }) {
				return
			}
			u := UnmatchedTool{Section: section, Rule: rule, Plain: g.IsName() && sec.servers.IsName()}
			var names []string
			for _, t := range tools {
				names = append(names, t.Name)
			}
			if strings.HasPrefix(rule, "ask = ") {
				names = append(names, "writes")
			}
			u.Meant = text.Meant(strings.Trim(string(g), "*?"), names, 3)
			all = append(all, u)
		}
		for _, k := range []struct {
			key   string
			globs []rule.Glob
		}{{"deny", sec.Deny}, {"allow", sec.Allow}, {"ask", sec.Ask.tools}, {"unaskedAllow", sec.UnaskedAllow}} {
			for _, g := range k.globs {
				add(sec.name, fmt.Sprintf("%s = %q", k.key, g), g)
			}
		}
		for _, ts := range sec.tools {
			add(ts.name, fmt.Sprintf("(tools.%s)", ts.tools), ts.tools)
		}
	}
	return all
}

// toolsOf returns the tools of all servers that a section is about, and false if those of
// one are not known, or there is none.
func toolsOf(sec *section, servers []KnownTools) (tools []Tool, known bool) {
	for _, s := range servers {
		if !sec.about(s.Server) {
			continue
		}
		if s.Tools == nil {
			return nil, false
		}
		tools, known = append(tools, s.Tools...), true
	}
	return tools, known
}
