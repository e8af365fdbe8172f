package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The words of these tests have no meaning, so that only their letters count.

func TestOneWrongLetterIsNoHindrance(t *testing.T) {
	ix, docs := catalogOf("a/zorbakin: One", "a/plimmot: Two", "a/quonder: Three")
	for query, want := range map[string]string{
		"zobakin":    "zorbakin", // a letter dropped
		"plimmopt":   "plimmot",  // one added
		"plimmots":   "plimmot",  // an ending
		"quondery":   "quonder",
		"xquonder":   "quonder",
		"zorbxkin":   "zorbakin", // one replaced
		"xorbakin":   "zorbakin",
		"zorbakix":   "zorbakin",
		"zrobakin":   "zorbakin", // two swapped
		"zorbakni":   "zorbakin",
		"zorba":      "zorbakin", // a beginning
		"quonxxer":   "",         // two wrong letters
		"quodnre":    "",
		"zorbakinxx": "",
	} {
		hits := ix.found(query, 5)
		if want == "" && len(hits) > 0 || want != "" && (len(hits) != 1 || docs[hits[0]].Tool != want) {
			t.Errorf("%q finds %v, want %q", query, hits, want)
		}
	}
}

func TestBeginningsOfAllWordsFindTheirTools(t *testing.T) {
	var lines []string
	for i := range 200 {
		lines = append(lines, fmt.Sprintf("a/%c%czorbakin: One", 'a'+i/20, 'a'+i%20))
	}
	ix, docs := catalogOf(lines...)
	for i, d := range docs {
		begin := strings.TrimSuffix(d.Tool, "bakin")
		if got := ix.found(begin, 50); !slices.Equal(got, []int{i}) {
			t.Fatalf("%q finds %v, want %d", begin, got, i)
		}
	}
}

func TestTheCommonestWordIsMeantByAMistypedOne(t *testing.T) {
	ix, _ := catalogOf("a/plimmab: One", "b/plimmob: One", "c/plimmob: Two", "d/plimmob: Three", "e/plimmub: Two")
	if got := ix.found("plimmyb", 5); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("found %v", got)
	}
}

// A word of the language stands for itself if a tool has it, and may be mistyped if none has.
func TestAWordMayBeAnotherMistyped(t *testing.T) {
	ix, docs := catalogOf("a/message: One", "a/plimmot: Two")
	if got := ix.found("massage", 5); len(got) != 1 || docs[got[0]].Tool != "message" {
		t.Errorf("found %v", got)
	}
	if got := ix.found("massage plimmot", 5); len(got) != 2 {
		t.Errorf("found %v", got)
	}
}

func TestOnlySoManyWordsOfAQueryAreCorrected(t *testing.T) {
	var lines, query []string
	for i := range 20 {
		for _, a := range "bdfg" {
			word := string(a) + strings.Repeat(string(rune('a'+i)), 3) + "plom"
			lines = append(lines, "a/"+word+": One")
			query = append(query, word[:len(word)-1]+"k")
		}
	}
	ix, _ := catalogOf(lines...)
	if got := ix.found(strings.Join(query, " "), len(lines)); len(got) < maxCorrections || len(got) > 2*maxCorrections {
		t.Errorf("%d words of %d are corrected", len(got), len(lines))
	}
}
