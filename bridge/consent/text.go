package consent

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// Bounds on the text of a question, in characters.
const (
	maxArguments   = 2000    // of all calls together
	maxWhole       = 2 << 20 // the same, in the whole text
	maxMessage     = 4000    // of a server that asks for input
	maxListedCalls = 10
	maxNamedTools  = 20
	maxEffects     = 5
	maxReason      = 400
	maxCallReasons = 3 // of one of several calls
	maxName        = 200
)

// Text returns the question as the user of a client reads it.
func (q *Question) Text() string {
	if q.cut(markdown{}) {
		return q.brief(markdown{}) + "\nto see all: toolcell approvals show " + q.ID
	}
	return q.brief(markdown{})
}

// TerminalText is Text for a terminal.
func (q *Question) TerminalText() string { return q.brief(terminal{}) }

// WholeTerminalText is TerminalText with all arguments.
func (q *Question) WholeTerminalText() string {
	if !q.cut(terminal{}) {
		return q.TerminalText()
	}
	var b strings.Builder
	b.WriteString(q.TerminalText())
	b.WriteByte('\n')
	for _, t := range q.moreTools() {
		b.WriteString(t.about(terminal{}))
	}
	b.WriteString("all arguments:")
	for i, c := range q.Calls {
		fmt.Fprintf(&b, "\n%d. server %s, tool %s, arguments: %s", i+1, c.server(terminal{}, maxWhole), quote(terminal{}, c.Tool), shownArguments(terminal{}, c, maxWhole/len(q.Calls)))
		if !q.sameReasons() && i >= maxListedCalls { // those of others are above
			b.WriteByte('\n')
			writeReasons(&b, terminal{}, "   ", c.Reasons)
		}
	}
	return b.String()
}

// brief is the question, with the ends of long arguments.
func (q *Question) brief(as quoting) string {
	var b strings.Builder
	switch {
	case q.Form != nil:
		fmt.Fprintf(&b, "The MCP server %s asks, not toolcell:\n%s", quote(as, clip(q.Form.Server, maxName)), as.message(clip(q.Form.Message, maxMessage)))
		return b.String()
	case len(q.Calls) == 0:
		fmt.Fprintf(&b, "toolcell asks before Python code runs: may it have %s?\n", as.line(clip(q.Subject, maxArguments)))
		writeReasons(&b, as, "", q.Reasons)
		return strings.TrimSuffix(b.String(), "\n")
	case len(q.Calls) == 1:
		caller := "Python code"
		if q.Command {
			caller = "this command"
		}
		fmt.Fprintf(&b, "toolcell asks: may %s make this call?\n", caller)
	default:
		fmt.Fprintf(&b, "toolcell asks: may Python code make these %d calls?\n", len(q.Calls))
	}
	q.writeCalls(&b, as)
	b.WriteString(q.aboutCalls(as))
	q.writeEffects(&b, as)
	return strings.TrimSuffix(b.String(), "\n")
}

// aboutCalls says why the calls are asked, and what is known of their tools, in lines. Claude
// Code shows a question of four lines in full, but of a longer one only three: so for clients
// one call has no more lines than its reasons.
func (q *Question) aboutCalls(as quoting) string {
	var reasons, tools strings.Builder
	if q.sameReasons() {
		writeReasons(&reasons, as, "", q.allReasons())
	} else if others := q.otherReasons(); len(others) > 0 {
		reasons.WriteString("of the calls that are not shown:\n")
		writeReasons(&reasons, as, "   ", others)
	}
	q.writeTools(&tools, as)
	if as.joinsLines() && len(q.Calls) == 1 && reasons.Len() > 0 && tools.Len() > 0 {
		return strings.TrimSuffix(reasons.String(), "\n") + "; " + tools.String()
	}
	return reasons.String() + tools.String()
}

func writeReasons(b *strings.Builder, as quoting, indent string, reasons []string) {
	for _, reason := range reasons {
		fmt.Fprintf(b, "%sreason: %s\n", indent, as.line(clip(reason, maxReason)))
	}
}

// sameReasons reports whether all calls have the same reasons, or there is only one.
// Otherwise each call that is shown has its own below it.
func (q *Question) sameReasons() bool {
	return len(q.allReasons()) < 2 || !slices.ContainsFunc(q.Calls, func(c Call) bool { return !slices.Equal(c.Reasons, q.Calls[0].Reasons) })
}

// allReasons returns the reasons of all calls, each once, a few of them.
func (q *Question) allReasons() []string { return reasonsOf(q.Calls) }

// otherReasons returns those of the calls that are not shown.
func (q *Question) otherReasons() []string {
	return reasonsOf(q.Calls[min(len(q.Calls), maxListedCalls):])
}

func reasonsOf(calls []Call) (all []string) {
	for _, c := range calls {
		for _, reason := range c.Reasons {
			if !slices.Contains(all, reason) && len(all) < maxListedCalls {
				all = append(all, reason)
			}
		}
	}
	return all
}

// writeCalls writes what is asked, in lines two and three as far as they have room: Claude
// Code shows three lines of a question, and each up to the width of its window.
func (q *Question) writeCalls(b *strings.Builder, as quoting) {
	if len(q.Calls) == 1 {
		c := q.Calls[0]
		fmt.Fprintf(b, "server: %s, tool: %s%s\narguments: %s\n", c.server(as, maxName), quote(as, clip(c.Tool, maxName)), q.past(", "), shownArguments(as, c, maxArguments))
	} else {
		fmt.Fprintf(b, "tools: %s%s\n", q.tools(as), q.past("; "))
		shown := q.Calls[:min(len(q.Calls), maxListedCalls)]
		for i, c := range shown {
			fmt.Fprintf(b, "%d. server %s, tool %s, arguments: %s\n", i+1, c.server(as, maxName), quote(as, clip(c.Tool, maxName)), shownArguments(as, c, maxArguments/len(shown)))
			if !q.sameReasons() {
				writeReasons(b, as, "   ", c.Reasons[:min(len(c.Reasons), maxCallReasons)])
				if n := len(c.Reasons) - maxCallReasons; n > 0 {
					fmt.Fprintf(b, "   and %s\n", text.Plural(n, "more reason"))
				}
			}
		}
		if n := len(q.Calls) - len(shown); n > 0 {
			fmt.Fprintf(b, "and %s\n", text.Plural(n, "more call"))
		}
	}
}

// server writes the name of the call's server, and where it runs.
func (c Call) server(as quoting, limit int) string {
	name := quote(as, clip(c.Server, limit))
	if c.Where == "" {
		return name
	}
	return name + " (" + c.Where + ")"
}

// past counts the calls of the run before those that are asked, after a separator.
func (q *Question) past(separator string) string {
	if q.Command {
		return ""
	}
	past := fmt.Sprintf("%scalls before: %d", separator, q.CallsBefore)
	if n := len(q.Effects) + q.MoreEffects; n > 0 {
		past += fmt.Sprintf(" (%d took effect)", n)
	}
	return past
}

// tools counts the calls of each tool, in the order of their first ones: the code decides
// about the order of calls, and could put another tool behind those that are listed.
func (q *Question) tools(as quoting) string {
	counts := map[string]int{}
	var names []string
	for _, c := range q.Calls {
		name := fmt.Sprintf("%s of %s", quote(as, clip(c.Tool, maxName)), c.server(as, maxName))
		if counts[name]++; counts[name] == 1 {
			names = append(names, name)
		}
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%d x %s", counts[name], name)
	}
	if n := len(names) - maxNamedTools; n > 0 {
		names = append(names[:maxNamedTools], fmt.Sprintf("and calls of %d more", n))
	}
	return strings.Join(names, ", ")
}

func (q *Question) writeEffects(b *strings.Builder, as quoting) {
	if len(q.Effects) == 0 {
		return
	}
	b.WriteString("already took effect:\n")
	shown := q.Effects[max(0, len(q.Effects)-maxEffects):]
	if n := len(q.Effects) + q.MoreEffects - len(shown); n > 0 {
		fmt.Fprintf(b, "- %s\n", text.Plural(n, "other call"))
	}
	for _, effect := range shown {
		fmt.Fprintf(b, "- %s\n", as.line(clip(effect, maxReason)))
	}
}

// cut reports whether brief leaves something of the calls out.
func (q *Question) cut(as quoting) bool {
	if len(q.Calls) > maxListedCalls {
		return true
	}
	return slices.ContainsFunc(q.Calls, func(c Call) bool {
		return !fits(as, c, maxArguments/len(q.Calls)) || clip(c.Server, maxName) != c.Server || clip(c.Tool, maxName) != c.Tool
	})
}

// fits reports whether arguments have at most so many characters as they are shown. They
// may be large, and only \\/ in them gets shorter.
func fits(as quoting, c Call, limit int) bool {
	return len(c.Arguments) <= 2*limit && len(quoteJSON(as, c.Arguments)) <= limit
}

// saidOfCut is room for what is said between and after the ends of arguments.
const saidOfCut = 200

// shownArguments writes arguments of at most so many characters, or both ends of them.
func shownArguments(as quoting, c Call, limit int) string {
	if fits(as, c, limit) {
		return quoteJSON(as, c.Arguments)
	}
	end := max(20, (limit-saidOfCut)/2)
	// An escape has at most 12 characters, and a character comes of at most two bytes.
	first := quoteJSONPart(as, c.Arguments, 0, end+12)
	last := quoteJSONPart(as, c.Arguments, len(c.Arguments)-2*(end+12), math.MaxInt)
	return fmt.Sprintf("%s ... %s (%d bytes, SHA-256 %s)", head(first, end), tail(last, end), len(c.Arguments), c.Digest())
}

// head returns the first n characters of what quoteJSON wrote, but no part of an escape.
func head(s string, n int) string {
	from, _ := escapeAt(s, min(n, len(s)))
	return s[:from]
}

// tail returns the last n characters of it, but no part of an escape, and no underscore
// first: in Markdown it means nothing only after a letter.
func tail(s string, n int) string {
	_, to := escapeAt(s, max(0, len(s)-n))
	return strings.TrimLeft(s[to:], "_")
}

// escapeAt returns the ends of the JSON escape that n is inside of, or n twice.
func escapeAt(s string, n int) (from, to int) {
	i := strings.LastIndexByte(s[:n], '\\')
	if i < 0 || (i+1-len(strings.TrimRight(s[:i+1], `\`)))%2 == 0 { // an even one ends an escape
		return n, n
	}
	if end := i + escapeLength(s[i:]); n < end {
		return i, end
	}
	return n, n
}

// escapeLength returns the length of the JSON escape that s begins with.
func escapeLength(s string) int {
	if strings.HasPrefix(s, `\u`) {
		return len(`\u0000`)
	}
	return len(`\n`)
}
