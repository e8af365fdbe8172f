package consent

import (
	"math"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/toolcell/toolcell/internal/text"
)

// A quoting writes what is not toolcell's own text so that its reader takes it for nothing
// else: [markdown] for clients, [terminal] for a terminal. All but a message becomes
// printable ASCII.
type quoting interface {
	// writeInString writes a character of a JSON string, after what is written.
	writeInString(b *strings.Builder, r rune)
	// line quotes one that may have quotes itself, such as a rule of a policy.
	line(s string) string
	// message keeps what a server asks in its own language.
	message(s string) string
	// joinsLines reports whether what is known of a call's tool follows its reason on one line.
	joinsLines() bool
}

// quote writes a text as a JSON string.
func quote(as quoting, s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		as.writeInString(&b, r)
	}
	b.WriteByte('"')
	return b.String()
}

// quoteJSON writes valid, compact JSON with its strings as quote writes them.
func quoteJSON(as quoting, raw []byte) string { return quoteJSONPart(as, raw, 0, math.MaxInt) }

// quoteJSONPart writes what begins at an offset, until that has so many characters. Escapes
// of strings stay, but for those of printable characters, which are written as any other.
func quoteJSONPart(as quoting, raw []byte, from, limit int) string {
	var b strings.Builder
	inString := false
	for i := 0; i < len(raw) && b.Len() < limit; {
		c, n := raw[i], 1
		switch escaped := inString && c == '\\' && i+1 < len(raw); {
		case escaped:
			n = 2
			if i < from {
				break
			}
			if strings.IndexByte(`"\/`, raw[i+1]) >= 0 {
				as.writeInString(&b, rune(raw[i+1]))
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
			as.writeInString(&b, r)
		case c > ' ' && c <= '~': // all that compact JSON has there
			b.WriteByte(c)
		}
		i += n
	}
	return b.String()
}

func isPrintable(r rune) bool { return r >= ' ' && r <= '~' }

// writeEscape writes a character by its number, as JSON does.
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

// cleanMessage leaves out what a terminal would obey or a reader would not see, and empty
// lines that would push out of sight who asks.
func cleanMessage(s string) string {
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
	return b.String()
}

// cutMark ends a text that was cut.
const cutMark = " (cut)"

// clip cuts a text to n characters.
func clip(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + cutMark
		}
		n--
	}
	return s
}

// terminal writes for a terminal, which shows printable ASCII as it is.
type terminal struct{}

func (t terminal) writeInString(b *strings.Builder, r rune) {
	if r == '"' {
		b.WriteByte('\\')
	}
	t.write(b, r)
}

func (t terminal) line(s string) string {
	var b strings.Builder
	for _, r := range s {
		t.write(&b, r)
	}
	return b.String()
}

func (terminal) message(s string) string { return cleanMessage(s) }

func (terminal) joinsLines() bool { return false }

// write writes a character. A backslash is two: alone it begins an escape.
func (terminal) write(b *strings.Builder, r rune) {
	switch {
	case r == '\\':
		b.WriteString(`\\`)
	case isPrintable(r):
		b.WriteRune(r)
	default:
		writeEscape(b, r)
	}
}
