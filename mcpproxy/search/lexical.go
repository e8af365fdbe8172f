package search

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
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

// lexical ranks documents by BM25 over weighted fields.
type lexical struct {
	docs     int
	postings map[string][]posting // by word, in order of document
	vocab    []string             // sorted, for prefixes and typos
}

type posting struct {
	doc   uint32
	score float32 // of a query that is this word
}

// newLexical is of no use if ctx has ended.
func newLexical(ctx context.Context, docs []Document) *lexical {
	l := &lexical{docs: len(docs), postings: map[string][]posting{}}
	length := make([]float64, len(docs))
	average := 0.0
	counts := map[string]float64{}
	about := map[string][2][]string{} // by server, to split its texts once
	fresh := map[string]int{}         // by server, words that it was the first to use
	for i, d := range docs {
		if ctx.Err() != nil {
			return l
		}
		s, ok := about[d.Server]
		if !ok {
			s = [2][]string{words(d.Server), words(text.Clip(d.ServerDescription, maxIndexedText))}
			about[d.Server] = s
		}
		clear(counts)
		for _, f := range []struct {
			words  []string
			weight float64
		}{
			{words(text.Clip(d.Tool, maxIndexedText)), weightTool},
			{words(text.Clip(d.Title, maxIndexedText)), weightTitle},
			{s[0], weightServer},
			{parameters(d.InputSchema), weightParameter},
			{words(text.Clip(d.Description, maxIndexedText)), weightDescription},
			{s[1], weightAbout},
		} {
			for _, w := range f.words {
				counts[w] += f.weight
				length[i] += f.weight
			}
		}
		mayAdd := fresh[d.Server]+len(counts) <= maxServerWords
		for w, n := range counts {
			if l.postings[w] == nil {
				if !mayAdd {
					continue
				}
				fresh[d.Server]++
			}
			l.postings[w] = append(l.postings[w], posting{uint32(i), float32(n)})
		}
		average += length[i] / float64(len(docs))
	}
	for w, list := range l.postings {
		idf := l.rarity(len(list))
		for i, p := range list {
			norm := bm25K1 * (1 - bm25B + bm25B*length[p.doc]/average)
			list[i].score = float32(idf * float64(p.score) * (bm25K1 + 1) / (float64(p.score) + norm))
		}
		l.vocab = append(l.vocab, w)
	}
	slices.Sort(l.vocab)
	return l
}

// rarity returns the idf of a word that so many documents have.
func (l *lexical) rarity(have int) float64 {
	return math.Log(1 + (float64(l.docs)-float64(have)+0.5)/(float64(have)+0.5))
}

// parameters returns the words of the parameter names of a schema, two levels
// deep. They are cut and counted, so that one tool cannot fill the index.
func parameters(schema json.RawMessage) []string {
	type object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var top object
	if json.Unmarshal(schema, &top) != nil {
		return nil
	}
	var names []string
	for name, raw := range top.Properties {
		names = append(names, name)
		var inner object
		if json.Unmarshal(raw, &inner) == nil {
			for name := range inner.Properties {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	var all []string
	for _, name := range names[:min(len(names), maxIndexedParameters)] {
		all = append(all, words(text.Clip(name, maxIndexedName))...)
	}
	return all
}

// How much other words than those of the query count.
const (
	prefixCounts = 0.6
	typoCounts   = 0.7
	// restCounts is how much all other readings of a word, or names of a need, add
	// to the best one.
	restCounts = 0.4
)

// question is a query as the index understands it.
type question struct {
	words        []string // as written, small, mistyped ones corrected
	stems        []string // of words
	contentWords int      // how many are no stop words, at least one
	stops        bool     // there are none but stop words, so these count
}

// understand splits a query and corrects words that the tools do not know, if one
// of the tools' words is one edit away.
func (l *lexical) understand(query string) question {
	var q question
	budget := maxCorrections
	for _, w := range split(query) {
		if len(q.words) == maxQueryWords {
			break
		}
		w = strings.ToLower(text.Clip(w, maxWord))
		s := stem(w)
		if !stopWords[w] {
			q.contentWords++
			if l.postings[s] == nil && len(s) >= typoLength && budget > 0 {
				budget--
				if near := l.corrections(s); len(near) > 0 && !theVectors.knows(w) {
					w, s = near[0], near[0]
				}
			}
		}
		q.words, q.stems = append(q.words, w), append(q.stems, s)
	}
	q.stops, q.contentWords = q.contentWords == 0, max(q.contentWords, 1)
	return q
}

// score adds up, for every document, what each word of the query finds in it, under
// the best of its readings. A stop word says nothing, unless there is nothing else.
func (l *lexical) score(q question) []float32 {
	total := make([]float32, l.docs)
	sum := newTally(l.docs) // of all readings of a word
	top := make([]float32, l.docs)
	budget := maxCorrections
	for i, s := range q.stems {
		if !q.stops && stopWords[s] || slices.Contains(q.stems[:i], s) {
			continue
		}
		for _, w := range l.like(s, &budget) {
			for _, p := range l.postings[w.word] {
				top[p.doc] = max(top[p.doc], p.score*w.counts)
				sum.add(p.doc, p.score*w.counts)
			}
		}
		for _, doc := range sum.touched {
			total[doc] += top[doc] + restCounts*(sum.scores[doc]-top[doc])
			top[doc] = 0
		}
		sum.reset()
	}
	return total
}

// wholeCounts is for the words of a query that a document has all of, as they
// are said: a query that names a tool wants that tool.
const wholeCounts = 0.8

// addWholeMatches adds to the documents that have all content words of a query.
func (l *lexical) addWholeMatches(q question, scores []float32) {
	sum, has, wanted := newTally(l.docs), make([]uint8, l.docs), uint8(0)
	for i, s := range q.stems {
		if stopWords[q.words[i]] || slices.Contains(q.stems[:i], s) {
			continue
		}
		wanted++
		for _, p := range l.postings[s] {
			sum.add(p.doc, p.score)
			has[p.doc]++
		}
	}
	for _, doc := range sum.touched {
		if has[doc] == wanted {
			scores[doc] += wholeCounts * sum.scores[doc]
		}
	}
}

// tally holds scores by document, and which documents have one, so that it is
// emptied without a walk over all.
type tally struct {
	scores  []float32
	touched []uint32
}

func newTally(docs int) *tally { return &tally{scores: make([]float32, docs)} }

func (t *tally) add(doc uint32, score float32) {
	if t.scores[doc] == 0 {
		t.touched = append(t.touched, doc)
	}
	t.scores[doc] += score
}

func (t *tally) reset() {
	for _, doc := range t.touched {
		t.scores[doc] = 0
	}
	t.touched = t.touched[:0]
}
