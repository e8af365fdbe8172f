package mcpproxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestSignatureOfARunningServer(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t))
	tool, s, err := p.Signature(t.Context(), "fake", "get_pid")
	if err != nil || tool.Name != "get-pid" {
		t.Fatalf("%+v, %v", tool, err)
	}
	_, again, err := p.Signature(t.Context(), "fake", tool.Name)
	if err != nil || again != s {
		t.Errorf("the signature was made twice; %v", err)
	}
	_, _, err = p.Signature(t.Context(), "fake", "get_pidd")
	mcptest.WantError(t, err, "nearest", "get_pid")
	_, _, err = p.Signature(t.Context(), "fak", "x")
	mcptest.WantError(t, err, `"fake"`)
}

// TestNamesOfServersReachThem: one whose name is an identifier has it in code, also where
// another came first.
func TestNamesOfServersReachThem(t *testing.T) {
	first := mcptest.Site(t, map[string]string{"project/.mcp.json": `{"mcpServers":{"my-server":{"command":"a"},"My.Server":{"command":"b"}}}`})
	p := New(clientconfig.Discover(first), Options{})
	defer p.Close()
	both := mcptest.Site(t, map[string]string{"project/.mcp.json": `{"mcpServers":{"my-server":{"command":"a"},"My.Server":{"command":"b"},"my_server":{"command":"c"},"сервер":{"command":"d"}}}`})
	check := func(want map[string]string) {
		t.Helper()
		for name, alias := range want {
			for _, key := range []string{name, alias} {
				if s, err := p.Lookup(key); err != nil || s.Name != name || s.Alias != alias {
					t.Errorf("%q reaches %q, which is called %q (%v); want %q, %q", key, s.Name, s.Alias, err, name, alias)
				}
			}
		}
	}
	check(map[string]string{"My.Server": "my_server", "my-server": "my_server_2"})
	p.Update(clientconfig.Discover(both))
	check(map[string]string{"my_server": "my_server", "my-server": "my_server_2", "My.Server": "my_server_3", "сервер": "сервер"})
}

// TestPolicyHitsTheToolItNames, and no other whose name in code is like it.
func TestPolicyHitsTheToolItNames(t *testing.T) {
	s, set := givenServer(t)
	set(`{"name":"file.delete"},{"name":"file_delete"},{"name":"file-read"},{"name":"Read"},{"name":"read"}`)
	p := proxyFor(t, Options{}, s)
	for _, tt := range []struct{ rule, denied, not string }{
		{"file_delete", "file_delete FILE_DELETE", "file.delete file_delete_2 file_read"},
		{"file.delete", "file.delete file_delete_2", "file_delete"},
		{"File_Delete", "file_delete", "file.delete"}, // no rule is missed by its case
		{"read", "read", "Read read_2"},
		{"Read", "Read read_2", "read"},
		{"read_2", "Read", "read"},
		{"READ", "Read read", "file_read"},
		{"r*", "Read read", "file_read"},
	} {
		for key := range strings.FieldsSeq(tt.denied + " " + tt.not) {
			run := policyRun(t, fmt.Sprintf("[servers.fake]\ndeny = [%q]", tt.rule))
			_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: key, Run: run})
			denied := slices.Contains(strings.Fields(tt.denied), key)
			if got := err != nil && strings.Contains(err.Error(), fmt.Sprintf("deny = %q", tt.rule)); got != denied {
				t.Errorf("deny %s, call %s: %v, want denied: %v", tt.rule, key, err, denied)
			}
		}
	}
}
