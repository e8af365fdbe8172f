package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/match"
	"github.com/toolcell/toolcell/mcpproxy/pins"
	"github.com/toolcell/toolcell/mcpproxy/pyname"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// List is the tools of one server that its filter shows. It is not changed
// once it is made.
type List struct {
	tools       []Tool
	byKey       map[string]int // names, and aliases where no tool has such a name
	definitions Definitions
	filter      toolFilter
}

// Definitions are all tools that a server has, shown or not.
type Definitions struct {
	tools []Tool // without aliases
	left  []leftOut
	sent  []pins.Definition // not kept in a List
}

// Sent returns the tools as the server sent them, for pins to compare.
func (d Definitions) Sent() []pins.Definition { return d.sent }

// equal reports whether a server gave the same definitions again.
func (d Definitions) equal(other Definitions) bool {
	return slices.EqualFunc(d.tools, other.tools, Tool.equal)
}

// leftOut is a tool that makes no sense, and why.
type leftOut struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// newList shows of the definitions what the filter lets through. A tool's
// own name goes before another's alias.
func newList(d Definitions, f toolFilter) *List {
	l := &List{byKey: make(map[string]int, len(d.tools)), definitions: d, filter: f}
	for _, t := range d.tools {
		if f.refuses(t.Name) == "" {
			l.byKey[t.Name] = len(l.tools)
			l.tools = append(l.tools, t)
		}
	}
	taken := make(map[string]bool, len(l.tools))
	for i := range l.tools {
		t := &l.tools[i]
		if t.Alias = toolAlias(t.Name, taken); t.Alias == t.Name {
			t.Alias = t.Name // one string in memory, not two
		}
		if _, ok := l.byKey[t.Alias]; !ok {
			l.byKey[t.Alias] = i
		}
	}
	return l
}

// toolAlias is Alias for tools. An attribute that begins with an underscore is
// Python's own: __class__ of an object is never a tool.
func toolAlias(name string, taken map[string]bool) string {
	if id := strings.TrimLeft(pyname.Identifier(name), "_"); id != "" {
		name = id
	}
	return pyname.Alias(name, "tool", taken)
}

// Count returns how many tools are shown.
func (l *List) Count() int { return len(l.tools) }

// Sent returns what pins compare of all tools of the server, shown or not.
func (l *List) Sent() []pins.Definition {
	all := make([]pins.Definition, len(l.definitions.tools))
	for i, t := range l.definitions.tools {
		all[i] = t.Definition()
	}
	return all
}

// At returns a tool by number.
func (l *List) At(i int) Tool { return l.tools[i] }

// All returns all tools, in a slice of the caller's.
func (l *List) All() []Tool { return slices.Clone(l.tools) }

// Find returns the tool with this name or alias.
func (l *List) Find(key string) (Tool, bool) {
	i, ok := l.byKey[key]
	if !ok {
		return Tool{}, false
	}
	return l.tools[i], true
}

// FindFold is Find for names in any case. A name that is written as asked for comes
// first, then the first of the others.
func (l *List) FindFold(key string) (Tool, bool) {
	if t, ok := l.Find(key); ok {
		return t, true
	}
	for _, t := range l.tools {
		if strings.EqualFold(t.Name, key) || strings.EqualFold(t.Alias, key) {
			return t, true
		}
	}
	return Tool{}, false
}

// Missing returns the error of a call of a tool that is not shown: it is hidden,
// cannot be used, or does not exist.
func (l *List) Missing(server, tool string) error {
	for _, n := range l.definitions.tools {
		if n.Name != tool && toolAlias(n.Name, map[string]bool{}) != tool {
			continue
		}
		if why := l.filter.refuses(n.Name); why != "" {
			return fmt.Errorf("tool %q of server %q is hidden: %s", n.Name, server, why)
		}
	}
	for _, t := range l.definitions.left {
		if t.Name == text.Printable(tool, maxToolName) || toolAlias(t.Name, map[string]bool{}) == tool {
			return fmt.Errorf("tool %q of server %q cannot be used: %s", t.Name, server, t.Reason)
		}
	}
	if len(l.tools) == 0 {
		return fmt.Errorf("server %q has no tool %q: it has no tools", server, text.Printable(tool, maxToolName))
	}
	names := make([]string, len(l.tools))
	for i, t := range l.tools {
		names[i] = t.Name
	}
	return fmt.Errorf("server %q has no tool %q; the nearest are %s", server, text.Printable(tool, maxToolName), text.QuoteList(match.Nearest(tool, names, 3), 3))
}

func checkToolName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("its name is empty")
	case len(name) > maxToolName:
		return fmt.Errorf("its name is longer than %d bytes", maxToolName)
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("its name contains control characters")
	case strings.ContainsFunc(name, text.IsInvisible):
		return errors.New("its name contains invisible characters")
	}
	return nil
}

// A toolFilter is what a client's file says of the tools of one server: a list
// of those to show, of those to hide, or both. Entries are names, in which * and ?
// are wildcards.
type toolFilter struct {
	allow, deny []string
	source      string
}

func filterOf(s config.Server) toolFilter { return toolFilter{s.AllowTools, s.DenyTools, s.Source} }

// refuses returns why a tool is hidden, or nothing.
func (f toolFilter) refuses(name string) string {
	for _, pattern := range f.deny {
		if match.Glob([]rune(pattern), []rune(name)) {
			return fmt.Sprintf("%s excludes %q", f.source, pattern)
		}
	}
	if f.allow == nil {
		return ""
	}
	for _, pattern := range f.allow {
		if match.Glob([]rune(pattern), []rune(name)) {
			return ""
		}
	}
	if len(f.allow) == 0 {
		return f.source + " allows no tool of this server"
	}
	return fmt.Sprintf("%s allows only %s", f.source, text.QuoteList(f.allow, 10))
}
