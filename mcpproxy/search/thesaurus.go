package search

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed data/thesaurus.txt
var thesaurusText string

// maxPhrase is how many words a phrase of the thesaurus has.
const maxPhrase = 6

// thesaurus knows which words of tools a word or phrase of everyday speech
// stands for. Its file says how it is written.
type thesaurus struct {
	meant map[string][]meant // by stems, one space between
}

// meant is a word or phrase of tools.
type meant struct {
	stems  []string
	counts float32
}

// theThesaurus is read at the first search: a server that is never searched
// does not pay for it.
var theThesaurus = sync.OnceValue(readThesaurus)

func readThesaurus() *thesaurus {
	t := &thesaurus{meant: map[string][]meant{}}
	for line := range strings.Lines(thesaurusText) {
		line = strings.TrimSpace(line)
		tools, people, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		names := phrases(tools)
		for _, p := range phrases(people) {
			t.add(p, names, meantCounts)
		}
		for _, p := range names {
			t.add(p, names, likeCounts)
		}
	}
	return t
}

func phrases(list string) [][]string {
	var all [][]string
	for phrase := range strings.SplitSeq(list, ",") {
		if s := stems(phrase); len(s) > 0 && len(s) <= maxPhrase {
			all = append(all, s)
		}
	}
	return all
}

func (t *thesaurus) add(phrase []string, names [][]string, counts float32) {
	key := strings.Join(phrase, " ")
	for _, name := range names {
		if !slices.Equal(name, phrase) {
			t.meant[key] = append(t.meant[key], meant{contentWords(name), counts})
		}
	}
}

func (t *thesaurus) knows(stem string) bool { return t.meant[stem] != nil }

// part is a word of a query, or a phrase of it that the thesaurus has.
type part struct {
	stems  []string
	meant  []meant
	inside bool // a phrase has this word in it
}

// parts cuts a query into phrases and words. A phrase inside a longer one is
// none; the words of a phrase are parts as well.
func (t *thesaurus) parts(stems []string) []part {
	var all []part
	seen := map[string]bool{}
	covered := 0 // words before this one are in a phrase
	for i := range stems {
		for n := min(maxPhrase, len(stems)-i); n > 1 && i+n > covered; n-- {
			key := strings.Join(stems[i:i+n], " ")
			if list := t.meant[key]; list != nil {
				if !seen[key] {
					all = append(all, part{stems: stems[i : i+n], meant: list})
				}
				seen[key], covered = true, i+n
				break
			}
		}
		if seen[stems[i]] {
			continue
		}
		seen[stems[i]] = true
		p := part{stems: stems[i : i+1], inside: i < covered}
		if !p.inside {
			p.meant = t.meant[stems[i]]
		}
		all = append(all, p)
	}
	return all
}
