package mcpproxy

import (
	"strings"
	"testing"
)

func TestMergeRankedKeepsTheOrderOfWhatWasFound(t *testing.T) {
	found := []ToolDoc{{Tool: "zeta", Description: "unrelated"}, {Tool: "list_issues", Description: "List the issues of a repository"}, {Tool: "alpha", Description: "also unrelated"}}
	saved := []ToolDoc{{Server: "user_tools", Tool: "stale_issues", Description: "List stale issues"}, {Server: "user_tools", Tool: "weather", Description: "Sunshine"}}
	var names []string
	for _, d := range MergeRanked("list stale issues", found, saved, 4) {
		names = append(names, d.Tool)
	}
	if got := strings.Join(names, " "); got != "stale_issues zeta list_issues alpha" {
		t.Errorf("got %s", got)
	}
}
