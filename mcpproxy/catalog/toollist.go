package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/toolcell/toolcell/internal/pyname"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/pins"
)

// List holds the tools of one server that its filter shows. It does not change.
type List struct {
	tools       []Tool
	byKey       map[string]int // names and aliases
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

// leftOut is a tool that was left out, with the reason.
type leftOut struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// newList returns the tools that the filter shows. Hidden tools have aliases too, so that no
// alias depends on a filter.
func newList(d Definitions, f toolFilter) *List {
	l := &List{byKey: make(map[string]int, len(d.tools)), definitions: d, filter: f}
	names := make([]string, len(d.tools))
	for i, t := range d.tools {
		names[i] = t.Name
	}
	for i, alias := range toolNames.Aliases(names) {
		t := d.tools[i]
		if f.refuses(t.Name) != "" {
			continue
		}
		t.Alias = alias
		l.byKey[t.Name], l.byKey[alias] = len(l.tools), len(l.tools) // no alias is another tool's name
		l.tools = append(l.tools, t)
	}
	l.findTwins()
	return l
}

// findTwins finds tools whose names differ only in case. Those of one name share their list,
// as there may be thousands.
func (l *List) findTwins() {
	alike := map[string][]int{}
	for i, t := range l.tools {
		low := strings.ToLower(t.Name)
		if low == t.Name {
			continue // the other one tells
		}
		if j, ok := l.byKey[low]; ok && j != i && len(alike[low]) == 0 {
			alike[low] = []int{j}
		}
		alike[low] = append(alike[low], i)
	}
	for _, all := range alike {
		if len(all) < 2 {
			continue
		}
		var keys []string
		for _, i := range all {
			keys = append(keys, l.tools[i].Name, l.tools[i].Alias)
		}
		for _, i := range all {
			l.tools[i].twins = keys
		}
	}
}

// toolNames is how tools are named in code. list_tools is there for every server.
var toolNames = pyname.Scheme{Fallback: "tool", Identifier: toolIdentifier, Reserved: []string{"list_tools"}}

// toolIdentifier is Identifier for tools. An attribute that begins with an underscore is
// Python's own: __class__ of an object is never a tool. One stands only before a digit.
func toolIdentifier(name string) string {
	id := pyname.Identifier(name)
	return pyname.Identifier(strings.TrimLeftFunc(id, func(r rune) bool {
		return r == '_' || !unicode.IsDigit(r) && !pyname.IsIdentifier(string(r))
	}))
}

// Count returns how many tools are shown.
func (l *List) Count() int { return len(l.tools) }

// Sent returns the definitions of all tools, shown or not, as pins compare them.
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

// FindFold is Find for names in any case, in which - and _ are one. A name that is
// written as asked for comes first, then the first of the others.
func (l *List) FindFold(key string) (Tool, bool) {
	if t, ok := l.Find(key); ok {
		return t, true
	}
	if meant := l.folded(key, 1); len(meant) > 0 {
		return meant[0], true
	}
	return Tool{}, false
}

// Resolve is Find for a call: a name in another case, or with - for _, is taken if it can
// mean one tool only.
func (l *List) Resolve(key string) (Tool, bool) {
	if t, ok := l.Find(key); ok {
		return t, true
	}
	if meant := l.folded(key, 2); len(meant) == 1 {
		if _, why := l.hidden(key); why == "" {
			return meant[0], true
		}
	}
	return Tool{}, false
}

// folded returns at most n tools whose name or alias differs from a key only in what
// fold makes equal.
func (l *List) folded(key string, n int) (found []Tool) {
	key = fold(key)
	for _, t := range l.tools {
		if len(found) < n && (fold(t.Name) == key || fold(t.Alias) == key) {
			found = append(found, t)
		}
	}
	return found
}

func fold(name string) string { return strings.ToLower(strings.ReplaceAll(name, "-", "_")) }

// hidden returns a tool that the filter hides, and why it does; "" if it hides none of
// that name.
func (l *List) hidden(key string) (tool, why string) {
	if l.filter.isEmpty() {
		return "", ""
	}
	for _, t := range l.definitions.tools {
		if t.Name != key && fold(toolIdentifier(t.Name)) != fold(key) {
			continue
		}
		if why := l.filter.refuses(t.Name); why != "" {
			return t.Name, why
		}
	}
	return "", ""
}

// A MissingError says that a tool is not shown: it is hidden, cannot be used, or does not exist.
type MissingError struct{ text string }

func (e *MissingError) Error() string { return e.text }

// Missing returns the error of a call of a tool that is not shown, a *MissingError. It names others as
// code calls them.
func (l *List) Missing(server, tool string) error { return &MissingError{l.missing(server, tool)} }

func (l *List) missing(server, tool string) string {
	if hidden, why := l.hidden(tool); why != "" {
		return fmt.Sprintf("tool %q of server %q is hidden: %s", hidden, server, why)
	}
	for _, t := range l.definitions.left {
		if t.Name == text.Printable(tool, maxToolName) || fold(toolIdentifier(t.Name)) == fold(tool) {
			return fmt.Sprintf("tool %q of server %q cannot be used: %s", t.Name, server, t.Reason)
		}
	}
	if len(l.tools) == 0 && len(l.definitions.tools) > 0 {
		return fmt.Sprintf("server %q has no tool %q, and all of its tools are hidden: %s",
			server, text.Printable(tool, maxToolName), l.filter.refuses(l.definitions.tools[0].Name))
	}
	if len(l.tools) == 0 {
		return fmt.Sprintf("server %q has no tool %q: it has no tools", server, text.Printable(tool, maxToolName))
	}
	names := make([]string, len(l.tools))
	for i, t := range l.tools {
		names[i] = t.Alias
	}
	return fmt.Sprintf("server %q has no tool %q; the nearest are %s", server, text.Printable(tool, maxToolName), text.QuoteList(text.Nearest(tool, names, 3), 3))
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

// A toolFilter has the names of the tools that a client's file shows or hides. Entries
// are names, in which * and ? are wildcards.
type toolFilter struct {
	allow, deny []string
	source      string
}

func filterOf(s config.Server) toolFilter { return toolFilter{s.AllowTools, s.DenyTools, s.Source} }

func (f toolFilter) isEmpty() bool { return f.allow == nil && len(f.deny) == 0 }

// refuses returns why a tool is hidden, or nothing.
func (f toolFilter) refuses(name string) string {
	matches := func(pattern string) bool { return text.Glob(pattern, name) }
	if i := slices.IndexFunc(f.deny, matches); i >= 0 {
		return fmt.Sprintf("%s excludes %q", f.source, f.deny[i])
	}
	switch {
	case f.allow == nil || slices.ContainsFunc(f.allow, matches):
		return ""
	case len(f.allow) == 0:
		return f.source + " allows no tool of this server"
	}
	return fmt.Sprintf("%s allows only %s", f.source, text.QuoteList(f.allow, 10))
}
