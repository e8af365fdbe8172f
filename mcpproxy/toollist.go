package mcpproxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/toolcell/toolcell/mcpproxy/pyname"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// Tool is one tool of one server. The schemas are as the server wrote them.
type Tool struct {
	Name         string          `json:"name"`
	Alias        string          `json:"alias"` // the Python identifier, unique in its server
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// toolList is the tools of one server. It is not changed once it is made.
type toolList struct {
	tools []Tool         // the visible ones: names, aliases and annotations; whole gives the rest
	byKey map[string]int // names, and aliases where no tool has such a name

	definitions definitions
	at          []int // by tool, its place in the definitions
	filter      toolFilter
	recent      [8]atomic.Pointer[recentTool]
}

// recentTool is one that was unpacked lately: scripts call the same few.
type recentTool struct {
	number int
	tool   Tool
}

// definitions are all tools that a server has, whoever may see them.
type definitions struct {
	names  []toolName
	packed packed
	left   []leftOut
}

// toolName is what is looked at without unpacking a definition.
type toolName struct {
	Name        string          `json:"name"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

// leftOut is a tool that makes no sense, and why.
type leftOut struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// newToolList shows of the definitions what the filter lets through. A tool's
// own name goes before another's alias.
func newToolList(d definitions, f toolFilter) *toolList {
	l := &toolList{byKey: make(map[string]int, len(d.names)), definitions: d, filter: f}
	for i, n := range d.names {
		if f.refuses(n.Name) != "" {
			continue
		}
		l.byKey[n.Name] = len(l.tools)
		l.tools = append(l.tools, Tool{Name: n.Name, Annotations: n.Annotations})
		l.at = append(l.at, i)
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

// find returns the tool with this name or alias. One that cannot be unpacked
// can still be called.
func (l *toolList) find(key string) (Tool, bool) {
	i, ok := l.byKey[key]
	if !ok {
		return Tool{}, false
	}
	t, err := l.whole(i)
	if err != nil {
		t = l.tools[i]
	}
	return t, true
}

// whole returns a tool by number with everything the server says of it.
func (l *toolList) whole(i int) (Tool, error) {
	slot := &l.recent[i%len(l.recent)]
	if r := slot.Load(); r != nil && r.number == i {
		return r.tool, nil
	}
	t, err := l.definitions.packed.read(l.at[i])
	if err != nil {
		return t, err
	}
	t.Alias = l.tools[i].Alias
	slot.Store(&recentTool{i, t})
	return t, nil
}

// all returns all tools whole.
func (l *toolList) all() ([]Tool, error) {
	tools := make([]Tool, 0, len(l.tools))
	err := l.definitions.packed.each(func(i int, t Tool) {
		if next := len(tools); next < len(l.at) && l.at[next] == i {
			t.Alias = l.tools[next].Alias
			tools = append(tools, t)
		}
	})
	if err == nil && len(tools) != len(l.tools) {
		err = errDamaged
	}
	return tools, err
}

// missing says why there is no such tool.
func (l *toolList) missing(server, tool string) error {
	for _, n := range l.definitions.names {
		if n.Name != tool && toolAlias(n.Name, map[string]bool{}) != tool {
			continue
		}
		if why := l.filter.refuses(n.Name); why != "" {
			return fmt.Errorf("tool %q of server %q is hidden: %s", n.Name, server, why)
		}
	}
	for _, t := range l.definitions.left {
		if t.Name == text.Printable(tool, maxToolName) {
			return fmt.Errorf("tool %q of server %q cannot be used: %s", t.Name, server, t.Reason)
		}
	}
	return noTool(server, tool, l)
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
