package timeline

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
)

// TestViewHasTheCallsBesideTheirLines, those that have none elsewhere, and all in the order of time.
func TestViewHasTheCallsBesideTheirLines(t *testing.T) {
	at := time.Unix(100, 0)
	code := "import x\nawait mcp_bank.pay()\nprint(1)"
	start := &record.RunStart{Code: record.Text{Size: int64(len(code)), Kept: len(code)}}
	entries := []history.Entry{
		{Body: start, Values: map[string]*history.Value{"code": {Value: record.Value{Value: code}}}},
		{Time: at.Add(time.Second), Body: &record.CallStart{Call: 1, Line: 2, Server: "bank", Tool: "pay", Writes: true}},
		{Time: at.Add(2 * time.Second), Body: &record.CallEnd{Call: 1, Line: 2, Server: "bank", Tool: "pay", Outcome: record.OK, Duration: 2000}},
		{Time: at.Add(3 * time.Second), Body: &record.CallStart{Call: 2, Server: "bank", Tool: "see"}},
		{Time: at.Add(4 * time.Second), Body: &record.Limit{Name: "memory"}},
	}
	shown := New(history.Run{ID: "r", Start: at, Status: "killed"}, entries)
	v := shown.View(Options{})
	var lines, moments []string
	for _, l := range v.Code {
		lines = append(lines, strings.TrimSpace(l.Margin+" "+l.Text))
	}
	for _, m := range v.Moments {
		moments = append(moments, m.After+" "+m.Text)
	}
	if !slices.Equal(lines, []string{"import x", "#1* await mcp_bank.pay()", "print(1)"}) {
		t.Errorf("the code is %q", lines)
	}
	if !slices.Equal(moments, []string{"+1.000s ok  2ms", "+3.000s unknown: no answer came", "+4.000s limit     memory"}) {
		t.Errorf("what it did is %q", moments)
	}
	if len(v.Elsewhere) != 1 || v.Elsewhere[0].Number != 2 {
		t.Errorf("elsewhere are %v", v.Elsewhere)
	}
	if hidden := shown.View(Options{HideAll: true}); len(hidden.Code) > 0 || !strings.Contains(hidden.CodeNote, "not shown") || len(hidden.Elsewhere) != 2 {
		t.Errorf("with no values %+v", hidden)
	}
}
