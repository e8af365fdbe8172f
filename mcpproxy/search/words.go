package search

import (
	"strings"
	"unicode"

	"github.com/toolcell/toolcell/internal/text"
)

// maxWord bounds one word; the rest of a longer one (a blob in a description)
// tells a search nothing.
const maxWord = 40

// stopWords are in nearly every description and query. Each is its own stem.
var stopWords = map[string]bool{
	"a": true, "an": true, "and": true, "are": true, "as": true, "at": true, "be": true, "by": true, "can": true,
	"do": true, "for": true, "from": true, "how": true, "i": true, "in": true, "is": true, "it": true, "me": true,
	"my": true, "of": true, "on": true, "or": true, "that": true, "the": true, "this": true, "to": true, "use": true,
	"want": true, "with": true, "you": true, "your": true,
}

// words splits a phrase into stems: at everything that is no letter or digit,
// between letters and digits, and at the humps of camelCase. If there is
// nothing but stop words, they stay.
func words(phrase string) []string {
	var all, some []string
	for _, w := range lowered(phrase) {
		all = append(all, stem(w))
		if !stopWords[w] {
			some = append(some, stem(w))
		}
	}
	if len(some) == 0 {
		return all
	}
	return some
}

// HasWords reports whether a query has anything to search for.
func HasWords(query string) bool { return len(words(query)) > 0 }

// lowered returns the words of a phrase in lower case.
func lowered(phrase string) []string {
	all := split(phrase)
	for i, w := range all {
		all[i] = strings.ToLower(text.Clip(w, maxWord))
	}
	return all
}

// split cuts text into words. A word with humps is there whole as well:
// a query for "github" means GitHub.
func split(text string) []string {
	var all []string
	for _, run := range strings.FieldsFunc(joinToDo(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}) {
		runes, start := []rune(run), 0
		for i := 1; i < len(runes); i++ {
			if boundary(runes, i) {
				all = append(all, string(runes[start:i]))
				start = i
			}
		}
		all = append(all, string(runes[start:]))
		if start > 0 {
			all = append(all, run)
		}
	}
	return all
}

// toDo is a word that is otherwise two stop words.
var toDo = text.Pattern(`(?i)\b(to)-(dos?)\b`)

// joinToDo writes to-do as one word, as many tools do.
func joinToDo(text string) string {
	if !strings.Contains(text, "-d") && !strings.Contains(text, "-D") {
		return text
	}
	return toDo().ReplaceAllStringFunc(text, func(w string) string { return strings.ToLower(strings.Replace(w, "-", "", 1)) })
}

// boundary reports whether a word ends before runes[i]: fileName, file2, 2file,
// and the S of HTTPServer.
func boundary(runes []rune, i int) bool {
	before, here := runes[i-1], runes[i]
	if unicode.IsDigit(before) != unicode.IsDigit(here) {
		return true
	}
	if !unicode.IsUpper(here) {
		return false
	}
	if unicode.IsLower(before) {
		return true
	}
	plural := i+2 == len(runes) && runes[i+1] == 's' // URLs
	return i+1 < len(runes) && unicode.IsLower(runes[i+1]) && !plural
}

// stem takes the commonest English endings off, so that "listing issues" finds
// list_issue. It need not give a word, only the same for related ones.
func stem(w string) string {
	switch {
	case len(w) > 4 && strings.HasSuffix(w, "ies"):
		w = w[:len(w)-3] + "y"
	case len(w) > 4 && (strings.HasSuffix(w, "ches") || strings.HasSuffix(w, "shes") || strings.HasSuffix(w, "sses") || strings.HasSuffix(w, "xes")):
		w = w[:len(w)-2]
	case len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		w = w[:len(w)-1]
	}
	switch {
	case len(w) > 5 && strings.HasSuffix(w, "ing"):
		w = undouble(w[:len(w)-3])
	case len(w) > 4 && strings.HasSuffix(w, "ed") && !strings.HasSuffix(w, "eed"):
		w = undouble(w[:len(w)-2])
	}
	if len(w) > 4 && strings.HasSuffix(w, "e") {
		w = w[:len(w)-1] // create, creating, created
	}
	return w
}

// undouble makes "run" of "runn".
func undouble(w string) string {
	if n := len(w); n > 3 && w[n-1] == w[n-2] && !strings.ContainsRune("lsz", rune(w[n-1])) {
		return w[:n-1]
	}
	return w
}
