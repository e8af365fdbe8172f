package clientconfig_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestEntryOfAClientIsRead(t *testing.T) {
	for _, tt := range []struct {
		file, text string
		want       config.Server // without what every server has
	}{
		{"home/MCPs/x.json", `{"command":["npx","-y","${TOKEN}"]}`, config.Server{Command: "npx", Args: []string{"-y", "t0k3n"}}},
		{"home/MCPs/x.json", `{"command":"c","args":["${TOKEN:-other}","${SET:-other}","${NOPE:-other}"]}`, config.Server{
			Command: "c", Args: []string{"t0k3n", "set by the user", "other"},
		}},
		{"home/.codex/config.toml", "[mcp_servers.x]\ncommand = 'sh'\nargs = ['-c', 'exec x ${A}']\nenv_vars = ['TOKEN']\n", config.Server{
			Command: "sh", Args: []string{"-c", "exec x ${A}"}, Env: map[string]string{"TOKEN": "t0k3n"},
		}},
		{"home/.config/opencode/opencode.json", `{"mcp":{"x":{"type":"local","command":["c","{file: ~/key }","{file:key}"],"timeout":5000}}}`, config.Server{
			Command: "c", Args: []string{"k3y", "near"}, StartTimeout: 5 * time.Second,
		}},
		{"home/.gemini/settings.json", `{"mcpServers":{"x":{"command":"c","excludeTools":["$TOKEN"],"includeTools":["${NOPE}"]}}}`, config.Server{
			Command: "c", AllowTools: []string{"${NOPE}"}, DenyTools: []string{"$TOKEN"},
		}},
		{"home/MCPs/x.json", `{"transport":"sse","url":"https://x"}`, config.Server{Transport: config.SSE, URL: "https://x"}},
		{"home/MCPs/x.json", `{"type":"http","transport":"sse","url":"https://x"}`, config.Server{Transport: config.HTTP, URL: "https://x"}},
		{"home/MCPs/x.json", `{"type":"http","url":"https://x","oauth":true}`, config.Server{Transport: config.HTTP, URL: "https://x"}},
		{"home/MCPs/x.json", `{"type":"http","url":"https://x","oauth":{},"scopes":["a","b"]}`, config.Server{
			Transport: config.HTTP, URL: "https://x", OAuth: &config.OAuth{Scopes: []string{"a", "b"}},
		}},
		{"home/MCPs/x.json", `{"type":"http","url":"https://x","oauth":{"scope":"c d"},"oauthScopes":["a"]}`, config.Server{
			Transport: config.HTTP, URL: "https://x", OAuth: &config.OAuth{Scopes: []string{"c", "d"}},
		}},
	} {
		o := mcptest.Site(t, map[string]string{tt.file: tt.text, "home/key": "k3y\n", "home/.config/opencode/key": "near\r\n"})
		o.Values = func(string) map[string]string { return map[string]string{"SET": "set by the user"} }
		c := clientconfig.Discover(o)
		if len(c.Servers) != 1 {
			t.Errorf("%s: problems = %v", tt.text, c.Problems)
			continue
		}
		got, want := c.Servers[0], tt.want
		if want.Command != "" {
			want.Transport, want.DefaultDir = config.Stdio, o.Home
		}
		want.Name, want.Alias, want.Source, want.Client = "x", "x", filepath.Join(filepath.Dir(o.Home), tt.file), got.Client
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.text, got, want)
		}
	}
}

// TestAddressToComeBackToIsOfThisHost: one of another kind is left out, as only its client
// can serve it, and does not make the entry useless.
func TestAddressToComeBackToIsOfThisHost(t *testing.T) {
	for oauth, want := range map[string]string{
		`{"redirectUri":"http://localhost:8080/back"}`:                       "http://localhost:8080/back",
		`{"redirect_uri":"http://127.0.0.1:8080/back"}`:                      "http://127.0.0.1:8080/back",
		`{"callbackPort":8081,"redirectUri":"http://localhost:8080/back"}`:   "http://localhost:8081/callback",
		`{"redirectUri":"https://localhost:8080/back"}`:                      "",
		`{"redirectUri":"http://localhost/back"}`:                            "",
		`{"redirectUri":"http://example.com:8080/back"}`:                     "",
		`{"redirectUri":"http://[/back"}`:                                    "",
		`{"redirectUri":"cursor://anysphere.cursor-mcp/oauth/callback"}`:     "",
		`{"redirectUri":"http://localhost.example.com:8080/back"}`:           "",
		`{"redirectUri":"http://localhost@example.com:8080/back?127.0.0.1"}`: "",
	} {
		o := mcptest.Site(t, map[string]string{"home/MCPs/x.json": `{"url":"https://x","oauth":` + oauth + `}`})
		c := clientconfig.Discover(o)
		if len(c.Servers) != 1 {
			t.Errorf("%s: problems = %v", oauth, c.Problems)
			continue
		}
		got := ""
		if given := c.Servers[0].OAuth; given != nil {
			got = given.RedirectURL
		}
		if got != want {
			t.Errorf("%s leads back to %q, want %q", oauth, got, want)
		}
	}
}

// opened is the first entry of a file, and the file.
func opened(t *testing.T, client, text string) (*clientconfig.File, clientconfig.Entry) {
	t.Helper()
	o := mcptest.Site(t, map[string]string{"home/vars": "SECRET=t0k3n\n"})
	f, err := clientconfig.Open(clientconfig.Location{
		Path: filepath.Join(o.Home, "file.json"), Dialect: clientconfig.DialectOf(client), Text: text,
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	return f, f.Parse(f.Entries[0])
}

// TestEntryAsWrittenHasNoValues, as it is what is shown and copied.
func TestEntryAsWrittenHasNoValues(t *testing.T) {
	for _, tt := range []struct{ client, text, want string }{
		{"cursor", `{"mcpServers":{"x":{"command":"c","args":["${env:TOKEN}"],"envFile":"vars"}}}`, `["${env:TOKEN}"]`},
		{"codex", `{"mcp_servers":{"x":{"command":"c","env_vars":["TOKEN"],"args":["TOKEN"]}}}`, `["TOKEN"]`},
		{"codex", `{"mcp_servers":{"x":{"url":"https://x","bearer_token_env_var":"TOKEN","env_http_headers":{"X":"TOKEN"}}}}`, `null`},
	} {
		f, e := opened(t, tt.client, tt.text)
		if e.Err != nil {
			t.Fatal(e.Err)
		}
		s, err := f.AsWritten(f.Entries[0])
		args, _ := json.Marshal(s.Args)
		if all, _ := json.Marshal(s); err != nil || string(args) != tt.want || strings.Contains(string(all), "t0k3n") {
			t.Errorf("%s: %s, %v", tt.text, all, err)
		}
	}
}

// TestEntryThatIsSwitchedOffHasItsCommand, which tells whether it is this program.
func TestEntryThatIsSwitchedOffHasItsCommand(t *testing.T) {
	for _, tt := range []struct{ client, text string }{
		{"cursor", `{"mcpServers":{"x":{"command":"/bin/toolcell","args":[5,{}],"disabled":true}}}`},
		{"opencode", `{"mcp":{"x":{"type":"local","command":["/bin/toolcell","serve"],"enabled":false}}}`},
		{"gemini", `{"mcpServers":{"x":{"command":"/bin/toolcell"}},"mcp":{"excluded":["x"]}}`},
	} {
		if _, e := opened(t, tt.client, tt.text); !e.Disabled || e.Err != nil || e.Server.Command != "/bin/toolcell" {
			t.Errorf("%s: %+v", tt.text, e)
		}
	}
}

// TestShellKeepsItsOwnVariables, in all forms of an entry, and the client's are replaced.
func TestShellKeepsItsOwnVariables(t *testing.T) {
	const words = `["-c","exec x ${FOO} $BAR {env:TOKEN}"]`
	for _, text := range []string{
		`{"mcp":{"x":{"type":"local","command":["sh","-c","exec x ${FOO} $BAR {env:TOKEN}"]}}}`,
		`{"mcp":{"x":{"type":"local","command":["sh"],"args":` + words + `}}}`,
	} {
		want := strings.Replace(words, "{env:TOKEN}", "t0k3n", 1)
		_, e := opened(t, "opencode", text)
		if args, err := json.Marshal(e.Server.Args); err != nil || e.Err != nil || string(args) != want {
			t.Errorf("%s: %s, %v", text, args, e.Err)
		}
	}
	if _, e := opened(t, "opencode", `{"mcp":{"x":{"type":"local","command":["x","a","${FOO}"]}}}`); e.Err == nil || !strings.Contains(e.Err.Error(), `item 3 of "command"`) {
		t.Errorf("where there is no shell: %v", e.Err)
	}
}
