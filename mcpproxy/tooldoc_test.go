package mcpproxy

import (
	"strings"
	"testing"
)

func TestMergeRankedKeepsTheOrderOfWhatWasFound(t *testing.T) {
	found := []ToolDoc{{Tool: "zeta", Description: "unrelated"}, {Tool: "list_issues", Description: "List the issues of a repository"}, {Tool: "alpha", Description: "also unrelated"}}
	saved := []ToolDoc{{Server: "user_tools", Tool: "stale_issues", Description: "List stale issues"}, {Server: "user_tools", Tool: "weather", Description: "Sunshine"}}
	for i := range found {
		found[i].Score = 0.9 - float64(i)/10
	}
	var names []string
	last := 1.0
	for _, d := range MergeRanked("list stale issues", found, saved, 4) {
		names = append(names, d.Tool)
		if d.Score <= 0 || d.Score > last {
			t.Errorf("%s has the score %v after %v", d.Tool, d.Score, last)
		}
		last = d.Score
	}
	if got := strings.Join(names, " "); got != "stale_issues zeta list_issues alpha" {
		t.Errorf("got %s", got)
	}
}

func TestMergeRankedGivesSoMany(t *testing.T) {
	found := make([]ToolDoc, maxHits)
	for limit, want := range map[int]int{-1: defaultHits, 0: defaultHits, 1: 1, maxHits: maxHits, maxHits + 1: maxHits} {
		if got := MergeRanked("list stale issues", found, []ToolDoc{{Tool: "stale_issues"}}, limit); len(got) != want {
			t.Errorf("with the limit %d: %d tools, want %d", limit, len(got), want)
		}
	}
}
