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
	known := make([]string, len(words))
	for i, w := range words {
		known[i] = string(w)
	}
	return "", fmt.Errorf("%q is none of %s", text.Bound(string(word), 40), text.QuoteList(known, len(known)))
}
