package mcpproxy

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
)

// How a query is answered:
//
//	query ── words ──┬─ as written, corrected ──┐
//	                 ├─ thesaurus: other words ─┼─ BM25 over the fields ─┐
//	                 ├─ sayings: names of tools ┘                        │
//	                 └─ word vectors ─────────────── cosine ─────────────┴─ sum ─ right action? ─ best first
//
// docs/search.md says what each part brings. The weights were chosen on
// testdata/recall/tune.txt; make recall measures on what they never saw.
const (
	// meaningCounts sets the cosine against the words. BM25 grows with the
	// words of a query and with how rare a word can be, so the cosine has to
	// as well: it is multiplied by √words · ln(1 + documents).
	meaningCounts = 1.55
	// meansEnough is the cosine from which a tool is an answer though it
	// shares no word with the query.
	meansEnough = 0.35
)

// What is indexed of one tool: a description of a megabyte must not cost more
// than others.
const (
	maxIndexedText       = 2000 // bytes of a description
	maxIndexedParameters = 64
	maxQueryWords        = 120
)

// document is a tool as the index sees it.
type document struct {
	Server            string
	ServerDescription string
	Tool              string // its name
	Title             string
	Description       string
	InputSchema       json.RawMessage // JSON schema; the names of its parameters are indexed
}

// index ranks documents by the words they share with a query and by what both
// mean. It does not change once it is made.
type index struct {
	lexical *lexical
	meaning *meanings
	actions []action // by document
}

func newIndex(docs []document) *index {
	go theSayings() // the first query needs them too, and they take as long
	ix := &index{lexical: newLexical(docs), meaning: newMeanings(docs), actions: make([]action, len(docs))}
	for i, d := range docs {
		ix.actions[i] = actionOf(words(clip(d.Tool, maxIndexedText)))
	}
	return ix
}

// search returns the best documents by number. Equal ones keep the order they
// were indexed in, so that the same query always gets the same answer.
func (ix *index) search(query string, limit int) []int {
	q := ix.lexical.understand(query)
	needs := theSayings().nearest(q)
	scores := ix.lexical.score(q)
	ix.lexical.whole(q, scores)
	ix.lexical.answer(q, needs, scores)
	if like := ix.meaning.cosines(q.words); like != nil {
		weight := meaningCounts * math.Sqrt(float64(q.telling)) * math.Log1p(float64(len(scores)))
		for doc, cosine := range like {
			if scores[doc] > 0 || cosine >= meansEnough {
				scores[doc] += float32(weight) * max(cosine, 0)
			}
		}
	}
	ix.agree(q, needs, scores)
	return best(scores, limit)
}

// best returns the documents with the highest scores above zero.
func best(scores []float32, limit int) []int {
	var found []int
	for doc, score := range scores {
		if score > 0 {
			found = append(found, doc)
		}
	}
	slices.SortFunc(found, func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b))
	})
	return found[:min(limit, len(found))]
}
