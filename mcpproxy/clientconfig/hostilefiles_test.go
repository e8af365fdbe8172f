package clientconfig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// within fails the test if f takes longer than any file may.
func within(t *testing.T, limit time.Duration, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("not done after %s", limit)
	}
}

func TestHostileTextIsRefusedQuickly(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	dotted := "x" + strings.Repeat(".x", 200_000) + " = 1"
	for _, tt := range []struct{ name, text, want string }{
		{"bomb.yaml", bomb + "mcpServers: *j\n", "aliases stand for too much"},
		{"loop.yaml", "mcpServers: &a\n  x: *a\n", "nested more than 1000 deep"},
		{"merge.yaml", "a: &a\n  <<: *a\nmcpServers: *a\n", "too much"},
		{"deep.yaml", strings.Repeat("[", 100_000), "is not YAML"},
		{"flow.yaml", strings.Repeat("{a: ", 5000) + "1" + strings.Repeat("}", 5000), "nested more than 1000 deep"},
		{"keys.yaml", "? [a]\n: 1\n", "a key is not a string"},
		{"big.yaml", "# " + strings.Repeat("x", 1<<20), "is larger than 1 MiB"},
		{"wrong.yaml", "mcpServers:\n  a: {command: x\n  b: y: z\n", "is not YAML: line "},
		{"tab.yaml", "mcpServers:\n\ta: 1\n", "is not YAML: line 2"},
		{"deep.toml", "a = " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "is not TOML: line 1, column "},
		{"deeper.toml", "a = " + strings.Repeat("[", 200_000), "is not TOML: line 1, column 10005: arrays and inline tables are nested more than"},
		{"many.toml", "a = " + strings.Repeat("[", 400_000), "is not TOML: line 1, column 250004: it has too many keys and values"},
		{"dots.toml", dotted, "is not TOML: line 1, column 201: nested more than 100 deep"},
		{"inline.toml", "a = {" + dotted + "}", "nested more than 100 deep"},
		{"wrong.toml", "[mcp_servers.a]\ncommand = \n", "is not TOML: line 2, column "},
		{"twice.toml", "[mcp_servers.a]\n[mcp_servers.a]\n", "is not TOML: line 2"},
		{"deep.json", strings.Repeat(`{"a":[`, 1_000_000), "is not JSON: line 1, column "},
		{"comments.json", strings.Repeat("[/*[*/", 3000), "nested more than 1000 deep"},
		{"comment.json", "// only", "is not JSON: line 1"},
		{"open.json", `{"mcpServers":{}} /* `, "is not JSON: line 1"},
		{"wrong.json", "{\n  // why\n  \"mcpServers\": {,}\n}", "is not JSON: line 3, column 18"},
		{"nul.json", "{\"mcpServers\":{\"a\x00\":{}}}", "is not JSON: line 1"},
		{"nul.toml", "a = \"\x00\"", "is not TOML"},
		{"nul.yaml", "a: \"\x00\"", "is not YAML"},
		{"utf8.toml", "a = \"\xff\"", "is not TOML"},
		{"utf8.yaml", "a: \xff\xfe\x00", "is not YAML"},
		{"list.json", `{"mcpServers":[{"command":"x"}]}`, `item 1 of "mcpServers" has no "name"`},
		{"list2.json", `{"mcpServers":[1]}`, `item 1 of "mcpServers" is not an object`},
		{"list3.json", `{"mcpServers":[null]}`, `item 1 of "mcpServers" is empty (null)`},
		{"list.yaml", "mcpServers:\n  - name: a\n    command: b\n  -\n", `item 2 of "mcpServers" is empty (null)`},
		{"name.yaml", "mcpServers:\n  - name:\n    command: b\n", `item 1 of "mcpServers" has no "name"`},
		{"null.yaml", "mcpServers:\n  a:\n", `its entry is empty (null)`},
		{"list.toml", "mcp_servers = [1]", `item 1 of "mcp_servers" is not an object`},
	} {
		within(t, time.Minute, func() {
			o := mcptest.Site(t, map[string]string{"home/MCPs/" + tt.name: tt.text, "home/MCPs/zz.json": `{"command":"good"}`})
			c := clientconfig.Discover(o)
			if names(c) != "zz=good" || len(c.Problems) != 1 || !strings.Contains(c.Problems[0].Reason, tt.want) {
				t.Errorf("%s: servers = %s, problems = %.300v, want %q", tt.name, names(c), c.Problems, tt.want)
			}
		})
	}
}

// TestFilesOfProjectsAreShort, as anyone may have written them; the user's own may be long.
func TestFilesOfProjectsAreShort(t *testing.T) {
	const size = 96 << 10
	file := func(n int) string {
		text := `{"mcpServers":{"a":{"command":"x"}}}`
		return text + strings.Repeat(" ", n-len(text))
	}
	for _, tt := range []struct {
		name, text string
		fails      bool
	}{
		{"project/.mcp.json", file(size), false},
		{"project/.mcp.json", file(size + 1), true},
		{"project/.vscode/mcp.json", file(size + 1), true},
		{"project/.codex/config.toml", "# " + strings.Repeat("x", size), true},
		{"home/.claude.json", file(size + 1), false},
	} {
		c := clientconfig.Discover(mcptest.Site(t, map[string]string{tt.name: tt.text}))
		if fails := len(c.Problems) == 1 && strings.Contains(c.Problems[0].Reason, "is larger than 96 KiB"); fails != tt.fails || !fails && len(c.Servers) != 1 {
			t.Errorf("%s of %d bytes: %s, %.300v", tt.name, len(tt.text), names(c), c.Problems)
		}
	}
}

func TestCommentsTrailingCommasAndMarksAreRead(t *testing.T) {
	for name, text := range map[string]string{
		"a.json": "\xef\xbb\xbf// x\n{\"mcpServers\": {\"a\": {\"command\": \"/http://[{\", /* [[ */ \"args\": [1, 2,],},},} // end",
		"a.toml": "\xef\xbb\xbfmcp_servers.a = { command = \"/http://[{\", args = [1, 2,] }",
		"a.yaml": "\xef\xbb\xbfmcpServers:\n  a: {command: '/http://[{', args: [1, 2,]}\n...\n---\nmore: 1\n",
	} {
		c := clientconfig.Discover(mcptest.Site(t, map[string]string{"home/MCPs/" + name: text}))
		if len(c.Servers) != 1 || c.Servers[0].Command != "/http://[{" || strings.Join(c.Servers[0].Args, " ") != "1 2" {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

//test:alone
func TestManyEntriesAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads thousands of entries")
	}
	var good, bad strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&good, `"s%d":{"command":"c%d"},`, i, i)
		fmt.Fprintf(&bad, `"b%d":{},`, i)
	}
	o := mcptest.Site(t, map[string]string{
		"home/MCPs/bad.json":  `{"mcpServers":{` + bad.String() + `}}`,
		"home/MCPs/good.json": `{"mcpServers":{` + good.String() + `}}`,
		"project/.mcp.json":   `{"mcpServers":{` + good.String() + `}}`,
	})
	o.Trusted = nil
	within(t, time.Minute, func() {
		c := clientconfig.Discover(o)
		if len(c.Servers) != clientconfig.MaxServers || len(c.Problems) != 1 && len(c.Problems) > clientconfig.MaxProblems+1 {
			t.Errorf("%d servers, %d problems", len(c.Servers), len(c.Problems))
		}
		if last := c.Problems[len(c.Problems)-1]; !strings.Contains(last.Reason, "more than 1000 entries cannot be used") {
			t.Errorf("the last problem is %v", last)
		}
	})
}

func TestWhatStandsInPlaceOfAFileIsReported(t *testing.T) {
	o := mcptest.Site(t, map[string]string{
		"project/.cursor":              "a file where a folder is meant",
		"project/.vscode/mcp.json/x":   "",
		"home/.codex/config.toml/x":    "",
		"home/.claude.json":            `{"mcpServers":{"good":{"command":"good"},"fifo":{"command":"x","env":{"A":"b"}}}}`,
		"home/.cursor/mcp.json":        `{"mcpServers":{"pipe":{"command":"x","envFile":"pipe"},"dir":{"command":"x","envFile":"."},"zero":{"command":"x","envFile":"/dev/zero"}}}`,
		"home/.config/mcp/servers":     "no folder",
		"home/.continue/config.yaml/x": "",
	})
	loop := filepath.Join(o.Dir, ".mcp.json")
	for _, err := range []error{
		os.Symlink(loop, loop), syscall.Mkfifo(filepath.Join(o.Home, ".cursor/pipe"), 0o600),
		os.MkdirAll(filepath.Join(o.Home, ".config/goose"), 0o700), syscall.Mkfifo(filepath.Join(o.Home, ".config/goose/config.yaml"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	within(t, time.Minute, func() {
		c := clientconfig.Discover(o)
		text := fmt.Sprint(c.Problems)
		for _, want := range []string{
			".mcp.json: too many levels of symbolic links", ".vscode/mcp.json: is a directory", "config.toml: is a directory",
			"goose/config.yaml: is not a regular file", "pipe cannot be read: is not a regular file", "cannot be read: is a directory", "/dev/zero cannot be read: is not a regular file",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("problems = %s, want %q", text, want)
			}
		}
		if names(c) != "good=good fifo=x" {
			t.Errorf("servers = %s", names(c))
		}
	})
}
