package hostapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// testOptions are those of an API and of its gate.
type testOptions struct {
	Upstreams *mcpproxy.Proxy
	Granted   map[string]bool
	Policy    *policy.Enforcer
	Saved     savedtools.Store
	Marks     *consent.Taint
	Hosts     []string
	Asker     *consent.Asker
	Record    *record.Run
}

// A testAPI answers what code asks, as in a run.
type testAPI struct {
	*API
	gate *gate.Gate
}

func newAPI(o testOptions) testAPI {
	g := gate.New(gate.Options{Upstreams: o.Upstreams, Granted: o.Granted, Policy: o.Policy, Taint: o.Marks, Hosts: o.Hosts, Asker: o.Asker})
	return testAPI{New(Options{Upstreams: o.Upstreams, Gate: g, Policy: o.Policy, Saved: o.Saved, Record: o.Record}), g}
}

func (a testAPI) carryOut(ctx context.Context, method string, params json.RawMessage) (runner.Answer, error) {
	return runner.CarryOut(ctx, a.o.Gate, a, 1, method, params)
}

// ask calls a method and returns its result, which is made at once.
func ask(t *testing.T, a testAPI, method string, params json.RawMessage) (json.RawMessage, error) {
	t.Helper()
	answer, err := a.carryOut(t.Context(), method, params)
	if err != nil || answer.Make == nil {
		return answer.JSON, err
	}
	return answer.Make()
}

// unstartable has a server up, which cannot be started.
func unstartable(t *testing.T) *mcpproxy.Proxy {
	t.Helper()
	p := mcpproxy.New(config.Config{Servers: []config.Server{{
		Name: "up", Alias: "up", Transport: config.Stdio, Command: "/home/me/no-such-program", Source: "/home/me/.mcp.json", Also: []string{"/home/me/more.json"},
	}}}, mcpproxy.Options{})
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestServersAreShownWithoutPaths(t *testing.T) {
	api := newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: unstartable(t)})
	if _, err := ask(t, api, "list_tools", json.RawMessage(`{"server":"up"}`)); err == nil {
		t.Fatal("it was started")
	}
	answer, err := ask(t, api, "describe_servers", json.RawMessage("{}"))
	if err != nil || !strings.Contains(string(answer), "correct .mcp.json") || strings.Contains(string(answer), "/home/me/.mcp.json") || strings.Contains(string(answer), "more.json") {
		t.Errorf("got %s, %v", answer, err)
	}
}

// TestDeniedServerIsLeftAlone: nothing that is asked about it starts it.
func TestDeniedServerIsLeftAlone(t *testing.T) {
	for _, rule := range []string{`deny = "*"`, `allow = []`} {
		file := filepath.Join(t.TempDir(), "policy.toml")
		if err := os.WriteFile(file, []byte("[servers.up]\n"+rule+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		up := unstartable(t)
		api := newAPI(testOptions{Upstreams: up, Granted: map[string]bool{"up": true}, Policy: policy.Load(file, true, nil).NewEnforcer()})
		for _, method := range []string{
			"call_tool", "read_resource", "get_prompt", "list_tools", "describe_server", "query_tool_docs", "tool_signature",
			"list_resources", "list_resource_templates", "list_prompts",
		} {
			_, err := ask(t, api, method, json.RawMessage(`{"server":"up","tool":"f","uri":"x:","name":"p"}`))
			if e := new(runner.CallError); !errors.As(err, &e) || e.Server != "up" || !strings.Contains(e.Message, "policy.toml, [servers.up] "+rule) {
				t.Errorf("%s, %s: %v", rule, method, err)
			}
		}
		if answer, err := ask(t, api, "describe_servers", nil); err != nil || !strings.Contains(string(answer), `"status":"denied"`) {
			t.Errorf("%s: %s, %v", rule, answer, err)
		}
		if _, err := ask(t, api, "search_tool_docs", json.RawMessage(`{"query":"x"}`)); err != nil || up.Servers()[0].Status != "idle" {
			t.Errorf("%s: the search: %v; the server: %s", rule, err, up.Servers()[0].Status)
		}
	}
}

// TestLiveListsNeedAGrant: each is a request to a server, with the user's token.
func TestLiveListsNeedAGrant(t *testing.T) {
	api := newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: unstartable(t)})
	for _, method := range []string{"list_resources", "list_resource_templates", "list_prompts"} {
		_, err := ask(t, api, method, json.RawMessage(`{"server":"up"}`))
		if err == nil || !strings.Contains(err.Error(), `server "up" is not granted to this run`) {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestForgedReadsAreBounded(t *testing.T) {
	up := bridgetest.Servers{"up": {"f": nil}}.Proxy(t, bridgetest.Options{})
	api := newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: up, Granted: map[string]bool{"up": true}})
	many := map[string]string{}
	for i := range 20_000 {
		many[fmt.Sprint(i)] = ""
	}
	for _, tt := range []struct {
		method string
		params map[string]any
	}{
		{"read_resource", map[string]any{"uri": strings.Repeat("x", 64<<10+1)}},
		{"read_resource", map[string]any{}},
		{"get_prompt", map[string]any{"name": "p", "arguments": many}},
		{"get_prompt", map[string]any{"name": "p", "arguments": map[string]int{"n": 1}}},
		{"get_prompt", map[string]any{"name": "p", "arguments": "x"}},
		{"call_tool", map[string]any{"tool": "f", "named": []int{1}}},
		{"call_tool", map[string]any{"tool": "f", "args": map[string]any{}}},
		{"call_tool", map[string]any{"tool": "f", "args": make([]int, 20_000)}},
		{"export_tools", map[string]any{"tools": "x"}},
		{"export_tools", map[string]any{"tools": []int{1}}},
		{"export_tools", map[string]any{"tools": make([]string, 20_000)}},
	} {
		tt.params["server"] = "up"
		raw, err := json.Marshal(tt.params)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := ask(t, api, tt.method, raw); err == nil {
			t.Errorf("%s %.100s gave %s", tt.method, raw, answer)
		}
	}
}

// failingServer returns a proxy whose one server says on stderr why it fails to
// start.
func failingServer(t *testing.T) *mcpproxy.Proxy {
	t.Helper()
	s := config.Server{
		Name: "bank", Alias: "bank", Transport: config.Stdio, Command: "/bin/sh",
		Args: []string{"-c", "echo balance of 1234 >&2; exit 3"},
	}
	p := mcpproxy.New(config.Config{Servers: []config.Server{s}}, mcpproxy.Options{})
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// TestStderrOfAServerNeedsAGrant: what a server prints when it fails is data, which
// code sees only if it may call the server.
func TestStderrOfAServerNeedsAGrant(t *testing.T) {
	for _, granted := range []bool{false, true} {
		for _, method := range []string{"list_tools", "describe_server", "query_tool_docs", "tool_signature"} {
			api := newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: failingServer(t), Granted: map[string]bool{"bank": granted}})
			_, err := ask(t, api, method, json.RawMessage(`{"server":"bank","tool":"f"}`))
			if err == nil || strings.Contains(err.Error(), "1234") != granted || strings.Contains(err.Error(), "toolcell servers check bank") == granted {
				t.Errorf("granted %v, %s: %v", granted, method, err)
			}
			answer, err := ask(t, api, "describe_servers", nil)
			if err != nil || strings.Contains(string(answer), "1234") || !strings.Contains(string(answer), "exit status 3") {
				t.Errorf("granted %v: %s, %v", granted, answer, err)
			}
		}
		api := newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: failingServer(t), Granted: map[string]bool{"bank": granted}})
		if _, err := ask(t, api, "search_tool_docs", json.RawMessage(`{"query":"balance"}`)); err != nil {
			t.Error(err)
		}
		if _, err := ask(t, api, "search_tool_docs", json.RawMessage(`{"query":""}`)); err == nil {
			t.Error("a search for nothing is none")
		}
		if notes := strings.Join(api.Notes(), "; "); !strings.Contains(notes, "bank") || strings.Contains(notes, "1234") {
			t.Errorf("notes %q", notes)
		}
	}
}

// TestServerThatDoesNotStartGivesItsReason in one line, however much it wrote.
func TestServerThatDoesNotStartGivesItsReason(t *testing.T) {
	for script, want := range map[string]string{
		`echo 'Traceback (most recent call last):'; echo '  File "x.py", line 1'; echo '    import y'; echo "ModuleNotFoundError: No module named 'y'"`: "ModuleNotFoundError: No module named 'y'",
		`echo "Error: Cannot find module 'y'"; echo "    at node:internal"; echo "  code: 'MODULE_NOT_FOUND'"; echo "}"; echo; echo 'Node.js v22.1.0'`:  "Error: Cannot find module 'y'",
		`echo 'reading the settings'; echo 'API_KEY is missing'; echo 'bye'`:                                                                            "API_KEY is missing",
		`echo 'one'; echo 'two'`: "two",
	} {
		s := config.Server{Name: "bank", Alias: "bank", Transport: config.Stdio, Command: "/bin/sh", Args: []string{"-c", "{ " + script + "; } >&2; exit 3"}}
		p := mcpproxy.New(config.Config{Servers: []config.Server{s}}, mcpproxy.Options{})
		t.Cleanup(func() { _ = p.Close() })
		api := newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: p, Granted: map[string]bool{"bank": true}})
		for _, method := range []string{"call_tool", "list_tools", "list_resources"} {
			_, err := ask(t, api, method, json.RawMessage(`{"server":"bank","tool":"f"}`))
			if err == nil || !strings.Contains(err.Error(), "its stderr ended: "+want+" (all of it is shown by: toolcell servers check bank)") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v\nwant %s", method, err, want)
			}
		}
	}
}

// TestSilentServerIsKnown: whatever waits for a server to start when the time of the run
// is up, the server is named.
func TestSilentServerIsKnown(t *testing.T) {
	for _, method := range []string{"call_tool", "list_tools", "query_tool_docs", "tool_signature", "search_tool_docs", "list_resources"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := config.Server{Name: "slow", Alias: "slow", Transport: config.Stdio, Command: "/bin/sleep", Args: []string{"600"}}
			p := mcpproxy.New(config.Config{Servers: []config.Server{s}}, mcpproxy.Options{})
			defer p.Close()
			api := newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: p, Granted: map[string]bool{"slow": true}})
			before := time.Now()
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				for p.Servers()[0].Status != config.StatusStarting {
					time.Sleep(time.Millisecond)
				}
				cancel(runner.ErrTimeout)
			}()
			answer, err := api.carryOut(ctx, method, json.RawMessage(`{"server":"slow","tool":"f","query":"x"}`))
			if err == nil && answer.Make != nil {
				_, err = answer.Make()
			}
			silent := api.o.Gate.Silent()
			if err == nil || silent == nil || silent.Server != "slow" || silent.Since.Before(before) {
				t.Errorf("%v; %+v", err, silent)
			}
		})
	}
}

// TestListsAreMadeWhenTheyAreSent: the server is waited for before, so that making
// one waits for nothing.
func TestListsAreMadeWhenTheyAreSent(t *testing.T) {
	for _, method := range []string{"list_tools", "describe_server"} {
		up := bridgetest.Servers{"up": {"f": nil}}.Proxy(t, bridgetest.Options{})
		answer, err := newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: up}).carryOut(t.Context(), method, json.RawMessage(`{"server":"up"}`))
		if err != nil || answer.Make == nil || answer.JSON != nil || up.KnownTools("up") == nil {
			t.Fatalf("%s: %v, %+v", method, err, answer)
		}
		if list, err := answer.Make(); err != nil || !strings.Contains(string(list), `"name":"f"`) {
			t.Errorf("%s: %s, %v", method, list, err)
		}
	}
}
