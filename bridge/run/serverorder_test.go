package run

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestServersAreInTheOrderAskedFor(t *testing.T) {
	f := func(context.Context, json.RawMessage) (string, error) { return "1", nil }
	up := fakeUpstreams{}
	for _, name := range []string{"a", "b", "c"} {
		up[name] = map[string]func(context.Context, json.RawMessage) (string, error){"f": f}
	}
	s := newServer(t, up, nil)
	for asked, want := range map[string]string{"c a": "c,a", "b c b a": "b,c,a"} {
		r := runCode(t, s, "assert tuple(mcp_servers) == LOADED_MCP_SERVERS\nprint(*LOADED_MCP_SERVERS, sep=',')", strings.Fields(asked)...)
		if got := strings.Join(r.Stdout, ""); got != want || !slices.Equal(r.Servers, strings.Split(want, ",")) {
			t.Errorf("%q: the code has %s, the result %v; %v", asked, got, r.Servers, r.Stderr)
		}
	}
}
