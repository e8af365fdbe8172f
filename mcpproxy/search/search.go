// Package search ranks tools for what a user or a model wants to do, written
// in their own words.
//
// An [Index] is made of documents, one a tool, and answers queries with the
// numbers of those that fit, best first, or with none. The same documents and query always
// give the same answer. An index does not change and serves many goroutines at
// once. Documents and queries are untrusted: it reads a bounded part of them, whatever
// their size.
//
// The utterances and word vectors in data are part of the program; nothing is
// loaded from elsewhere.
package search

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// How a query is answered:
//
//	query ── words ──┬─ as written, corrected ─────┐
//	                 ├─ utterances: names of tools ┴─ BM25 over the fields ─┐
//	                 └─ word vectors ──────────────── cosine ───────────────┴─ sum ─ right action? ─ best first ─ do they fit?
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

// Bounds on the text of one tool that is indexed: a description of a megabyte must not
// cost more than others.
const (
	maxIndexedText       = 2000 // bytes of a description
	maxIndexedParameters = 64
	maxIndexedName       = 200 // bytes of one parameter's name
	maxQueryWords        = 120

	// maxServerWords is how many words the tools of one server may be the first to use: an
	// index takes many times the bytes of a word that is nowhere else. Public servers
	// have a few thousand.
	maxServerWords = 50_000
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
	actions []action // by document, of its name
	verbs   []string // by document: the stem of what it does, "" if neither its name nor its description begins with it
}

// New is Make for a few documents.
func New(docs []Document) *Index {
	ix, _ := Make(context.Background(), docs) // which does not end
	return ix
}

// Make indexes docs; Search returns their indices in it. The error is that of ctx.
func Make(ctx context.Context, docs []Document) (*Index, error) {
	go func() {
		defer contain.Recover("reading what people say", nil)
		theUtterances()
	}() // the first query needs them too, and they take as long
	ix := &Index{lexical: newLexical(ctx, docs), meaning: newEmbeddings(ctx, docs), actions: make([]action, len(docs)), verbs: make([]string, len(docs))}
	for i, d := range docs {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		ix.verbs[i] = verbOf(words(text.Clip(d.Tool, maxIndexedText)))
		ix.actions[i] = actionVerbs[ix.verbs[i]]
		if begin := words(text.Clip(d.Description, maxWord)); ix.verbs[i] == "" && len(begin) > 0 {
			ix.verbs[i] = verbOf(begin[:1])
		}
	}
	return ix, nil
}

// A Hit is a document that a query finds.
type Hit struct {
	Doc   int     // its index among the documents
	Score float64 // how well it fits, from 0 to 1
}

// Search returns the documents that fit a query, best first, at most limit of them,
// and none if nothing fits. Equal ones keep the order they were indexed in, so that
// the same query always gets the same answer. The first one's score tells how
// likely there is an answer, the others' how near they come to the first.
func (ix *Index) Search(query string, limit int) []Hit {
	q := ix.lexical.understand(query)
	needs := theUtterances().nearest(q)
	scores := ix.score(q, needs)
	isVerb := ix.raiseVerb(q, scores)
	found := best(scores, max(limit, judged))
	fit := ix.bestFit(q, needs, found[:min(len(found), judged)])
	if isVerb {
		fit = max(fit, verbFit)
	}
	if fit < minFit {
		return nil
	}
	hits := make([]Hit, min(len(found), limit))
	for i := range hits {
		hits[i] = Hit{found[i], fit * float64(scores[found[i]]/scores[found[0]])}
	}
	return hits
}

// score returns how well each document fits a query against the others; 0 is not
// at all.
func (ix *Index) score(q question, needs []match) []float32 {
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
	return scores
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
