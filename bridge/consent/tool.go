package consent

import (
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// Bounds on what a question says of tools.
const (
	maxDescription = 300 // characters, of all tools together
	minDescription = 60  // of one of several
)

// A Tool is what a question says of the tool of some of its calls.
type Tool struct {
	Server, Tool string
	Effect       string // as Call.Effect
	Writes       bool
	Description  string // as the server has it: its beginning, on one line

	several bool // the question is about other tools too
}

// Tools returns the tools of the calls, each once, in the order of their first calls. One
// whose definition has changed meanwhile is there twice. Those of which nothing is known are
// left out.
func (q *Question) Tools() (all []Tool) {
	known := map[toolKey]bool{}
	for _, c := range q.Calls {
		if key := c.key(); !known[key] && c.Effect+c.Description != "" {
			known[key] = true
			all = append(all, Tool{Server: c.Server, Tool: c.Tool, Effect: c.Effect, Writes: c.Writes, Description: c.Description})
		}
	}
	room := maxDescription
	if len(all) > 1 {
		room = max(minDescription, maxDescription/len(all))
	}
	for i := range all {
		all[i].several = len(all) > 1
		all[i].Description = beginning(all[i].Description, room)
	}
	return all
}

// beginning returns the first n characters of a text on one line, in which nothing can be
// pushed out of sight by empty space.
func beginning(s string, n int) string {
	head := text.Clip(s, 16*n) // it may be long, and only its beginning is looked at
	short := clip(strings.Join(strings.Fields(head), " "), n)
	if len(head) < len(s) && !strings.HasSuffix(short, cutMark) {
		short += cutMark
	}
	return short
}

// writeTools writes what the calls may change and what their servers say of the tools, once
// for each tool.
func (q *Question) writeTools(b *strings.Builder, as quoting) {
	tools := q.Tools()
	for _, t := range tools[:min(len(tools), maxListedCalls)] {
		b.WriteString(t.about(as))
	}
	if n := len(tools) - maxListedCalls; n > 0 {
		fmt.Fprintf(b, "and %s\n", text.Plural(n, "more tool"))
	}
}

// moreTools returns those that are not shown at first.
func (q *Question) moreTools() []Tool {
	tools := q.Tools()
	return tools[min(len(tools), maxListedCalls):]
}

// about says what is known of a tool, in lines. The server's words come last, so that they
// cannot look like toolcell's.
func (t Tool) about(as quoting) string {
	var parts []string
	of, indent := "", ""
	if t.several {
		of = fmt.Sprintf(" of %s of %s", quote(as, clip(t.Tool, maxName)), quote(as, clip(t.Server, maxName)))
		indent = "   "
	}
	if t.Effect != "" {
		parts = append(parts, fmt.Sprintf("effect%s: %s", of, as.line(clip(t.Effect, maxReason))))
		of = ""
	}
	if t.Description != "" {
		parts = append(parts, fmt.Sprintf("description%s (by the server): %s", of, quote(as, t.Description)))
	}
	separator := "\n" + indent
	if as.joinsLines() {
		separator = "; "
	}
	return strings.Join(parts, separator) + "\n"
}
