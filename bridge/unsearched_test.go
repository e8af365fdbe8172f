package bridge

import (
	"context"
	"strings"
	"testing"

	"github.com/runcell/runcell/mcpproxy"
)

// halfSearched has servers that a search cannot look into.
type halfSearched struct {
	fakeUpstreams
	problems [][]mcpproxy.Problem // of one search after the other
}

func (h *halfSearched) Search(context.Context, string, int, bool) ([]mcpproxy.ToolDoc, []mcpproxy.Problem, error) {
	now := h.problems[0]
	h.problems = h.problems[1:]
	return nil, now, nil
}

func TestResultSaysWhatASearchLeftOut(t *testing.T) {
	slow := mcpproxy.Problem{Server: "slow", Reason: "still starting after 15s; search again later"}
	two := "from mcp import runtime\nawait runtime.search_tool_docs('x')\nawait runtime.search_tool_docs('x')\nprint('done')"
	for name, tt := range map[string]struct {
		problems [][]mcpproxy.Problem
		want     string
	}{
		"in the last search": {[][]mcpproxy.Problem{nil, {slow}}, `the search of tools left out "slow" (still starting after 15s; search again later)`},
		"in an earlier one":  {[][]mcpproxy.Problem{{slow}, nil}, ""},
		"many": {[][]mcpproxy.Problem{nil, {
			slow, {Server: "a", Reason: strings.Repeat("long ", 100)}, {Server: "b"}, {Server: "c"}, {Server: "d"},
		}}, "and 2 more servers"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, nil, func(o *Options) { o.Upstreams = &halfSearched{fakeUpstreams{}, tt.problems} })
			r := s.Run(t.Context(), Request{Code: two})
			notes := strings.Join(r.Notes, "\n")
			if r.Status != StatusSuccess || tt.want == "" && strings.Contains(notes, "left out") || !strings.Contains(notes, tt.want) {
				t.Errorf("%s, notes %q, want %q", r.Status, notes, tt.want)
			}
			if len(notes) > 1500 {
				t.Errorf("the note has %d bytes", len(notes))
			}
		})
	}
}
