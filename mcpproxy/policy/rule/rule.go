// Package rule has what matchers of several sections of a policy file need: globs, words to choose
// from, texts that name variables, and reasons to ask the user.
package rule

import (
	"fmt"
	"slices"

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
