package mcpproxy

import (
	"fmt"
	"testing"

	"github.com/toolcell/toolcell/internal/text"
)

// TestErrorsNameAFewServers, and say what lists the others.
func TestErrorsNameAFewServers(t *testing.T) {
	known := make([]string, maxNamed+1)
	for i := range known {
		known[i] = fmt.Sprintf("server %d", i)
	}
	most := `there is no server "zz"; servers: ` + text.QuoteList(known[:maxNamed], maxNamed)
	for name, tt := range map[string]struct {
		known []string
		want  string
	}{
		"none":     {nil, `there is no server "zz": no servers are configured`},
		"the most": {known[:maxNamed], most},
		"one more": {known, most + " and 1 more (ls lists them)"},
	} {
		e := &UnknownServerError{Name: "zz", Known: tt.known}
		if got := e.Describe("ls"); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
