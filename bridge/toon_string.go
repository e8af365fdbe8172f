package bridge

import (
	"fmt"
	"strings"
)

// toonString encodes a string value, quoted only where it could be read as
// something else (§7.2).
func toonString(s string) toonLeaf {
	if toonNeedsQuotes(s) {
		return toonLeaf(toonQuote(s))
	}
	return toonLeaf(s)
}

func toonNeedsQuotes(s string) bool {
	switch s {
	case "", "true", "false", "null":
		return true
	}
	if s[0] == ' ' || s[len(s)-1] == ' ' || s[0] == '-' || s[0] == '#' {
		return true
	}
	if strings.ContainsAny(s, ",:\"\\[]{}") || strings.ContainsFunc(s, toonIsControl) {
		return true
	}
	return toonLooksNumeric(s)
}

// toonIsControl reports whether r must be escaped. Tab is one of them, so
// leading and trailing tabs need no rule of their own.
func toonIsControl(r rune) bool { return r < 0x20 }

// toonLooksNumeric reports whether s is an optional sign, digits, and
// optionally a fraction and an exponent.
func toonLooksNumeric(s string) bool {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	s, ok := toonSkipDigits(s)
	if !ok {
		return false
	}
	if strings.HasPrefix(s, ".") {
		if s, ok = toonSkipDigits(s[1:]); !ok {
			return false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if s, ok = toonSkipDigits(s); !ok {
			return false
		}
	}
	return s == ""
}

// toonSkipDigits returns what follows the leading digits of s, and whether
// there was at least one.
func toonSkipDigits(s string) (rest string, ok bool) {
	rest = strings.TrimLeft(s, "0123456789")
	return rest, len(rest) < len(s)
}

// toonKey encodes a key, bare only if it is an identifier that may hold dots
// (§7.3).
func toonKey(key string) string {
	for i, r := range key {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r != '.' && (r < '0' || r > '9')) {
			return toonQuote(key)
		}
	}
	if key == "" {
		return `""`
	}
	return key
}

// toonQuote escapes as §7.1 lists; all other characters stay themselves.
func toonQuote(s string) string {
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
		case toonIsControl(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
