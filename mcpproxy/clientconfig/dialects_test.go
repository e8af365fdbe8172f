package clientconfig_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestClientsFiles reads files as the clients have them, each folder of
// testdata/clients being one client's home and project, and compares all that
// came of it with want.json. UPDATE_GOLDEN=1 writes these anew, to be read over.
func TestClientsFiles(t *testing.T) {
	dirs, err := os.ReadDir("testdata/clients")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, dir := range dirs {
		t.Run(dir.Name(), func(t *testing.T) {
			root := filepath.Join("testdata/clients", dir.Name())
			o := mcptest.SiteOf(t, root)
			c := clientconfig.Discover(o)
			for _, s := range c.Servers {
				seen[s.Client] = true
			}
			body, err := json.MarshalIndent(filled(t, c), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got := strings.NewReplacer(o.Home, "HOME", o.Dir, "PROJECT").Replace(string(body)) + "\n"
			golden := filepath.Join(root, "want.json")
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("found is not as in %s:\n%s", golden, got)
			}
			for _, s := range c.Servers {
				if text, _ := json.Marshal(s); dir.Name() != "codex" && (strings.Contains(string(text), "${") || strings.Contains(string(text), "{env:")) {
					t.Errorf("a variable is passed on as it is written: %s", text)
				}
			}
		})
	}
	for _, d := range clientconfig.Dialects {
		if !seen[d.Client] {
			t.Errorf("no file of %s is tested", d.Client)
		}
	}
}

// filled returns v as decoded JSON, without empty values.
func filled(t *testing.T, v any) any {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var all any
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatal(err)
	}
	var drop func(v any) any
	drop = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k, member := range v {
				member = drop(member)
				if v[k] = member; member == nil || member == "" || member == 0.0 || member == false {
					delete(v, k)
				}
			}
			if len(v) == 0 {
				return nil
			}
		case []any:
			for i := range v {
				v[i] = drop(v[i])
			}
		}
		return v
	}
	return drop(all)
}

// TestEveryClientsEntryMaySayHowLongItTakesToStart, whether that client has a name for it
// or not.
func TestEveryClientsEntryMaySayHowLongItTakesToStart(t *testing.T) {
	for file, text := range map[string]string{
		"project/.mcp.json":                 `{"mcpServers":{"a":{"command":"c","timeout":1000,"startup_timeout_sec":90}}}`,
		"home/.cursor/mcp.json":             `{"mcpServers":{"a":{"command":"c","startup_timeout_ms":90000}}}`,
		"home/.gemini/settings.json":        `{"mcpServers":{"a":{"command":"c","startup_timeout_sec":90}}}`,
		"home/.codex/config.toml":           "[mcp_servers.a]\ncommand = 'c'\nstartup_timeout_sec = 90",
		"home/.config/goose/config.yaml":    "extensions: {a: {cmd: c, timeout: 5, startup_timeout_sec: 90}}",
		"home/.config/opencode/config.json": `{"mcp":{"a":{"type":"local","command":["c"],"timeout":90000}}}`,
		"home/MCPs/a.json":                  `{"command":"c","startup_timeout_sec":90}`,
	} {
		o := mcptest.Site(t, map[string]string{file: text})
		c := clientconfig.Discover(o)
		if len(c.Servers) != 1 || c.Servers[0].StartTimeout != 90*time.Second {
			t.Errorf("%s: %+v, %v", file, c.Servers, c.Problems)
		}
	}
}
