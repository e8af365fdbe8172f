// Package rule has what matchers of several sections of a policy file need: globs, words to choose
// from, texts that name variables, and reasons to ask the user.
package rule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolcell/toolcell/internal/text"
)

// Choice takes one of some words.
func Choice[T ~string](word []byte, words ...T) (T, error) {
	if chosen := T(word); slices.Contains(words, chosen) {
		return chosen, nil
	}
	return "", fmt.Errorf("%q is none of %s", text.Bound(string(word), 40), text.QuoteList(words, len(words)))
}

// Reasons say why the user has to be asked, each once, in the order of the rules. All are
// kept: the user allows what they name.
type Reasons []string

// Add adds a reason.
func (r *Reasons) Add(reason string) {
	if !slices.Contains(*r, reason) {
		*r = append(*r, reason)
	}
}

// reference finds the beginning of a variable, its name, and its end.
var reference = text.Pattern(`\$\{env:([^}]*)(\}?)`)

// Expand replaces each ${env:NAME} by the variable of toolcell's own environment.
// It returns what of the value is secret: those variables, or all of it.
func Expand(value string, lookup func(string) (string, bool)) (expanded string, secrets []string, err error) {
	expanded, err = text.Expand(value, reference(), func(match []string) (string, error) {
		if match[2] == "" {
			return "", errors.New("a ${env: has no }")
		}
		v, _ := lookup(match[1])
		if v == "" {
			return "", fmt.Errorf("the variable %s is not set where toolcell runs", text.Bound(match[1], 80))
		}
		secrets = append(secrets, v)
		return v, nil
	})
	if err != nil {
		return "", nil, err
	}
	if strings.ContainsFunc(expanded, unicode.IsControl) {
		return "", nil, errors.New("its value cannot stand in a header")
	}
	if secrets == nil { // without the scheme, such as Bearer
		secrets = []string{expanded[strings.IndexByte(expanded, ' ')+1:]}
	}
	return expanded, secrets, nil
}

// IsVariable reports whether a variable may have this name.
func IsVariable(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9')
	}) && (s[0] < '0' || s[0] > '9')
}

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
