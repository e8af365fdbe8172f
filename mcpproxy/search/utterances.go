package search

import (
	"cmp"
	"embed"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/internal/contain"
)

//go:embed data/utterances/*.txt
var utteranceFiles embed.FS

// utterances are what people say when they need a tool, each with what the tools
// that answer are called. They need not be said word for word: a query is compared
// with all of them, by words and by meaning, and the nearest ones lend it their
// tools' names.
type utterances struct {
	all      []utterance
	answers  [][][]string        // by need: names of tools, in stems
	postings map[string][]spoken // by stem
	meaning  *embeddings         // of all
}

// utterance is one way to say a need. Each line of a file is a need.
type utterance struct {
	need  int
	total float32 // of the weights of its words
}

// spoken is a word of an utterance.
type spoken struct {
	utterance int32
	weight    float32 // how rare the word is, the same for all of its utterances
}

// theUtterances are read at the first search.
var theUtterances = sync.OnceValue(contain.Value("reading what people say", &utterances{postings: map[string][]spoken{}, meaning: &embeddings{}}, readUtterances))

func readUtterances() *utterances {
	y := &utterances{postings: map[string][]spoken{}, meaning: &embeddings{}}
	files, err := utteranceFiles.ReadDir("data/utterances")
	if err != nil {
		panic(err) // of an embedded folder
	}
	for _, f := range files {
		text, err := utteranceFiles.ReadFile("data/utterances/" + f.Name())
		if err != nil {
			panic(err)
		}
		for line := range strings.Lines(string(text)) {
			tools, people, ok := strings.Cut(strings.TrimSpace(line), ":")
			if !ok || strings.HasPrefix(line, "#") {
				continue
			}
			var names [][]string
			for name := range strings.SplitSeq(tools, ",") {
				names = append(names, words(name))
			}
			y.answers = append(y.answers, names)
			for text := range strings.SplitSeq(people, ",") {
				y.add(text)
			}
		}
	}
	for _, list := range y.postings {
		rare := float32(math.Log(1 + float64(len(y.all))/float64(len(list))))
		for i := range list {
			list[i].weight = rare
			y.all[list[i].utterance].total += rare
		}
	}
	return y
}

// add takes an utterance of the last need.
func (y *utterances) add(text string) {
	at := len(y.all)
	y.all = append(y.all, utterance{need: len(y.answers) - 1})
	seen := map[string]bool{}
	words := lowered(text)
	for _, w := range words {
		if s := stem(w); !stopWords[w] && !seen[s] {
			seen[s] = true
			y.postings[s] = append(y.postings[s], spoken{utterance: int32(at)})
		}
	}
	v := untuned.vectorOf(words)
	var none [dims]int8
	y.meaning.values, y.meaning.scales = append(y.meaning.values, none[:]...), append(y.meaning.scales, 0)
	y.meaning.set(at, &v)
}

const (
	// utteranceWords and utteranceMeaning are the parts of words and of meaning in how
	// near an utterance is. Both are at most 1.
	utteranceWords   = 0.6
	utteranceMeaning = 0.4
	// utteranceWhole is how much it counts that the utterance is all there, against
	// that the query is.
	utteranceWhole = 0.75
	// minSimilarity is how near an utterance has to be to count at all.
	minSimilarity = 0.4
	maxNeeds      = 12
	// strangeWord is the weight of a query word that is in no utterance.
	strangeWord = 4
	// answersCount sets what a need's tools get against the query's own words.
	answersCount = 1
	// oneWordName is for a name of one word, which many tools share.
	oneWordName = 0.7
)

// match is a need that a query may have.
type match struct {
	need   int
	counts float32 // at most 1
}

// rarity returns the weight of a word, the higher the fewer utterances have it.
func (y *utterances) rarity(stem string) float64 {
	if list := y.postings[stem]; list != nil {
		return float64(list[0].weight)
	}
	return strangeWord
}

// nearest returns the needs whose utterances come near to a query, best first.
func (y *utterances) nearest(q question) []match {
	matched := make([]float32, len(y.all))
	var whole float32
	seen := map[string]bool{}
	for i, s := range q.stems {
		if seen[s] || stopWords[q.words[i]] {
			continue
		}
		seen[s] = true
		if y.postings[s] == nil {
			whole += strangeWord
			continue
		}
		whole += y.postings[s][0].weight
		for _, p := range y.postings[s] {
			matched[p.utterance] += p.weight
		}
	}
	v := untuned.vectorOf(q.words)
	near := map[int]float32{}
	for i, s := range y.all {
		if matched[i] == 0 {
			continue // meaning alone does not bring an utterance near
		}
		n := utteranceWords * matched[i] / (utteranceWhole*s.total + (1-utteranceWhole)*whole)
		n += utteranceMeaning * max(3*y.meaning.cosine(i, &v), 0) // set divides by three parts
		if n > minSimilarity {
			near[s.need] = max(near[s.need], n)
		}
	}
	found := make([]match, 0, len(near))
	for need, n := range near {
		found = append(found, match{need, (n - minSimilarity) / (1 - minSimilarity)})
	}
	slices.SortFunc(found, func(a, b match) int {
		return cmp.Or(cmp.Compare(b.counts, a.counts), cmp.Compare(a.need, b.need))
	})
	return found[:min(len(found), maxNeeds)]
}

// addNamedTools adds to the documents that the names of the tools for these needs
// find.
func (l *lexical) addNamedTools(q question, needs []match, scores []float32) {
	sum, name, one := newTally(l.docs), newTally(l.docs), newTally(l.docs)
	top := make([]float32, l.docs)
	words := make([]uint8, l.docs) // of a name that a document has
	weight := answersCount * float32(math.Sqrt(float64(q.contentWords)))
	for _, n := range needs {
		for _, stems := range theUtterances().answers[n.need] {
			// Only tools with the rarest word are looked at: of "create frame",
			// "create" alone says nothing, and half of all tools have it.
			rarest := slices.MinFunc(stems, func(a, b string) int { return len(l.postings[a]) - len(l.postings[b]) })
			for _, p := range l.postings[rarest] {
				name.add(p.doc, p.score)
				words[p.doc]++
			}
			for _, s := range stems {
				for _, p := range l.postings[s] {
					if words[p.doc] > 0 && s != rarest {
						name.scores[p.doc] += p.score
						words[p.doc]++
					}
				}
			}
			// A document that has half of the words is not half the answer.
			all := float32(len(stems))
			each := weight * n.counts / float32(math.Sqrt(float64(all))) / all
			if len(stems) == 1 {
				each *= oneWordName
			}
			for _, doc := range name.touched {
				if s := name.scores[doc] * each * float32(words[doc]); s > one.scores[doc] {
					one.add(doc, s-one.scores[doc])
				}
				words[doc] = 0
			}
			name.reset()
		}
		for _, doc := range one.touched {
			top[doc] = max(top[doc], one.scores[doc])
			sum.add(doc, one.scores[doc])
		}
		one.reset()
	}
	for _, doc := range sum.touched {
		scores[doc] += top[doc] + restCounts*(sum.scores[doc]-top[doc])
	}
}
