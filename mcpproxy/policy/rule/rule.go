// Package rule has what matchers of several sections of a policy file need: globs, words to choose
// from, texts that name variables, and reasons to ask the user.
package rule

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/toolcell/toolcell/internal/text"
)

// Choice takes one of some words.
func Choice[T ~string](word []byte, words ...T) (T, error) {
	if chosen := T(word); slices.Contains(words, chosen) {
		return chosen, nil
	}
	known := make([]string, len(words))
	for i, w := range words {
		known[i] = string(w)
	}
	return "", fmt.Errorf("%q is none of %s", text.Bound(string(word), 40), text.QuoteList(known, len(known)))
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
var reference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{env:([^}]*)(\}?)`) })

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
