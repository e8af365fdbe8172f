package run

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// halfSearched has servers that a search cannot look into.
type halfSearched struct {
	*mcpproxy.Proxy
	problems [][]config.Problem // of one search after the other
}

func (h *halfSearched) Search(context.Context, string, int, bool, func(name, alias string) bool) ([]mcpproxy.ToolDoc, []config.Problem, error) {
	now := h.problems[0]
	h.problems = h.problems[1:]
	return nil, now, nil
}

func TestResultSaysWhatASearchLeftOut(t *testing.T) {
	slow := config.Problem{Server: "slow", Reason: "still starting after 15s; search again later"}
	two := "from mcp import runtime\nawait runtime.search_tool_docs('x')\nawait runtime.search_tool_docs('x')\nprint('done')"
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
		t.Run(name, func(t *testing.T) {
			s := newServer(t, nil, func(o *Options) {
				o.Upstreams = &halfSearched{fakeUpstreams{}.Proxy(t, bridgetest.Options{}), tt.problems}
			})
			r := s.Do(t.Context(), Request{Code: two})
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

// TestServerThatDoesNotStartIsReportedOnce for a client, though each search leaves it
// out; one that is still starting is reported until it has started or failed.
func TestServerThatDoesNotStartIsReportedOnce(t *testing.T) {
	broken := config.Problem{Server: "broken", Status: config.StatusFailed, Reason: "it exited: process 17"}
	again := config.Problem{Server: "broken", Status: config.StatusFailed, Reason: "it exited: process 29"}
	fixed := config.Problem{Server: "broken", Status: config.StatusFailed, Reason: "its token is wrong"}
	slow := config.Problem{Server: "slow", Status: config.StatusStarting, Reason: "it is still starting"}
	s := newServer(t, nil, func(o *Options) {
		o.Upstreams = &halfSearched{fakeUpstreams{}.Proxy(t, bridgetest.Options{}), [][]config.Problem{{broken, slow}, {again, slow}, {again}, {fixed}, {fixed}}}
	})
	for i, want := range []string{"broken slow", "slow", "", "broken", ""} {
		r := s.Do(t.Context(), Request{Code: "from mcp import runtime\nawait runtime.search_tool_docs('x')\nNone"})
		notes := strings.Join(r.Notes, "\n")
		for _, name := range []string{"broken", "slow"} {
			if strings.Contains(notes, name) != strings.Contains(want, name) {
				t.Errorf("search %d: notes %q, want %q", i, notes, want)
			}
		}
	}
}

// counted counts how often it is asked for the servers, which looks at the
// files of all clients.
type counted struct {
	*mcpproxy.Proxy
	asked *atomic.Int32
}

func (c counted) Servers() []mcpproxy.ServerStatus {
	c.asked.Add(1)
	return c.Proxy.Servers()
}

func TestARunLooksForServersOnce(t *testing.T) {
	up := fakeUpstreams{"up": {"echo": func(context.Context, json.RawMessage) (string, error) { return "1", nil }}}
	var asked atomic.Int32
	s := newServer(t, nil, func(o *Options) { o.Upstreams = counted{up.Proxy(t, bridgetest.Options{}), &asked} })
	r := s.Do(t.Context(), Request{Code: "for _ in range(5):\n    await mcp_up.echo()", Servers: []string{"*"}})
	if r.Status != StatusSuccess || asked.Load() != 1 {
		t.Errorf("%s: %q; asked %d times", r.Status, r.Error, asked.Load())
	}
}
