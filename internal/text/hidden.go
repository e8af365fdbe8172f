package text

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hidden returns the characters of s that a reader does not see and a model does, each
// once, in order of their first place: control and format characters, overrides of the
// writing direction, tags, and joiners that join nothing. Ends of lines are none.
func Hidden(s string) (found []rune) {
	eachHidden(s, func(_ int, r rune) {
		if r != '\r' && !slices.Contains(found, r) {
			found = append(found, r)
		}
	})
	return found
}

// Visible writes the hidden and control characters of s as escapes, such as \u202e, so
// that a terminal obeys none of them and a reader sees all. It keeps ends of lines and
// tabs.
func Visible(s string) string { return escapeFrom(0, s) }

// VisibleInJSON is Visible for a text that will be written as JSON, which escapes
// control characters by itself.
func VisibleInJSON(s string) string { return escapeFrom(0x80, s) }

// escapeFrom escapes the hidden characters of s from this one on.
func escapeFrom(first rune, s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	var b strings.Builder
	done := 0
	eachHidden(s, func(i int, r rune) {
		if r < first {
			return
		}
		b.WriteString(s[done:i])
		if r > 0xffff {
			fmt.Fprintf(&b, `\U%08x`, r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		done = i + utf8.RuneLen(r)
	})
	if done == 0 {
		return s
	}
	return b.String() + s[done:]
}

// eachHidden calls found for each hidden character and where it is.
func eachHidden(s string, found func(i int, r rune)) {
	if isClean(s) {
		return
	}
	before := rune(-1)
	for i, r := range s {
		switch {
		case r == '\u2028' || r == '\u2029':
			found(i, r) // a terminal may take it for the end of a line
		case isJoiner(r):
			if after, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):]); !joins(before, r, after) {
				found(i, r)
			}
		case IsInvisible(r):
			found(i, r)
		}
		before = r
	}
}

// joins reports whether a joiner or selector has an effect between two characters:
// within an emoji, or within a word of a script that is written with joiners.
func joins(before, joiner, after rune) bool {
	if joiner == '\ufe0e' || joiner == '\ufe0f' {
		keycap := strings.ContainsRune("0123456789#*", before) && after == '\u20e3'
		return keycap || before > 0x7f && (unicode.IsSymbol(before) || unicode.IsPunct(before))
	}
	if before == '\ufe0f' || unicode.IsSymbol(before) && before > 0x7f {
		return joiner == '\u200d' && unicode.IsSymbol(after) && after > 0x7f
	}
	return isJoined(before) && isJoined(after)
}

// isJoined reports whether r is of a script whose letters are joined.
func isJoined(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsMark(r)) && r >= 0x0600 &&
		!unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}
