package hostapi

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// newLeftOut is that of one run after the other.
func newLeftOut() func() *leftOut {
	told := map[string]bool{}
	first := func(note string) bool {
		known := told[note]
		told[note] = true
		return !known
	}
	return func() *leftOut { return &leftOut{first: first} }
}

func TestNoteSaysWhatTheLastSearchLeftOut(t *testing.T) {
	slow := config.Problem{Server: "slow", Reason: "still starting after 15s; search again later"}
	for name, tt := range map[string]struct {
		problems [][]config.Problem
		want     string
	}{
		"in the last search": {[][]config.Problem{nil, {slow}}, `the search of tools left out "slow" (still starting after 15s; search again later)`},
		"in an earlier one":  {[][]config.Problem{{slow}, nil}, ""},
		"many": {[][]config.Problem{nil, {
			slow, {Server: "a", Reason: strings.Repeat("long ", 100)}, {Server: "b"}, {Server: "c"}, {Server: "d"},
		}}, "and 2 more servers"},
	} {
		l := newLeftOut()()
		for _, problems := range tt.problems {
			l.set(problems)
		}
		note := strings.Join(l.note(), "\n")
		if tt.want == "" && note != "" || !strings.Contains(note, tt.want) || len(note) > 1500 {
			t.Errorf("%s: note %q, want %q", name, note, tt.want)
		}
	}
}

// TestServerThatDoesNotStartIsReportedOnce for a client, though each search leaves it
// out; one that is still starting is reported until it has started or failed.
func TestServerThatDoesNotStartIsReportedOnce(t *testing.T) {
	broken := config.Problem{Server: "broken", Status: config.StatusFailed, Reason: "it exited: process 17"}
	again := config.Problem{Server: "broken", Status: config.StatusFailed, Reason: "it exited: process 29"}
	fixed := config.Problem{Server: "broken", Status: config.StatusFailed, Reason: "its token is wrong"}
	slow := config.Problem{Server: "slow", Status: config.StatusStarting, Reason: "it is still starting"}
	next := newLeftOut()
	for i, run := range []struct {
		problems []config.Problem
		want     string
	}{
		{[]config.Problem{broken, slow}, "broken slow"},
		{[]config.Problem{again, slow}, "slow"},
		{[]config.Problem{again}, ""},
		{[]config.Problem{fixed}, "broken"},
		{[]config.Problem{fixed}, ""},
	} {
		l := next()
		l.set(run.problems)
		note := strings.Join(l.note(), "\n")
		for _, name := range []string{"broken", "slow"} {
			if strings.Contains(note, name) != strings.Contains(run.want, name) {
				t.Errorf("search %d: note %q, want %q", i, note, run.want)
			}
		}
	}
}
