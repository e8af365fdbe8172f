package consent

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/toolcell/toolcell/mcpproxy/text"
)

// quoteJSON writes valid, compact JSON with its strings as quote writes them.
func quoteJSON(raw []byte) string { return quoteJSONPart(raw, 0, math.MaxInt) }

// quoteJSONPart writes what begins at an offset, until that has so many characters. The
// escapes of strings stay, but for those that Markdown would take away.
func quoteJSONPart(raw []byte, from, most int) string {
	var b strings.Builder
	inString := false
	for i := 0; i < len(raw) && b.Len() < most; {
		c, n := raw[i], 1
		switch escaped := inString && c == '\\' && i+1 < len(raw); {
		case escaped:
			n = 2
			if i < from {
				break
			}
			if strings.IndexByte(`"\/`, raw[i+1]) >= 0 {
				writeRune(&b, rune(raw[i+1]))
			} else {
				b.Write(raw[i : i+n])
			}
		case c == '"':
			inString = !inString
			if i >= from {
				b.WriteByte(c)
			}
		case i < from:
		case inString:
			var r rune
			r, n = utf8.DecodeRune(raw[i:])
			writeRune(&b, r)
		case c > ' ' && c <= '~': // all that compact JSON has there
			b.WriteByte(c)
		}
		i += n
	}
	return b.String()
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

// code writes a text as Markdown's inline code, which a reader of plain text understands too.
// Rules of a policy have brackets, quotes and stars, and mean nothing in there. Not every
// client knows inline code, so links, pictures and HTML are broken up even so, as quote does.
func code(s string) string {
	if s == "" {
		return quote(s) // two backticks would begin code that ends at the next two
	}
	var b strings.Builder
	b.WriteByte('`')
	runes := append([]rune(s), 0)
	for i, r := range runes[:len(runes)-1] {
		if isCode(b.String(), r, runes[i+1]) {
			b.WriteRune(r)
		} else {
			writeEscape(&b, r)
		}
	}
	b.WriteByte('`')
	return b.String()
}

// isCode reports whether a character may stand in inline code as it is, after what is
// written and before what is next.
func isCode(written string, r, next rune) bool {
	switch r {
	case '"', '*', '>', '!', '~', ']', '_', '=':
		return true
	case '<': // before anything else it may begin a tag
		return next == ' ' || next == '='
	case '[': // ![picture], [text][name]
		return !strings.HasSuffix(written, "!") && !afterBracket(written)
	case '(', ':': // [text](address), [name]: address
		return !afterBracket(written)
	}
	return isPlain(written, r)
}

func afterBracket(written string) bool {
	return strings.HasSuffix(strings.TrimRight(written, " "), "]")
}

// marks are the printable characters that Markdown, HTML, links and formulas are made
// of. In a formula, such as $a%b$, a client would leave the b out.
const marks = "\"\\`*[]<>!|~&#@$^"

// writeRune writes a character: what is not printable ASCII, and what Markdown would
// act upon, by its number.
func writeRune(b *strings.Builder, r rune) {
	if isPlain(b.String(), r) {
		b.WriteRune(r)
	} else {
		writeEscape(b, r)
	}
}

func isPlain(written string, r rune) bool {
	return r >= ' ' && r <= '~' && !strings.ContainsRune(marks, r) && !wouldMark(written, r)
}

func writeEscape(b *strings.Builder, r rune) {
	if r <= 0xFFFF {
		writeNumber(b, r)
		return
	}
	high, low := utf16.EncodeRune(r)
	writeNumber(b, high)
	writeNumber(b, low)
}

// writeNumber is fmt.Fprintf(b, `\u%04x`, r) in a tenth of the time: arguments may have
// millions of such characters.
func writeNumber(b *strings.Builder, r rune) {
	const digits = "0123456789abcdef"
	b.WriteString(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		b.WriteByte(digits[r>>shift&0xf])
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

// unmark writes what quote, escape, code and quoteJSON wrote for a terminal: printable ASCII
// as itself, in strings as JSON has it. Every backslash in s begins an escape, and no string
// goes on in the next line, so what is shown stays unambiguous.
func unmark(s string) string {
	var b strings.Builder
	inString := false
	for i := 0; i < len(s); {
		n := 1
		if s[i] == '\\' {
			n = min(escapeLength(s[i:]), len(s)-i)
			writeUnmarked(&b, s[i:i+n], inString)
		} else {
			inString = inString != (s[i] == '"') && s[i] != '\n'
			b.WriteByte(s[i])
		}
		i += n
	}
	return b.String()
}

// writeUnmarked writes one escape, or the printable character that it stands for.
func writeUnmarked(b *strings.Builder, escaped string, inString bool) {
	code, isNumber := strings.CutPrefix(escaped, `\u`)
	r, err := strconv.ParseUint(code, 16, 16)
	if !isNumber || err != nil || r < ' ' || r > '~' {
		b.WriteString(escaped)
		return
	}
	if r == '\\' || r == '"' && inString {
		b.WriteByte('\\')
	}
	b.WriteByte(byte(r))
}

// message writes what a server asks so that it stays text of the server, in whatever
// language: without what a terminal would obey or a reader would not see, and without pictures,
// HTML and links that look like others. Empty lines do not push out of sight who asks.
func message(s string) string {
	var b strings.Builder
	empty := 0
	for line := range strings.Lines(text.Clean(s)) {
		if empty++; strings.TrimSpace(line) != "" {
			empty = 0
		}
		if empty < 2 {
			b.WriteString(line)
		}
	}
	s = b.String()
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
