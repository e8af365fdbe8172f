package mcpproxy

import (
	"encoding/json"
	"math"
	"slices"
	"sort"
	"strings"
)

// The weights of the fields: a word in a tool's name says more about it than
// one of the many words in its description.
const (
	weightTool        = 5.0
	weightTitle       = 3.0
	weightServer      = 2.5
	weightParameter   = 1.2
	weightDescription = 1.0
	weightAbout       = 0.4 // the server's description, the same for all its tools
)

// BM25's usual constants: k1 bounds the gain of repeating a word, b is how much
// a long text counts against a document.
const (
	bm25K1 = 1.2
	bm25B  = 0.6
)

// A query word no tool has is replaced by words like it, which count less.
const (
	prefixCounts = 0.6
	typoCounts   = 0.5
	typoLength   = 5 // shorter words have too many neighbours
	maxLike      = 8
)

// index ranks documents by BM25 over weighted fields.
type index struct {
	postings map[string][]posting // by word, in order of document
	vocab    []string             // sorted, for prefixes
	length   []float64
	average  float64
}

type posting struct {
	doc    int
	weight float64 // how often, times the weight of the field
}

func newIndex(docs []indexed) *index {
	ix := &index{postings: map[string][]posting{}, length: make([]float64, len(docs))}
	about := map[string][2][]string{} // by server, to split its texts once
	for i, d := range docs {
		s, ok := about[d.server.Name]
		if !ok {
			s = [2][]string{words(d.server.Name), words(d.server.Description)}
			about[d.server.Name] = s
		}
		counts := map[string]float64{}
		for _, f := range []struct {
			words  []string
			weight float64
		}{
			{words(d.tool.Name), weightTool},
			{words(d.tool.Title), weightTitle},
			{s[0], weightServer},
			{parameters(d.tool.InputSchema), weightParameter},
			{words(d.tool.Description), weightDescription},
			{s[1], weightAbout},
		} {
			for _, w := range f.words {
				counts[w] += f.weight
				ix.length[i] += f.weight
			}
		}
		for w, n := range counts {
			ix.postings[w] = append(ix.postings[w], posting{i, n})
		}
		ix.average += ix.length[i] / float64(len(docs))
	}
	for w := range ix.postings {
		ix.vocab = append(ix.vocab, w)
	}
	sort.Strings(ix.vocab)
	return ix
}

// search returns the best documents by number. Equal ones keep the order they
// were indexed in, so that the same query always gets the same answer.
func (ix *index) search(query []string, limit int) []int {
	scores := map[int]float64{}
	matched := map[int]int{}
	query = slices.Compact(slices.Sorted(slices.Values(query)))
	for _, word := range query {
		best := map[int]float64{} // of one query word, the best of the words like it
		for like, counts := range ix.like(word) {
			list := ix.postings[like]
			idf := math.Log(1 + (float64(len(ix.length))-float64(len(list))+0.5)/(float64(len(list))+0.5))
			for _, p := range list {
				norm := bm25K1 * (1 - bm25B + bm25B*ix.length[p.doc]/ix.average)
				best[p.doc] = max(best[p.doc], counts*idf*p.weight*(bm25K1+1)/(p.weight+norm))
			}
		}
		for doc, score := range best {
			scores[doc] += score
			matched[doc]++
		}
	}
	found := make([]int, 0, len(scores))
	for doc := range scores {
		// Half of the score depends on how much of the query is there at all:
		// three fitting words go before one rare word.
		scores[doc] *= 0.5 + 0.5*float64(matched[doc])/float64(len(query))
		found = append(found, doc)
	}
	sort.Slice(found, func(i, j int) bool {
		if a, b := scores[found[i]], scores[found[j]]; a != b {
			return a > b
		}
		return found[i] < found[j]
	})
	return found[:min(limit, len(found))]
}

// like returns the indexed words that stand for a query word, and what they
// count: the word itself, or else words it begins, or else words with one
// letter changed.
func (ix *index) like(word string) map[string]float64 {
	if _, ok := ix.postings[word]; ok {
		return map[string]float64{word: 1}
	}
	found := map[string]float64{}
	if len(word) >= 3 {
		i, _ := slices.BinarySearch(ix.vocab, word)
		for ; i < len(ix.vocab) && len(found) < maxLike && strings.HasPrefix(ix.vocab[i], word); i++ {
			found[ix.vocab[i]] = prefixCounts
		}
	}
	if len(found) == 0 && len(word) >= typoLength {
		for _, w := range ix.vocab {
			if len(found) < maxLike && oneEdit(word, w) {
				found[w] = typoCounts
			}
		}
	}
	return found
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

// parameters returns the words of the parameter names of a schema, two levels
// deep.
func parameters(schema json.RawMessage) []string {
	var top struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &top) != nil {
		return nil
	}
	var all []string
	for name, raw := range top.Properties {
		all = append(all, words(name)...)
		var inner struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if json.Unmarshal(raw, &inner) == nil {
			for name := range inner.Properties {
				all = append(all, words(name)...)
			}
		}
	}
	return all
}
