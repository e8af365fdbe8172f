// Package text makes text from outside fit to show: it removes what a terminal
// would obey and what a reader cannot see, cuts it, quotes it, and finds similar
// names.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes foreign text fit for one line of a message: valid UTF-8, no
// control characters (a terminal would obey them), at most n bytes.
func Printable(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(Clip(s, n), "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// Clip cuts s to at most n bytes, never inside a character.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
