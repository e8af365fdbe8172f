package rule

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/toolcell/toolcell/internal/text"
)

// maxGlob bounds a glob, in bytes; it is also more than any name has.
const maxGlob = 512

// A Glob is a pattern of names: * stands for any text, ? for one character.
// Case does not count, so that a deny cannot be missed by it.
type Glob struct {
	text  string
	runes []rune
}

// ParseGlob reads a glob.
func ParseGlob(pattern string) (Glob, error) {
	switch {
	case strings.TrimSpace(pattern) == "":
		return Glob{}, errors.New("a glob is empty; * matches everything")
	case strings.ContainsAny(pattern, `[]{}!\`) || strings.ContainsFunc(pattern, unicode.IsControl):
		return Glob{}, fmt.Errorf("the glob %q is not understood: only * (any text) and ? (one character) have a meaning, "+
			"and []{}!\\ may not be in it", pattern)
	case len(pattern) > maxGlob:
		return Glob{}, fmt.Errorf("the glob %q… has more than %d bytes", text.Clip(pattern, 40), maxGlob)
	}
	return newGlob(pattern), nil
}

// UnmarshalText is ParseGlob.
func (g *Glob) UnmarshalText(pattern []byte) (err error) {
	*g, err = ParseGlob(string(pattern))
	return err
}

func newGlob(pattern string) Glob { return Glob{pattern, []rune(strings.ToLower(pattern))} }

// Everything is the glob that matches all names.
func Everything() Glob { return newGlob("*") }

// String returns the glob as the file has it.
func (g Glob) String() string { return g.text }

// Matches reports whether the glob matches all of a name. None matches the empty one.
func (g Glob) Matches(name string) bool {
	if name == "" {
		return false
	}
	return text.Glob(g.runes, []rune(strings.ToLower(name)))
}

// Is reports whether the glob is a name as it is written.
func (g Glob) Is(name string) bool { return name != "" && g.text == name }

// IsEverything reports whether the glob matches all names.
func (g Glob) IsEverything() bool { return strings.Trim(g.text, "*") == "" }

// IsName reports whether the glob has no wildcards, and so is one name.
func (g Glob) IsName() bool { return !strings.ContainsAny(g.text, "*?") }

// Weight says how much a glob says about a name: the more characters it fixes
// the more, and most if it fixes all.
func (g Glob) Weight() int {
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
