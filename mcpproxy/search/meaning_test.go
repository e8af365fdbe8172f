package search

import "testing"

// TestMeaningRanksToolsOfTheSameWords: what sets these apart shares no word with the query.
func TestMeaningRanksToolsOfTheSameWords(t *testing.T) {
	for name, tt := range map[string]struct {
		query string
		docs  []Document
	}{
		"by names":  {"animal kitten", []Document{{Tool: "animal_invoice"}, {Tool: "animal_cat"}}},
		"by titles": {"animal kitten", []Document{{Tool: "animal_1", Title: "Invoice"}, {Tool: "animal_2", Title: "Cat"}}},
		"by first sentences": {"animal kitten", []Document{
			{Tool: "animal_1", Description: "Invoice. Cat."},
			{Tool: "animal_2", Description: "Cat. Invoice."},
		}},
		// Neither word means anything else in a question or in a tool's text.
		"by words of one meaning only": {"animal trout", []Document{{Tool: "animal_knife"}, {Tool: "animal_herring"}}},
	} {
		if got := New(tt.docs).found(tt.query, 5); len(got) != 2 || got[0] != 1 {
			t.Errorf("%s: %q finds %v", name, tt.query, got)
		}
	}
}

// TestVectorsOfAnotherFormAreRefused: they would be read as vectors that mean nothing.
func TestVectorsOfAnotherFormAreRefused(t *testing.T) {
	New(nil).Search("anything", 1) // reads the utterances first, which need the vectors
	words, tuned := vectorFile, tunedFile
	defer func() { vectorFile, tunedFile = words, tuned }()
	other := func(file string, at int) string { return file[:at] + "\xff" + file[at+1:] }
	for name, tt := range map[string]struct {
		words, tuned string
		want         bool
	}{
		"both as they are":              {words, tuned, false},
		"words of another kind":         {other(words, 0), tuned, true},
		"words of other dimensions":     {other(words, 8), tuned, true},
		"tuned of another kind":         {words, other(tuned, 0), true},
		"tuned to other words":          {words, other(tuned, 4), true},
		"tuned to words of other sizes": {words, other(tuned, 8), true},
	} {
		t.Run(name, func(t *testing.T) {
			vectorFile, tunedFile = tt.words, tt.tuned
			defer func() {
				if refused := recover() != nil; refused != tt.want {
					t.Errorf("refused: %v, want %v", refused, tt.want)
				}
			}()
			readVectors()
			readTuned()
		})
	}
}
