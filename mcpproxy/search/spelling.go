package search

import (
	"slices"
	"strings"
)

const (
	typoLength = 4 // shorter words have too many neighbors
	maxLike    = 8
	// maxCorrections bounds the words of one query that are compared with all
	// words of the index.
	maxCorrections = 12
)

// alike is an indexed word that stands for a query word.
type alike struct {
	word   string
	counts float32
}

// synonyms are stems of words that mean the same in the names of tools.
var synonyms = map[string]string{"todo": "task", "task": "todo"}

// synonymCounts is how much a synonym counts.
const synonymCounts = 0.9

// like returns the indexed words that stand for a query word: the word itself,
// or else its synonym, or else words it begins, or else words one edit away.
func (l *lexical) like(word string, budget *int) []alike {
	if l.postings[word] != nil {
		return []alike{{word, 1}}
	}
	if same := synonyms[word]; l.postings[same] != nil {
		return []alike{{same, synonymCounts}}
	}
	var found []alike
	if len(word) >= 3 {
		i, _ := slices.BinarySearch(l.vocab, word)
		for ; i < len(l.vocab) && len(found) < maxLike && strings.HasPrefix(l.vocab[i], word); i++ {
			found = append(found, alike{l.vocab[i], prefixCounts})
		}
	}
	if len(found) == 0 && len(word) >= typoLength && *budget > 0 {
		*budget--
		for _, w := range l.corrections(word) {
			found = append(found, alike{w, typoCounts})
		}
	}
	return found
}

// corrections returns indexed words one edit away, the commonest first.
func (l *lexical) corrections(word string) []string {
	var found []string
	for _, w := range l.vocab {
		if d := len(w) - len(word); d >= -1 && d <= 1 && len(w) >= typoLength && oneEdit(word, w) {
			found = append(found, w)
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return len(l.postings[b]) - len(l.postings[a]) })
	return found[:min(len(found), maxLike)]
}

// oneEdit reports whether a and b differ by one letter added, dropped,
// replaced, or swapped with the next.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if i == len(a) || a[i+1:] == b[i+1:] {
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
