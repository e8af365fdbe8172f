package mcpproxy

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestSearchCoversAllServersAndReportsBrokenOnes(t *testing.T) {
	broken := fake(t, "FAKE_DIE_AT_START", "1")
	broken.Name, broken.Alias = "broken", "broken"
	other := fake(t, "FAKE_TOOLS", "pages")
	other.Name, other.Alias, other.Description = "my-other", "my_other", "a box of numbered things"
	p := proxyFor(t, Options{}, broken, fake(t), other)
	docs, problems, err := p.Search(t.Context(), "numbered tool", 0, true, AnyServer)
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) != 5 || docs[0].Server != "my-other" || docs[0].ServerAlias != "my_other" || docs[0].InputSchema == nil {
		t.Errorf("docs = %+v", docs)
	}
	if len(problems) != 1 || problems[0].Server != "broken" || !strings.Contains(problems[0].Reason, "exited: exit status 7") {
		t.Errorf("problems = %+v", problems)
	}
	before := p.current().upstreams[0].failedAt
	if docs, problems, _ = p.Search(t.Context(), "arguments", 100, false, AnyServer); len(docs) == 0 || len(problems) != 1 {
		t.Errorf("docs = %+v, problems = %+v", docs, problems)
	}
	if !p.current().upstreams[0].failedAt.Equal(before) {
		t.Error("a second search started the broken server again")
	}
}

func TestSearchRefusesBadQueries(t *testing.T) {
	p := proxyFor(t, Options{})
	for query, want := range map[string]string{"": "empty", " ?! ": "empty", strings.Repeat("a ", 600): "longer than"} {
		_, _, err := p.Search(t.Context(), query, 5, false, AnyServer)
		mcptest.WantError(t, err, want)
	}
	_, _, err := p.Search(t.Context(), "x", -1, false, AnyServer)
	mcptest.WantError(t, err, "limit")
	if docs, _, err := p.Search(t.Context(), "x", 5, false, AnyServer); err != nil || docs == nil || len(docs) != 0 {
		t.Errorf("with no servers: %v, %v", docs, err)
	}
}

// TestSearchLooksOnlyWhereItMay: without a function that allows servers at none.
func TestSearchLooksOnlyWhereItMay(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t))
	docs, problems, err := p.Search(t.Context(), "echo", 5, false, nil)
	if len(docs) > 0 || len(problems) > 0 || err != nil {
		t.Errorf("%v, %v, %v", docs, problems, err)
	}
}
