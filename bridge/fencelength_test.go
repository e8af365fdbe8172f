package bridge

import (
	"strings"
	"testing"
)

// TestAFenceIsLongerThanAllInIt, and takes one look at what may be a million of them.
func TestAFenceIsLongerThanAllInIt(t *testing.T) {
	for body, want := range map[string]int{"": 3, "``": 3, "x``y`": 3, "```": 4, "` ``` ````` ``": 6, strings.Repeat("`", 1<<20): 1<<20 + 1} {
		got := fenced("json", body)
		fence := strings.Repeat("`", want)
		if got != fence+"json\n"+body+"\n"+fence {
			t.Errorf("%.40q: a fence that is not of %d", body, want)
		}
	}
}
