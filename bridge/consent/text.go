package consent

import (
	"fmt"
	"math"
	"slices"
	"strings"
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
	maxName        = 200
)

// Text returns the question as the user of a client reads it. Names, reasons and
// arguments are printable ASCII, and written so that no client shows them as anything but
// themselves (see quote and code). What a server itself asks is in its own language (see message).
func (q *Question) Text() string {
	if q.cut() {
		return q.brief() + "\nto see all: toolcell approvals show " + q.ID
	}
	return q.brief()
}

// brief is the question, with the ends of long arguments.
func (q *Question) brief() string {
	var b strings.Builder
	switch {
	case q.Form != nil:
		fmt.Fprintf(&b, "The MCP server %s asks, not toolcell:\n%s", quote(clip(q.Form.Server, maxName)), message(clip(q.Form.Message, maxMessage)))
		return b.String()
	case len(q.Calls) == 0:
		fmt.Fprintf(&b, "toolcell asks before Python code runs: may it have %s?\n", code(clip(q.Subject, maxArguments)))
		writeReasons(&b, q.Reasons)
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
	q.writeCalls(&b)
	writeReasons(&b, q.allReasons())
	q.writeEffects(&b)
	return strings.TrimSuffix(b.String(), "\n")
}

func writeReasons(b *strings.Builder, reasons []string) {
	for _, reason := range reasons {
		fmt.Fprintf(b, "reason: %s\n", code(clip(reason, maxReason)))
	}
}

// allReasons returns the reasons of all calls, each once, a few of them.
func (q *Question) allReasons() (all []string) {
	for _, c := range q.Calls {
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
func (q *Question) writeCalls(b *strings.Builder) {
	if len(q.Calls) == 1 {
		c := q.Calls[0]
		fmt.Fprintf(b, "server: %s, tool: %s%s\narguments: %s\n", quote(clip(c.Server, maxName)), quote(clip(c.Tool, maxName)), q.past(", "), shownArguments(c, maxArguments))
	} else {
		fmt.Fprintf(b, "tools: %s%s\n", q.tools(), q.past("; "))
		shown := q.Calls[:min(len(q.Calls), maxListedCalls)]
		for i, c := range shown {
			fmt.Fprintf(b, "%d. server %s, tool %s, arguments: %s\n", i+1, quote(clip(c.Server, maxName)), quote(clip(c.Tool, maxName)), shownArguments(c, maxArguments/len(shown)))
		}
		if n := len(q.Calls) - len(shown); n > 0 {
			fmt.Fprintf(b, "and %d more calls\n", n)
		}
	}
}

// past counts the calls of the run before those that are asked, after a separator.
func (q *Question) past(separator string) string {
	if q.Command {
		return ""
	}
	past := fmt.Sprintf("%scalls before: %d", separator, q.CallsBefore)
	if len(q.Effects) > 0 {
		past += fmt.Sprintf(" (%d took effect)", len(q.Effects))
	}
	return past
}

// tools counts the calls of each tool, in the order of their first ones: the code decides
// about the order of calls, and could put another tool behind those that are listed.
func (q *Question) tools() string {
	counts := map[string]int{}
	var names []string
	for _, c := range q.Calls {
		name := fmt.Sprintf("%s of %s", quote(clip(c.Tool, maxName)), quote(clip(c.Server, maxName)))
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

func (q *Question) writeEffects(b *strings.Builder) {
	if len(q.Effects) == 0 {
		return
	}
	b.WriteString("already took effect:\n")
	shown := q.Effects[max(0, len(q.Effects)-maxEffects):]
	if n := len(q.Effects) - len(shown); n > 0 {
		fmt.Fprintf(b, "- %d earlier ones\n", n)
	}
	for _, effect := range shown { // a list: a line of = alone would make a heading of the one above
		fmt.Fprintf(b, "- %s\n", escape(clip(effect, maxReason)))
	}
}

// cut reports whether brief leaves something of the calls out.
func (q *Question) cut() bool {
	if len(q.Calls) > maxListedCalls {
		return true
	}
	return slices.ContainsFunc(q.Calls, func(c Call) bool {
		return !fits(c, maxArguments/len(q.Calls)) || clip(c.Server, maxName) != c.Server || clip(c.Tool, maxName) != c.Tool
	})
}

// TerminalText is Text for a terminal, which knows no Markdown.
func (q *Question) TerminalText() string { return q.unmarked(q.brief()) }

// WholeTerminalText is TerminalText with all arguments.
func (q *Question) WholeTerminalText() string { return q.unmarked(q.wholeText()) }

// unmarked writes a text of the question without what only Markdown needs. What a server
// itself asks stays: a backslash in it is the server's.
func (q *Question) unmarked(s string) string {
	if q.Form != nil {
		return s
	}
	return unmark(s)
}

// wholeText is brief with all arguments.
func (q *Question) wholeText() string {
	var b strings.Builder
	b.WriteString(q.brief())
	if !q.cut() {
		return b.String()
	}
	b.WriteString("\nall arguments:\n")
	for i, c := range q.Calls {
		fmt.Fprintf(&b, "%d. server %s, tool %s, arguments: %s\n", i+1, quote(c.Server), quote(c.Tool), shownArguments(c, maxWhole/len(q.Calls)))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// fits reports whether arguments have at most so many characters as they are shown. They
// may be large, and only \\/ in them gets shorter.
func fits(c Call, most int) bool {
	return len(c.Arguments) <= 2*most && len(quoteJSON(c.Arguments)) <= most
}

// saidOfCut is room for what is said between and after the ends of arguments.
const saidOfCut = 200

// shownArguments writes arguments of at most so many characters, or both ends of them.
func shownArguments(c Call, most int) string {
	if fits(c, most) {
		return quoteJSON(c.Arguments)
	}
	end := max(20, (most-saidOfCut)/2)
	// An escape has at most 12 characters, and a character comes of at most two bytes.
	first := quoteJSONPart(c.Arguments, 0, end+12)
	last := quoteJSONPart(c.Arguments, len(c.Arguments)-2*(end+12), math.MaxInt)
	return fmt.Sprintf("%s ... %s (%d bytes, SHA-256 %s)", head(first, end), tail(last, end), len(c.Arguments), c.Digest())
}

// head returns the first n characters of what quoteJSON wrote, but no part of an escape.
func head(s string, n int) string {
	n = min(n, len(s))
	if i := strings.LastIndexByte(s[:n], '\\'); i >= 0 && n < i+escapeLength(s[i:]) {
		n = i
	}
	return s[:n]
}

// tail returns the last n characters of it, but no part of an escape, and no underscore
// first: it means nothing only after a letter.
func tail(s string, n int) string {
	from := max(0, len(s)-n)
	if i := strings.LastIndexByte(s[:from], '\\'); i >= 0 && from < i+escapeLength(s[i:]) {
		from = i
	}
	return strings.TrimLeft(s[from:], "_")
}

// escapeLength returns the length of the JSON escape that s begins with.
func escapeLength(s string) int {
	if strings.HasPrefix(s, `\u`) {
		return len(`\u0000`)
	}
	return len(`\n`)
}
