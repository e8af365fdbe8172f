package search

import (
	"math"
	"slices"
)

// A tool is most often an answer because it shares some word with a query, and
// there is always one that shares the most. So a query that no tool answers is
// recognized by how well the best tools fit, judged alike for all catalogs: the
// rarity of words is that in the utterances.

const (
	// judged is how many of the best documents decide whether there is an answer.
	judged = 5
	// minFit is the fit from which there is one. It and the weights of fit were
	// chosen on testdata/recall/tune.txt and nothing-tune.txt.
	minFit = 0.3
	// verbFit is the least fit of tools that do the act that is all of a query, and
	// wordsFit of those that have all its words, wherever they stand.
	verbFit  = 0.5
	wordsFit = 0.4

	fitBias     = -14.0
	fitMeaning  = 7.4
	fitWords    = 7.7
	fitNames    = 3.5
	fitNearest  = 2.4
	fitRareness = 2.95
	minNearest  = 0.05 // a need that counts less is none to compare with
)

// fit returns how well a document answers a query, from 0 to 1: how likely it is
// an answer, judged by its meaning, by the words of the query that it has, and by
// the tools' names that the needs lend, above all those of the nearest need. Few or
// common words say little, so they have to fit better. A document that has all the
// words is an answer in any case, unless they are stop words.
func (ix *Index) fit(q question, needs []match, vector *[dims]float32, doc int) float64 {
	var whole, has float64
	least := wordsFit
	if q.stops {
		least = 0
	}
	budget := maxCorrections
	for i, s := range q.stems {
		if stopWords[q.words[i]] && !q.stops || slices.Contains(q.stems[:i], s) {
			continue
		}
		weight := theUtterances().rarity(s)
		whole += weight
		most := 0.0
		for _, w := range ix.lexical.like(s, &budget) {
			most = max(most, ix.lexical.prominence(w.word, doc)*float64(w.counts))
		}
		has += weight * most
		if most == 0 {
			least = 0
		}
	}
	whole = max(whole, 1)
	meaning := 0.0
	if !q.stops {
		meaning = float64(ix.meaning.cosine(doc, vector))
	}
	z := fitBias + fitMeaning*meaning + fitWords*has/whole + fitRareness*math.Log(whole)
	if len(needs) > 0 {
		named := ix.lexical.named(needs, doc)
		z += fitNames*named + fitNearest*named/max(float64(needs[0].counts), minNearest)
	}
	return max(1/(1+math.Exp(-z)), has/whole, least)
}

// bestFit returns the best fit of some documents.
func (ix *Index) bestFit(q question, needs []match, docs []int) float64 {
	v := inQuestions.vectorOf(q.words)
	most := 0.0
	for _, doc := range docs {
		most = max(most, ix.fit(q, needs, &v, doc))
	}
	return most
}

// prominence returns how much of a document a word is, at most 1: nearly 1 for
// one in its name.
func (l *lexical) prominence(word string, doc int) float64 {
	list := l.postings[word]
	i, ok := slices.BinarySearchFunc(list, uint32(doc), func(p posting, doc uint32) int { return int(p.doc) - int(doc) })
	if !ok {
		return 0
	}
	return float64(list[i].score) / l.rarity(len(list)) / (bm25K1 + 1)
}

// named returns how near the document comes to the name of a tool for one of the
// needs, weighted by how sure the need is.
func (l *lexical) named(needs []match, doc int) float64 {
	most := 0.0
	for _, n := range needs {
		for _, stems := range theUtterances().answers[n.need] {
			sum := 0.0
			for _, s := range stems {
				sum += l.prominence(s, doc)
			}
			most = max(most, float64(n.counts)*sum/float64(len(stems)))
		}
	}
	return most
}
