package policy

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"
	"github.com/toolcell/toolcell/mcpproxy/match"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// maxGlob bounds a glob, in bytes; it is also more than any name has.
const maxGlob = 512

// A glob is a pattern of names: * stands for any text, ? for one character.
// Case does not count, so that a deny cannot be missed by it.
type glob struct {
	text  string
	runes []rune
}

func parseGlob(at toml.Key, pattern string) (glob, error) {
	switch {
	case strings.TrimSpace(pattern) == "":
		return glob{}, &fault{at, "a glob is empty; * matches everything"}
	case strings.ContainsAny(pattern, `[]{}!\`) || strings.ContainsFunc(pattern, unicode.IsControl):
		return glob{}, &fault{at, fmt.Sprintf("the glob %q is not understood: only * (any text) and ? (one character) have a meaning, and []{}!\\ may not be in it", pattern)}
	case len(pattern) > maxGlob:
		return glob{}, &fault{at, fmt.Sprintf("the glob %q… has more than %d bytes", text.Clip(pattern, 40), maxGlob)}
	}
	return glob{pattern, []rune(strings.ToLower(pattern))}, nil
}

func (g glob) matches(name string) bool {
	if name == "" {
		return false
	}
	return match.Glob(g.runes, []rune(strings.ToLower(name)))
}

// everything reports whether the glob matches all names.
func (g glob) everything() bool { return strings.Trim(g.text, "*") == "" }

// weight says how much a glob says about a name: the more characters it fixes
// the more, and most if it fixes all.
func (g glob) weight() int {
	fixed := 0
	for _, c := range g.runes {
		if c != '*' && c != '?' {
			fixed++
		}
	}
	if fixed == len(g.runes) {
		fixed += maxGlob
	}
	return fixed
}

func firstMatch(globs []glob, t Tool) (glob, bool) {
	for _, g := range globs {
		if g.matches(t.Name) || g.matches(t.Alias) {
			return g, true
		}
	}
	return glob{}, false
}

func listed(globs []glob) string {
	texts := make([]string, len(globs))
	for i, g := range globs {
		texts[i] = g.text
	}
	if len(texts) == 0 {
		return "no tools"
	}
	return text.QuoteList(texts, 10)
}
