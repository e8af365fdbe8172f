package consent

import "strings"

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
