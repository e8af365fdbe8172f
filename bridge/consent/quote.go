package consent

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/toolcell/toolcell/mcpproxy/text"
)

// quoteJSON writes valid, compact JSON with its strings as quote writes them.
func quoteJSON(raw []byte) string {
	var b strings.Builder
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			if raw[i] > ' ' && raw[i] <= '~' { // all that compact JSON has there
				b.WriteByte(raw[i])
			}
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

// marks are the printable characters that Markdown, HTML, links and formulas are made
// of. In a formula, such as $a%b$, a client would leave the b out.
const marks = "\"\\`*[]<>!|~&#@$^"

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
// are links by themselves (GitHub Flavored Markdown, Autolinks), an underscore that no
// letter stands before begins emphasis, and some dialects mark or hide what is between
// two double signs.
func wouldMark(written string, r rune) bool {
	last := written[max(0, len(written)-3):]
	switch r {
	case '=', '+', '%':
		return strings.HasSuffix(last, string(r))
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

// message writes what a server asks so that it stays text of the server, in whatever
// language: without what a terminal would obey or nobody would see, and without pictures,
// HTML and links that look like others.
func message(s string) string {
	s = text.Clean(s)
	return strings.NewReplacer("[", `\u005b`, "<", `\u003c`).Replace(s)
}

// clip cuts a text to n characters.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n]) + " (cut)"
}
