package consent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds on the text of a question, in characters.
const (
	maxArguments   = 2000 // of all calls together
	shownEnd       = 900  // of arguments that are longer: so much of each end
	maxListedCalls = 10
	maxEffects     = 5
	maxReason      = 400
	maxName        = 200
)

// Text returns the question as the user reads it. Names, reasons and arguments are
// written so that no client shows them as anything but themselves (see quote).
func (q *Question) Text() string {
	var b strings.Builder
	switch {
	case q.Form != nil:
		fmt.Fprintf(&b, "The MCP server %s asks, not toolcell:\n%s", quote(clip(q.Form.Server, maxName)), q.Form.Message)
		return b.String()
	case len(q.Calls) == 0:
		fmt.Fprintf(&b, "toolcell asks before Python code runs: may it have %s?\n", escape(q.Subject))
		writeReasons(&b, q.Reasons)
		return strings.TrimSuffix(b.String(), "\n")
	case len(q.Calls) == 1:
		c := q.Calls[0]
		fmt.Fprintf(&b, "toolcell asks: may Python code make this call?\nserver: %s\ntool: %s\n", quote(clip(c.Server, maxName)), quote(clip(c.Tool, maxName)))
	default:
		fmt.Fprintf(&b, "toolcell asks: may Python code make these %d calls?\n", len(q.Calls))
	}
	writeReasons(&b, q.allReasons())
	q.writePast(&b)
	q.writeCalls(&b)
	return strings.TrimSuffix(b.String(), "\n")
}

func writeReasons(b *strings.Builder, reasons []string) {
	for _, reason := range reasons {
		fmt.Fprintf(b, "reason: %s\n", escape(clip(reason, maxReason)))
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

func (q *Question) writePast(b *strings.Builder) {
	fmt.Fprintf(b, "calls before: %d\n", q.CallsBefore)
	if len(q.Effects) == 0 {
		return
	}
	b.WriteString("already took effect:\n")
	shown := q.Effects[max(0, len(q.Effects)-maxEffects):]
	if n := len(q.Effects) - len(shown); n > 0 {
		fmt.Fprintf(b, "  (%d earlier ones)\n", n)
	}
	for _, effect := range shown {
		fmt.Fprintf(b, "  %s\n", escape(clip(effect, maxReason)))
	}
}

func (q *Question) writeCalls(b *strings.Builder) {
	if len(q.Calls) == 1 {
		fmt.Fprintf(b, "arguments: %s\n", shownArguments(q.Calls[0], maxArguments))
	} else {
		shown := q.Calls[:min(len(q.Calls), maxListedCalls)]
		for i, c := range shown {
			fmt.Fprintf(b, "%d. server %s, tool %s, arguments: %s\n", i+1, quote(clip(c.Server, maxName)), quote(clip(c.Tool, maxName)), shownArguments(c, maxArguments/len(shown)))
		}
		if n := len(q.Calls) - len(shown); n > 0 {
			fmt.Fprintf(b, "and %d more calls\n", n)
		}
	}
	if q.cut() {
		fmt.Fprintf(b, "to see all: toolcell approvals show %s\n", q.ID)
	}
}

// cut reports whether Text leaves something of the calls out.
func (q *Question) cut() bool {
	if len(q.Calls) > maxListedCalls {
		return true
	}
	return slices.ContainsFunc(q.Calls, func(c Call) bool {
		return len(quoteJSON(c.Arguments)) > maxArguments/len(q.Calls)
	})
}

// shownArguments writes arguments, or their ends if they are long.
func shownArguments(c Call, most int) string {
	s := quoteJSON(c.Arguments)
	if len(s) <= most {
		return s
	}
	end := min(shownEnd, max(20, most/2-100))
	sum := sha256.Sum256(c.Arguments)
	return fmt.Sprintf("%s … %s (%d characters, SHA-256 %s)", s[:end], s[len(s)-end:], len(s), hex.EncodeToString(sum[:]))
}

// WholeText is Text with all arguments, whatever their length.
func (q *Question) WholeText() string {
	var b strings.Builder
	b.WriteString(q.Text())
	if !q.cut() {
		return b.String()
	}
	b.WriteString("\nall arguments:\n")
	for i, c := range q.Calls {
		fmt.Fprintf(&b, "%d. server %s, tool %s, arguments: %s\n", i+1, quote(c.Server), quote(c.Tool), quoteJSON(c.Arguments))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// quoteJSON writes valid, compact JSON with its strings as quote writes them.
func quoteJSON(raw []byte) string {
	var b strings.Builder
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			b.WriteByte(raw[i])
			i++
			continue
		}
		end := i + 1
		for end < len(raw) && raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end, len(raw))
		b.WriteByte('"')
		writeJSONString(&b, raw[i+1:end])
		b.WriteByte('"')
		i = end + 1
	}
	return b.String()
}

// writeJSONString writes the inside of a JSON string: its own escapes stay, but for
// those that Markdown would take away.
func writeJSONString(b *strings.Builder, s []byte) {
	for len(s) > 0 {
		if s[0] == '\\' && len(s) > 1 {
			switch s[1] {
			case '"', '\\', '/':
				writeRune(b, rune(s[1]))
			default:
				b.Write(s[:2])
			}
			s = s[2:]
			continue
		}
		r, n := utf8.DecodeRune(s)
		writeRune(b, r)
		s = s[n:]
	}
}

// quote writes a text as a JSON string of printable ASCII, in which nothing is
// Markdown, HTML or a link: a client that shows it as one would load a picture, and
// tell its server what is in the arguments.
func quote(s string) string { return `"` + escape(s) + `"` }

// escape is quote without the quotes.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		writeRune(&b, r)
	}
	return b.String()
}

// marks are the printable characters that Markdown, HTML and links are made of.
const marks = "\"\\`*[]<>!|~&#@"

// writeRune writes a character: what is not printable ASCII, and what Markdown would
// act upon, by its number.
func writeRune(b *strings.Builder, r rune) {
	switch {
	case r >= ' ' && r <= '~' && !strings.ContainsRune(marks, r) && !wouldMark(b.String(), r):
		b.WriteRune(r)
	case r > 0xFFFF:
		high, low := utf16.EncodeRune(r)
		fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
	default:
		fmt.Fprintf(b, `\u%04x`, r)
	}
}

// wouldMark reports whether r would mean something after what is written: :// and www.
// are links by themselves (GitHub Flavored Markdown, Autolinks), and an underscore that
// no letter stands before begins emphasis.
func wouldMark(written string, r rune) bool {
	last := written[max(0, len(written)-3):]
	switch r {
	case '/':
		return strings.HasSuffix(last, ":/")
	case '.':
		return strings.EqualFold(last, "www")
	case '_':
		return last == "" || !isWord(last[len(last)-1])
	}
	return false
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// clip cuts a text to n characters.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n]) + " (cut)"
}
