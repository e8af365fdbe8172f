package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

// TestBounds has a policy with many rules of the slowest kind, and names that almost match.
func TestBounds(t *testing.T) {
	slow := "*" + strings.Repeat("a", 100) + "*" + strings.Repeat("a", 100) + "b"
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "[servers.\"*%s%d\"]\ndeny = %q\n", slow[1:150], i, slow)
		server := "server" + strings.Repeat("*", i+1)
		fmt.Fprintf(&text, "[servers.%q]\ndeny = %q\nask = [%q, \"*b\"]\n[servers.%q.tools.%q]\ncallsPerRun = 10\n", server, slow, slow, server, slow)
	}
	p := parsePolicy(t, text.String())
	shapes := boundtest.Pick(boundtest.Text("", ""), "one word", "names in parts", "letters of one kind", "combining characters", "characters that fold to many", "bytes that are not UTF-8", "digits")
	boundtest.Run(t, boundtest.Parser{Row: "names under rules", Shapes: shapes, Parse: func(name []byte) (err error) {
		twins := make([]string, 40_000)
		for i := range twins {
			twins[i] = fmt.Sprint(i)
		}
		tool := Tool{Name: string(name), Alias: string(name) + "_", Twins: twins}
		for _, server := range []string{"server", string(name)} {
			r := p.NewEnforcer()
			s := Server{Name: server, Alias: server}
			err = errors.Join(err, r.ServerDenied(s), r.Authorize(t.Context(), Call{Server: s, Tool: tool}))
		}
		return err
	}})
}
