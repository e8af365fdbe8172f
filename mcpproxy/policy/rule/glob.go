package rule

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolcell/toolcell/internal/text"
)

// maxGlob bounds a glob, in bytes; it is also more than any name has.
const maxGlob = 512

// A Glob is a pattern of names: * stands for any text, ? for one character.
// Case does not count, so that a deny cannot be missed by it.
type Glob string

// Everything is the glob that matches all names.
const Everything Glob = "*"

// ParseGlob reads a glob.
func ParseGlob(pattern string) (Glob, error) {
	switch {
	case strings.TrimSpace(pattern) == "":
		return "", errors.New("a glob is empty; * matches everything")
	case strings.ContainsAny(pattern, `[]{}!\`) || strings.ContainsFunc(pattern, unicode.IsControl):
		return "", fmt.Errorf("the glob %q is not understood: only * (any text) and ? (one character) have a meaning, "+
			"and []{}!\\ may not be in it", pattern)
	case len(pattern) > maxGlob:
		return "", fmt.Errorf("the glob %q… has more than %d bytes", text.Clip(pattern, 40), maxGlob)
	}
	return Glob(pattern), nil
}

// UnmarshalText is ParseGlob.
func (g *Glob) UnmarshalText(pattern []byte) (err error) {
	*g, err = ParseGlob(string(pattern))
	return err
}

// Matches reports whether the glob matches all of a name. None matches the empty one.
func (g Glob) Matches(name string) bool {
	return name != "" && text.Glob(strings.ToLower(string(g)), strings.ToLower(name))
}

// Is reports whether the glob is a name as it is written.
func (g Glob) Is(name string) bool { return name != "" && string(g) == name }

// IsEverything reports whether the glob matches all names.
func (g Glob) IsEverything() bool { return strings.Trim(string(g), "*") == "" }

// IsName reports whether the glob has no wildcards, and so is one name.
func (g Glob) IsName() bool { return !strings.ContainsAny(string(g), "*?") }

// Weight says how much a glob says about a name: the more characters it fixes
// the more, and most if it fixes all.
func (g Glob) Weight() int {
	fixed := utf8.RuneCountInString(strings.NewReplacer("*", "", "?", "").Replace(string(g)))
	if g.IsName() {
		fixed += maxGlob
	}
	return fixed
}
