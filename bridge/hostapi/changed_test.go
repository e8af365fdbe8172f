package hostapi

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// enforcing begins a run under a policy.
func enforcing(t *testing.T, lines string) *policy.Enforcer {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	p := policy.Load(file, true, nil)
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	return p.NewEnforcer()
}

// TestUnknownServerIsSaidToBeUnknown: it is neither denied nor the saved tools, and no policy
// makes it known.
func TestUnknownServerIsSaidToBeUnknown(t *testing.T) {
	for name, rules := range map[string]*policy.Enforcer{
		"none": policy.None().NewEnforcer(), "deny all": enforcing(t, "[servers.\"*\"]\ndeny = \"*\"\n"), "unreadable": policy.Load(t.TempDir(), true, nil).NewEnforcer(),
	} {
		api := newAPI(testOptions{Policy: rules, Upstreams: noServers(t), Saved: privateStore(t)})
		for _, method := range []string{"list_tools", "describe_server", "query_tool_docs", "tool_signature"} {
			answer, err := ask(t, api, method, json.RawMessage(`{"server":"nosuch","tool":"clean"}`))
			if err == nil || !strings.Contains(err.Error(), `"nosuch"`) || strings.Contains(err.Error(), "policy") {
				t.Errorf("policy %s, %s: %s, %v", name, method, answer, err)
			}
		}
	}
}

// TestServerThatChangesBeforeItsDocumentIsMade gives an error, not a document without tools.
func TestServerThatChangesBeforeItsDocumentIsMade(t *testing.T) {
	other := config.Server{Name: "up", Alias: "up", Transport: config.Stdio, Command: "/no/such/program"}
	for name, servers := range map[string][]config.Server{"removed": nil, "changed": {other}} {
		for _, method := range []string{"list_tools", "describe_server", "query_tool_docs"} {
			up := bridgetest.Servers{"up": {"f": nil}}.Proxy(t, bridgetest.Options{})
			answer, err := newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: up}).carryOut(t.Context(), method, json.RawMessage(`{"server":"up"}`))
			if err != nil {
				t.Fatal(err)
			}
			up.Update(config.Config{Servers: servers})
			if document, err := answer.Make(); err == nil || !strings.Contains(err.Error(), `"up"`) {
				t.Errorf("%s, %s: %s, %v", name, method, document, err)
			}
		}
	}
}

// TestSchemaIsGivenWithoutSignature, since it says the same.
func TestSchemaIsGivenWithoutSignature(t *testing.T) {
	up := bridgetest.Servers{"up": {"f": nil}}.Proxy(t, bridgetest.Options{})
	api := newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: up})
	for _, method := range []string{"query_tool_docs", "search_tool_docs"} {
		for detail, want := range map[string]bool{"schema": false, "full": true} {
			answer, err := ask(t, api, method, json.RawMessage(`{"server":"up","query":"f","detail":"`+detail+`"}`))
			if err != nil || !strings.Contains(string(answer), `"inputSchema"`) || strings.Contains(string(answer), `"signature"`) != want {
				t.Errorf("%s, %s: %s, %v", method, detail, answer, err)
			}
		}
	}
}

// TestNamesInThePolicyThatMatchNoTool are noted and logged once, of the servers that the code
// has read about. A glob may be for tools that are still to come.
func TestNamesInThePolicyThatMatchNoTool(t *testing.T) {
	rules := enforcing(t, "[servers.up]\ndeny = [\"g\", \"g*\", \"f\"]\n")
	want := []string{`policy: [servers.up] deny = "g" matches no tool`}
	for _, c := range []struct{ method, params string }{
		{"list_tools", `{"server":"up"}`},
		{"tool_signature", `{"server":"up","tool":"f"}`},
		{"search_tool_docs", `{"query":"f"}`},
		{"list_servers", `{}`},
	} {
		var log strings.Builder
		up, told := bridgetest.Servers{"up": {"f": nil}}.Proxy(t, bridgetest.Options{}), []string{}
		first := func(note string) bool {
			known := slices.Contains(told, note)
			told = append(told, note)
			return !known
		}
		g := gate.New(gate.Options{Upstreams: up, Policy: rules})
		api := testAPI{New(Options{
			Upstreams: up, Gate: g, Policy: rules, Saved: savedtools.Open(t.TempDir(), ""), First: first, Log: slog.New(slog.NewTextHandler(&log, nil)),
		}), g}
		if _, err := ask(t, api, c.method, json.RawMessage(c.params)); err != nil {
			t.Errorf("%s: %v", c.method, err)
		}
		read := c.method != "list_servers"
		if got := api.Notes(); slices.Equal(got, want) != read || !read && len(got) > 0 {
			t.Errorf("%s: notes %q", c.method, got)
		}
		if got := api.Notes(); len(got) > 0 {
			t.Errorf("%s: notes once more %q", c.method, got)
		}
		if n := strings.Count(log.String(), "a name in the policy matches no tool"); (n == 1) != read {
			t.Errorf("%s: the log has %s", c.method, log.String())
		}
	}
}
