package record

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolcell/toolcell/bridge/record/secrets"
)

// An excerpt is what is kept of a Text: the ends of it, without secrets.
type excerpt struct {
	hider *secrets.Hider
	most  int

	cut   int64    // bytes that were left out
	rules []string // by which others were blacked out
}

// head returns the first bytes of a text, n at most.
func (e *excerpt) head(text []byte, n int) string {
	window := text[:min(len(text), n+margin)]
	if len(window) < len(text) {
		window = wholeRunes(window)
	}
	e.cut += int64(len(text) - len(window))
	shown := e.hide(window)
	kept := cutTo(shown, n)
	e.cut += int64(len(shown) - len(kept))
	return kept
}

// tail returns the last bytes of a text, n at most.
func (e *excerpt) tail(text []byte, n int) string {
	for i := 0; len(text) > 0 && !utf8.RuneStart(text[0]) && i < utf8.UTFMax; i++ {
		text = text[1:]
		e.cut++
	}
	shown := e.hide(text)
	kept := lastOf(shown, n)
	e.cut += int64(len(shown) - len(kept))
	return kept
}

// ends returns a text, or its head and its tail if it is too long.
func (e *excerpt) ends(text []byte) (head, tail string) {
	shown := e.hide(text)
	if len(shown) <= e.most {
		return shown, ""
	}
	head, tail = cutTo(shown, e.most/2), lastOf(shown, e.most/2)
	e.cut += int64(len(shown) - len(head) - len(tail))
	return head, tail
}

func (e *excerpt) hide(window []byte) string {
	text := string(window)
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
		e.note("not UTF-8")
	}
	text, rules := e.hider.Text(text)
	for _, rule := range rules {
		e.note(rule)
	}
	return text
}

func (e *excerpt) note(rule string) {
	if !slices.Contains(e.rules, rule) {
		e.rules = append(e.rules, rule)
	}
}

// wholeRunes returns b without the beginning of a character at its end.
func wholeRunes(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// cutTo returns the beginning of s, n bytes at most, in whole characters.
func cutTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// lastOf returns the end of s, n bytes at most, in whole characters.
func lastOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	from := len(s) - n
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return s[from:]
}
