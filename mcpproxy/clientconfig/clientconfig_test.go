package clientconfig_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/pyname"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func names(c config.Config) string {
	var all []string
	for _, s := range c.Servers {
		all = append(all, s.Name+"="+s.Command)
	}
	return strings.Join(all, " ")
}

func TestDiscoverTakesTheFirstOfEachName(t *testing.T) {
	o := mcptest.Site(t, map[string]string{
		"project/extra.json":     `{"servers":{"a":{"command":"extra"}}}`,
		"project/.mcp.json":      `{"mcpServers":{"a":{"command":"project"},"b":{"command":"project"},"off":{"command":"x","disabled":true}}}`,
		"home/MCPs/2.json":       `{"mcpServers":{"b":{"command":"two"},"c":{"command":"two"}}}`,
		"home/MCPs/1.json":       `{"mcpServers":{"c":{"command":"one"}}}`,
		"home/MCPs/bare.json":    `{"command":"bare","args":["x"]}`,
		"home/MCPs/.hidden.json": `{"mcpServers":{"hidden":{"command":"x"}}}`,
		"home/MCPs/note.txt":     `not config`,
		"home/.claude.json": `{"numStartups":5,"mcpServers":{"c":{"command":"user"},"d":{"command":"user"},"e":{"command":"user"},"off":{"command":"user"}},
			"projects":{"PROJECT":{"mcpServers":{"d":{"command":"local"}}},"/elsewhere":{"mcpServers":{"z":{"command":"z"}}}}}`,
	})
	o.Extra = "extra.json"
	c := clientconfig.Discover(o)
	if got, want := names(c), "a=extra b=project c=one bare=bare d=local e=user"; got != want {
		t.Errorf("servers = %s, want %s", got, want)
	}
	var left []string
	for _, p := range c.Problems {
		if !p.Skipped {
			t.Errorf("problem %+v, which is nothing to mend", p)
		}
		left = append(left, p.Server+" "+p.Status)
	}
	if got, want := strings.Join(left, ", "), "a skipped, off disabled, b skipped, c skipped, c skipped, d skipped, off skipped"; got != want {
		t.Errorf("left out: %s, want %s", got, want)
	}
	if c.Servers[0].Source != filepath.Join(o.Dir, "extra.json") {
		t.Errorf("source = %s", c.Servers[0].Source)
	}
}

func TestDiscoverOfNothingIsEmpty(t *testing.T) {
	for name, o := range map[string]clientconfig.Options{"zero": {}, "no files": mcptest.Site(t, nil)} {
		if c := clientconfig.Discover(o); len(c.Servers)+len(c.Problems) != 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestEntryFields(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"project/.mcp.json": `{"mcpServers":{"x":{
		"type":"stdio","command":"~/bin/${NAME:-server}","args":["--token","${TOKEN}",8080,true,"${A:-}","$TOKEN"],
		"env":{"PORT":8080,"DEBUG":false,"HOST":"${HOST:-localhost}","BIG":9007199254740993},"cwd":"${DIR}/x","description":"Does things","futureKey":{}}}}`})
	c := clientconfig.Discover(o)
	if len(c.Servers) != 1 {
		t.Fatalf("config = %+v", c)
	}
	s := c.Servers[0]
	if s.Command != filepath.Join(o.Home, "bin/server") || s.Dir != "/opt/x" || s.Description != "Does things" || s.Transport != "stdio" {
		t.Errorf("server = %+v", s)
	}
	if want := []string{"--token", "t0k3n", "8080", "true", "", "$TOKEN"}; !slices.Equal(s.Args, want) {
		t.Errorf("args = %q, want %q", s.Args, want)
	}
	if want := map[string]string{"PORT": "8080", "DEBUG": "false", "HOST": "localhost", "BIG": "9007199254740993"}; !maps.Equal(s.Env, want) {
		t.Errorf("env = %v, want %v", s.Env, want)
	}
}

func TestBadEntryIsReportedAndHidesNoGoodOne(t *testing.T) {
	long := strings.Repeat("n", 129)
	for _, tt := range []struct{ name, entry, want string }{
		{"x", `{"command":""}`, `"command" is empty`},
		{"x", `{"command":" "}`, `"command" is empty`},
		{"x", `{}`, `has no "command"`},
		{"x", `{"command":null}`, `has no "command"`},
		{"x", `{"comand":"c"}`, `has no "command" and no "url", but has "comand"; did you mean "command"?`},
		{"x", `{"Command ":"c"}`, `has no "command" and no "url", but has "Command "; did you mean "command"?`},
		{"x", `{"url ":"https://x"}`, `has no "command" and no "url", but has "url "; did you mean "url"?`},
		{"x", `{"type":"http","urls":"https://x"}`, `has no "url", but has "urls"; did you mean "url"?`},
		{"x", `{"command":"c","arguments":["-y"]}`, `has "arguments", which does nothing; did you mean "args"?`},
		{"x", `{"command":"c","Args":["-y"]}`, `has "Args", which does nothing; did you mean "args"?`},
		{"x", `{"command":"c","environment":{"A":"b"}}`, `has "environment", which does nothing; did you mean "env"?`},
		{"x", `{"url":"https://x","header":{"A":"b"}}`, `has "header", which does nothing; did you mean "headers"?`},
		{"x", `{"command":["npx","-y"]}`, `"command" is not a string`},
		{"x", `{"command":"c","args":"-y"}`, `"args" is not a list`},
		{"x", `{"command":"c","args":[{}]}`, `item 1 of "args" is not a string`},
		{"x", `{"command":"c","args":[null]}`, `item 1 of "args" is not a string`},
		{"x", `{"command":"c","env":["A=b"]}`, `"env" is not an object`},
		{"x", `{"command":"c","env":{"A":[1]}}`, `"A" in "env" is not a string`},
		{"x", `{"command":"c","env":{"A=B":"c"}}`, `no name for an environment variable`},
		{"x", `{"command":"c","env":{"":"c"}}`, `no name for an environment variable`},
		{"x", `{"command":"c","cwd":5}`, `"cwd" is not a string`},
		{"x", `{"command":"c","disabled":"yes"}`, `"disabled" is not true or false`},
		{"x", `{"command":"c","args":["a\u0000b"]}`, `NUL`},
		{"x", `{"command":"c","args":["${NOPE}"]}`, "needs the variable NOPE: run toolcell servers set x NOPE, or start toolcell with NOPE set"},
		{"x", `{"command":"c","env":{"A":"Bearer ${SECRET_TOKEN}","B":"${OTHER}"}}`, "needs the variables SECRET_TOKEN and OTHER"},
		{"x", `{"command":"c","args":["${NOPE:-${NEITHER}}"]}`, "the default of ${NOPE} has a variable in it"},
		{"x", `{"command":"c","cwd":"${input:folder}"}`, "${input:folder} is not supported"},
		{"x", `{"type":"ws","url":"https://example.com"}`, `transport "ws" is not supported`},
		{"x", `{"type":"http","command":"c"}`, `has no "url"`},
		{"x", `{"type":"stdio","url":"https://example.com"}`, `has no "command"`},
		{"x", `{"url":""}`, `"url" is empty`},
		{"x", `{"url":"unix:///run/x"}`, `begins with "unix:"`},
		{"x", `{"url":"https://"}`, "names no host"},
		{"x", `{"url":"https://x\u0007"}`, "is no URL"},
		{"x", `{"url":"https://x","headers":{"A B":"c"}}`, `"A B" is no name for a header`},
		{"x", `{"url":"https://x","headers":{"A":"c\r\nB: d"}}`, `characters that no header can have`},
		{"x", `{"url":"https://x","headers":["A"]}`, `"headers" is not an object`},
		{"x", `{"command":"c","timeout":-1}`, `"timeout" is not a number of milliseconds`},
		{"x", `{"type":"carrier-pigeon","command":"c"}`, `"carrier-pigeon" is unknown`},
		{"x", `{"type":7,"command":"c"}`, `"type" is not a string`},
		{"x", `"npx"`, "not an object"},
		{"x", `null`, "not an object"},
		{"", `{"command":"c"}`, "name is empty"},
		{long, `{"command":"c"}`, "longer than 128"},
		{`a\nb`, `{"command":"c"}`, "control characters"},
	} {
		o := mcptest.Site(t, map[string]string{
			"project/.mcp.json": fmt.Sprintf(`{"mcpServers":{"first":{"command":"1"},"%s":%s,"last":{"command":"2"}}}`, tt.name, tt.entry),
			"home/.claude.json": `{"mcpServers":{"x":{"command":"good"}}}`,
		})
		c := clientconfig.Discover(o)
		if got, want := names(c), "first=1 last=2 x=good"; got != want {
			t.Errorf("%.80s: servers = %s, want %s", tt.entry, got, want)
		}
		if len(c.Problems) != 1 || !strings.Contains(c.Problems[0].String(), tt.want) || c.Problems[0].Skipped ||
			c.Problems[0].Source != filepath.Join(o.Dir, ".mcp.json") {
			t.Errorf("%.80s: problems = %v, want %q", tt.entry, c.Problems, tt.want)
		}
	}
}

func TestBadFileIsReportedAndHidesNoGoodOne(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"{\n  \"mcpServers\": {\n    \"a\": oops\n", "is not JSON: line 3, column 10"},
		{`{"mcpServers":{}`, "is not JSON: line 1"},
		{`{"mcpServers":{}} x`, "is not JSON"},
		{"", "is empty"},
		{"[]", "is not a JSON object"},
		{"null", "is not a JSON object"},
		{`{"other":1}`, `has no "mcpServers"`},
		{`{"mcpServers":[]}`, `"mcpServers" is not an object`},
		{strings.Repeat(" ", clientconfig.MaxSize) + "{}", "is larger than 16 MiB"},
		{"\x00\x01\x02", "is not JSON"},
		{strings.Repeat(`{"a":`, 20_000), "is not JSON"},
	} {
		o := mcptest.Site(t, map[string]string{"home/MCPs/bad.json": tt.text, "home/MCPs/good.json": `{"command":"good"}`})
		c := clientconfig.Discover(o)
		if names(c) != "good=good" || len(c.Problems) != 1 || !strings.Contains(c.Problems[0].Reason, tt.want) ||
			filepath.Base(c.Problems[0].Source) != "bad.json" {
			t.Errorf("%.40q: servers = %s, problems = %v, want %q", tt.text, names(c), c.Problems, tt.want)
		}
	}
}

func TestWhatIsNoFileIsReported(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"home/MCPs/folder.json/x": "", "home/MCPs/good.json": "\xef\xbb\xbf" + `{"command":"good"}`})
	if err := syscall.Mkfifo(filepath.Join(o.Home, "MCPs/pipe.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Extra = "~/missing.json"
	done := make(chan config.Config, 1)
	go func() { done <- clientconfig.Discover(o) }()
	select {
	case c := <-done:
		text := fmt.Sprint(c.Problems)
		for _, want := range []string{"folder.json: is a directory", "pipe.json: is not a regular file", "missing.json: no such file"} {
			if !strings.Contains(text, want) {
				t.Errorf("problems = %s, want %q", text, want)
			}
		}
		if names(c) != "good=good" {
			t.Errorf("servers = %s", names(c))
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("discovery hangs on a named pipe")
	}
}

func TestEntriesThatStartThisProgramAreSkipped(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"home/bin/toolcell": "#!", "home/bin/other": "#!"})
	bin := filepath.Join(o.Home, "bin")
	self := filepath.Join(bin, "toolcell")
	for _, err := range []error{
		os.Chmod(self, 0o755), os.Chmod(filepath.Join(bin, "other"), 0o755),
		os.Symlink(self, filepath.Join(bin, "link")), os.Link(self, filepath.Join(bin, "hard")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	o.Self = self
	path := fmt.Sprintf(`"env":{"PATH":"%s:/usr/bin:/bin"}`, bin)
	for entry, skipped := range map[string]bool{
		`{"command":"toolcell","args":["serve"],` + path + `}`:                              true,
		`{"command":"` + self + `"}`:                                                        true,
		`{"command":"~/bin/toolcell"}`:                                                      true,
		`{"command":"./toolcell","cwd":"~/bin"}`:                                            true,
		`{"command":"link",` + path + `}`:                                                   true,
		`{"command":"hard",` + path + `}`:                                                   true,
		`{"command":"env","args":["A=b","toolcell","serve"],` + path + `}`:                  true,
		`{"command":"/usr/bin/env","args":["-i","` + self + `"]}`:                           true,
		`{"command":"sh","args":["-c","exec toolcell serve"],` + path + `}`:                 true,
		`{"command":"bash","args":["-lc","'` + self + `' serve; true"]}`:                    true,
		`{"command":"uvx","args":["mcp-server-code-execution-mode","run"]}`:                 true,
		`{"command":"uv","args":["--from","git+x/mcp-server-code-execution-mode"]}`:         true,
		`{"command":"other",` + path + `}`:                                                  false,
		`{"command":"other","args":["--repo","toolcell"],` + path + `}`:                     false,
		`{"command":"/opt/runcell/bin/runcell","args":["serve"]}`:                           true, // our former name
		`{"command":"go","args":["run","github.com/x/runcell/cmd/runcell@v0"]}`:             true,
		`{"command":"/opt/toolcell-2/bin/toolcell","args":["serve"]}`:                       true, // another version
		`{"command":"uv","args":["run","python","/src/mcp_server_code_execution_mode.py"]}`: true,
		`{"command":"toolcell-not-there"}`:                                                  false,
	} {
		if err := os.WriteFile(filepath.Join(o.Dir, ".mcp.json"), []byte(`{"mcpServers":{"x":`+entry+`}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		c := clientconfig.Discover(o)
		if got := len(c.Servers) == 0; got != skipped {
			t.Errorf("%s: skipped = %v, want %v", entry, got, skipped)
		}
		if skipped && (len(c.Problems) != 1 || !c.Problems[0].Skipped || !strings.Contains(c.Problems[0].Reason, "this program itself")) {
			t.Errorf("%s: problems = %v", entry, c.Problems)
		}
		allow := o
		allow.AllowSelf = true
		if c := clientconfig.Discover(allow); len(c.Servers) != 1 {
			t.Errorf("%s is skipped though it is allowed: %v", entry, c.Problems)
		}
	}
}

func TestAliases(t *testing.T) {
	taken := map[string]bool{}
	for _, tt := range []struct{ name, want string }{
		{"GitHub", "github"},
		{"git-hub", "git_hub"},
		{"git.hub", "git_hub_2"},
		{"git hub", "git_hub_3"},
		{"git_hub_2", "git_hub_2_2"},
		{"3d", "_3d"},
		{"class", "class_"},
		{"None", "none"},
		{"match", "match"},
		{"async", "async_"},
		{"Import", "import_"},
		{"", "tool"},
		{"日本", "日本"},
		{"--", "tool_2"},
		{"a日", "a日"},
	} {
		if got := pyname.Unique(pyname.Identifier(tt.name), "tool", taken); got != tt.want {
			t.Errorf("Alias(%q) = %q, want %q", tt.name, got, tt.want)
		}
	}
	o := mcptest.Site(t, map[string]string{"project/.mcp.json": `{"mcpServers":{"Servers":{"command":"c"},"my server":{"command":"c"},"my-server":{"command":"c"},"my_server":{"command":"c"},"!":{"command":"c"}}}`})
	var got []string
	for _, s := range clientconfig.Discover(o).Servers {
		got = append(got, s.Alias)
	}
	if want := "servers_ my_server_2 my_server_3 my_server server"; strings.Join(got, " ") != want {
		t.Errorf("aliases = %v, want %s", got, want)
	}
}
