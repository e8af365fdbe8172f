package toon

import (
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// stringLeaf encodes a string value, quoted only where it could be read as
// something else (§7.2).
func stringLeaf(s string) leaf {
	if needsQuotes(s) {
		return leaf(quoted(s))
	}
	return leaf(s)
}

func needsQuotes(s string) bool {
	switch s {
	case "", "true", "false", "null":
		return true
	}
	if s[0] == ' ' || s[len(s)-1] == ' ' || s[0] == '-' || s[0] == '#' {
		return true
	}
	if strings.ContainsAny(s, ",:\"\\[]{}") || strings.ContainsFunc(s, isControl) {
		return true
	}
	return (s[0] == '+' || s[0] >= '0' && s[0] <= '9') && numeric().MatchString(s)
}

// isControl reports whether r must be escaped. Tab is one of them, so
// leading and trailing tabs need no rule of their own.
func isControl(r rune) bool { return r < 0x20 }

// numeric finds an optional sign, digits, and optionally a fraction and an exponent.
var numeric = text.Pattern(`^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// bareKey finds an identifier that may hold dots.
var bareKey = text.Pattern(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// keyText encodes a key, quoted if it could be something else (§7.3).
func keyText(key string) string {
	if bareKey().MatchString(key) {
		return key
	}
	return quoted(key)
}

// quoted escapes as §7.1 lists; all other characters stay themselves.
func quoted(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '\\' || r == '"':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case isControl(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
