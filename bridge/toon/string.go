package toon

import (
	"fmt"
	"strings"
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
	return looksNumeric(s)
}

// isControl reports whether r must be escaped. Tab is one of them, so
// leading and trailing tabs need no rule of their own.
func isControl(r rune) bool { return r < 0x20 }

// looksNumeric reports whether s is an optional sign, digits, and
// optionally a fraction and an exponent.
func looksNumeric(s string) bool {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	s, ok := skipDigits(s)
	if !ok {
		return false
	}
	if strings.HasPrefix(s, ".") {
		if s, ok = skipDigits(s[1:]); !ok {
			return false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if s, ok = skipDigits(s); !ok {
			return false
		}
	}
	return s == ""
}

// skipDigits returns what follows the leading digits of s, and whether
// there was at least one.
func skipDigits(s string) (rest string, ok bool) {
	rest = strings.TrimLeft(s, "0123456789")
	return rest, len(rest) < len(s)
}

// keyText encodes a key, bare only if it is an identifier that may hold dots
// (§7.3).
func keyText(key string) string {
	for i, r := range key {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r != '.' && (r < '0' || r > '9')) {
			return quoted(key)
		}
	}
	if key == "" {
		return `""`
	}
	return key
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
