package mcpproxy

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable makes foreign text fit for one line of a message: valid UTF-8, no
// control characters (a terminal would obey them), at most n bytes.
func printable(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(clip(s, n), "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// clip cuts s to at most n bytes, never inside a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
