package bridge

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/oci/spec"
)

// TestHostNotesAreToldOnceAConnection: they are the same in every result, and a model pays
// for each.
func TestHostNotesAreToldOnceAConnection(t *testing.T) {
	const note, isolation = "memory is limited by watching", "limits are kept by watching, not by cgroups (watched-limits)"
	s := newServer(t, nil, func(o *run.Options) {
		o.Missing = func(spec.Limits) []string { return []string{note} }
		o.Isolation = func(spec.Limits) string { return isolation }
	})
	for range 2 { // connections
		c := connect(t, s)
		for call := range 3 {
			text, fields, isError := callTool(t, c, map[string]any{"code": "print(1)", "timeout": 120})
			notes, _ := fields["notes"].([]any)
			told := len(notes) == 1 && notes[0] == note && fields["isolation"] == isolation
			if isError || told != (call == 0) || call > 0 && (len(notes) > 0 || fields["isolation"] != nil) {
				t.Errorf("call %d: %v", call+1, fields)
			}
			if strings.Contains(text, note) || strings.Contains(text, "watch") {
				t.Errorf("call %d: the model reads %q", call+1, text)
			}
		}
	}
}
