package text

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSummary is how many characters of a description are passed on in a list.
const maxSummary = 400

// Clean removes from untrusted text all that a terminal would obey or that a person would not
// see: escape sequences, control characters, overrides of the writing direction, and invisible
// characters, in which instructions to a model can be hidden (Unicode tags, variation
// selectors).
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	var b strings.Builder
	joiners := 0 // in a row
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		before := b.Len()
		switch {
		case r == '\x1b' || r == '\u009b':
			n = escapeSequence(s[i:], n)
		case r == '\r':
			if !strings.HasPrefix(s[i+n:], "\n") {
				b.WriteByte('\n')
			}
		case r == '\u2028' || r == '\u2029':
			b.WriteByte('\n')
		case isJoiner(r):
			if joiners++; joiners <= 2 {
				b.WriteRune(r)
			}
			i += n
			continue
		case !IsInvisible(r):
			b.WriteRune(r) // a byte that is no UTF-8 becomes U+FFFD
		}
		if b.Len() > before { // a removed character does not end a row of joiners
			joiners = 0
		}
		i += n
	}
	return b.String()
}

// isClean reports whether s is ASCII that needs no cleaning.
func isClean(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// escapeSequence returns the length of the terminal sequence that s begins with
// (ECMA-48); its first character has n bytes.
func escapeSequence(s string, n int) int {
	kind := byte('[') // what U+009B is by itself
	if s[0] == '\x1b' {
		if len(s) == n {
			return n
		}
		kind = s[n]
		n++
	}
	switch kind {
	case '[': // parameters, then one letter
		for i := n; i < len(s) && i < n+64; i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x3f {
				break
			}
		}
		return n
	case ']', 'P', '_', '^', 'X': // a text up to BEL or ESC \
		if i := strings.IndexAny(s[n:], "\a\x1b"); i >= 0 {
			return n + i + 1 // the backslash stays: it may be of something else
		}
		return n
	}
	if kind >= utf8.RuneSelf {
		return n - 1
	}
	return n
}

// isJoiner is for invisible characters that Persian, Hindi and emoji are written
// with. A long row of them is no writing.
func isJoiner(r rune) bool {
	return r == '\u200c' || r == '\u200d' || r == '\ufe0e' || r == '\ufe0f'
}

// IsInvisible reports whether a character has no place in a text to read.
func IsInvisible(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || isJoiner(r):
		return false
	case r != '\u061c' && r >= 0x600 && r < 0x900:
		return unicode.IsControl(r) // Arabic number signs are format characters that can be seen
	case r == '\u034f', r == '\u115f', r == '\u1160', r == '\u3164', r == '\uffa0', r == '\u17b4', r == '\u17b5', r >= 0x180b && r <= 0x180f:
		return true // fillers and selectors that show as nothing
	case r == '\u2065', r >= 0xfff0 && r <= 0xfff8, r >= 0xe0000 && r <= 0xe0fff:
		return true // of these, also those that Unicode has not assigned show as nothing
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r)
}

// CutAfter cuts text after n characters and says how many are gone.
func CutAfter(s string, n int) string {
	cut, rest := SplitAt(s, n)
	if rest == "" {
		return s
	}
	return fmt.Sprintf("%s\n[… %d more characters were cut]", cut, utf8.RuneCountInString(rest))
}

// Summary returns the first sentences of s that fit into maxSummary characters,
// at least part of one. A short text stays whole.
func Summary(s string) string {
	cut, rest := SplitAt(s, maxSummary)
	if rest == "" {
		return s
	}
	end := -1
	for i, r := range cut {
		switch r {
		case '\n':
			if strings.HasPrefix(cut[i+1:], "\n") {
				end = i
			}
		case '.', '!', '?':
			if next := i + 1; next == len(cut) || cut[next] == ' ' || cut[next] == '\n' {
				end = next
			}
		case '。', '！', '？':
			end = i + utf8.RuneLen(r)
		}
	}
	if end <= 0 {
		end = strings.LastIndexAny(cut, " \n\t")
	}
	if end <= 0 {
		end = len(cut)
	}
	return strings.TrimSpace(cut[:end]) + " […]"
}

// SplitAt divides s after n characters.
func SplitAt(s string, n int) (head, rest string) {
	if len(s) <= n {
		return s, ""
	}
	for i := range s {
		if n == 0 {
			return s[:i], s[i:]
		}
		n--
	}
	return s, ""
}

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
