package search

import "testing"

func TestNamesThatUtterancesLend(t *testing.T) {
	for name, tt := range map[string]struct {
		query, other, first string
	}{
		"of the nearest need":             {"do I need an umbrella", "get_weather", "forecast"},
		"all of one, not bits of more":    {"where on earth did I put my tax papers", "account_document", "old_file_search"},
		"both words, not the rarest only": {"do I need an umbrella", "weather", "current_weather"},
		"the commoner word counts":        {"where on earth did I put my tax papers", "file", "start_search"},
		"one word says little":            {"write a letter to my aunt", "docx", "email"},
	} {
		got := toolsFound(tt.query, "a/"+tt.other+": It", "a/"+tt.first+": It", "a/unrelated: It")
		if len(got) == 0 || got[0] != tt.first {
			t.Errorf("%s: %q finds %q, want %s first", name, tt.query, got, tt.first)
		}
	}
}

func TestAWordSaidTwiceCountsOnceInAnUtterance(t *testing.T) {
	y := theUtterances()
	for word, list := range y.postings {
		for i := range list[1:] {
			if list[i].utterance == list[i+1].utterance {
				t.Errorf("%q counts twice in an utterance of %q", word, y.answers[y.all[list[i].utterance].need])
			}
		}
	}
}
