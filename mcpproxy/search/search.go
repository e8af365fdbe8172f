// Package search ranks tools for what a user or a model wants to do, written
// in their own words.
//
// An [Index] is made of documents, one a tool, and answers queries with the
// numbers of those that fit, best first. The same documents and query always
// give the same answer. An index does not change and serves many goroutines at
// once. Documents and queries may come from anyone: what is read of them is
// bounded, whatever their size.
//
// The utterances and word vectors in data are part of the program; nothing is
// loaded from elsewhere.
package search

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
)

// How a query is answered:
//
//	query ── words ──┬─ as written, corrected ─────┐
//	                 ├─ utterances: names of tools ┴─ BM25 over the fields ─┐
//	                 └─ word vectors ──────────────── cosine ───────────────┴─ sum ─ right action? ─ best first
//
// docs/search.md says what each part brings. The weights were chosen on
// testdata/recall/tune.txt; make recall measures on what they never saw.
const (
	// meaningWeight sets the cosine against the words. BM25 grows with the
	// words of a query and with how rare a word can be, so the cosine has to
	// as well: it is multiplied by √words · ln(1 + documents).
	meaningWeight = 1.55
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

// Document is a tool as an Index sees it. Long texts are cut when indexed.
type Document struct {
	Server            string
	ServerDescription string
	Tool              string // its name
	Title             string
	Description       string
	InputSchema       json.RawMessage // JSON schema; the names of its parameters are indexed
}

// Index ranks documents by the words they share with a query and by the meaning of
// both. It does not change once it is made.
type Index struct {
	lexical *lexical
	meaning *embeddings
	actions []action // by document
}

// New indexes docs; Search returns their indices in it.
func New(docs []Document) *Index {
	go theUtterances() // the first query needs them too, and they take as long
	ix := &Index{lexical: newLexical(docs), meaning: newEmbeddings(docs), actions: make([]action, len(docs))}
	for i, d := range docs {
		ix.actions[i] = actionOf(words(clip(d.Tool, maxIndexedText)))
	}
	return ix
}

// Search returns the indices of the documents that fit a query, best first, at
// most limit of them. Equal ones keep the order they were indexed in, so that the same query always gets the same answer.
func (ix *Index) Search(query string, limit int) []int {
	q := ix.lexical.understand(query)
	needs := theUtterances().nearest(q)
	scores := ix.lexical.score(q)
	ix.lexical.addWholeMatches(q, scores)
	ix.lexical.addNamedTools(q, needs, scores)
	if like := ix.meaning.cosines(q.words); like != nil {
		weight := meaningWeight * math.Sqrt(float64(q.contentWords)) * math.Log1p(float64(len(scores)))
		for doc, cosine := range like {
			if scores[doc] > 0 || cosine >= meansEnough {
				scores[doc] += float32(weight) * max(cosine, 0)
			}
		}
	}
	ix.weighActions(q, needs, scores)
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
