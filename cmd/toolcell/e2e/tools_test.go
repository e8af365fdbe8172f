package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const savingCode = `from mcp import runtime
import math

def area(radius: float) -> float:
    "The area of a circle.\n\nOf any radius."
    return math.pi * radius ** 2

def shout(text):
    return text.upper() + "!"

runtime.save_tool(area)
runtime.save_tool(shout)
None
`

// TestToolsCommands: what code saved through an MCP client is there in a shell,
// in the same project and in no other.
//
//test:mainjob
func TestToolsCommands(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		e := h.ownState(t)
		e["TOOLCELL_IMAGE"], e["HOME"] = "host", h.home
		in := *h
		in.home = filepath.Join(e["TOOLCELL_STATE_DIR"], "project")
		if err := os.Mkdir(in.home, 0o777); err != nil {
			t.Fatal(err)
		}
		if r := in.serve(t, e).python(t, savingCode); r.isError {
			t.Fatal(r.text)
		}
		out := in.must(t, e, "tools", "list")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[0], "TOOL") || !strings.HasPrefix(lines[1], "area(radius: float) -> float") ||
			!strings.Contains(lines[1], "The area of a circle.") || !strings.HasPrefix(lines[2], "shout(text)") {
			t.Errorf("tools list:\n%s", out)
		}
		var list []struct {
			Name, Source string
			Imports      []string
		}
		if err := json.Unmarshal([]byte(in.must(t, e, "tools", "list", "--json")), &list); err != nil || len(list) != 2 || list[0].Name != "area" {
			t.Errorf("tools list --json: %v, %+v", err, list)
		}
		if out := in.must(t, e, "tools", "show", "area"); !strings.HasPrefix(out, "# area, saved 2") || !strings.Contains(out, "    return math.pi * radius ** 2\n") {
			t.Errorf("tools show:\n%s", out)
		}
		if err := json.Unmarshal([]byte(in.must(t, e, "tools", "show", "--json", "shout")), &list); err != nil || len(list) != 1 || !strings.Contains(list[0].Source, "upper") {
			t.Errorf("tools show --json: %v, %+v", err, list)
		}

		module := in.must(t, e, "tools", "export")
		if out := pythonSays(t, module+"\nprint(round(area(2), 3), shout('a'))"); out != "12.566 A!\n" {
			t.Errorf("the exported module says %q:\n%s", out, module)
		}
		if one := in.must(t, e, "tools", "export", "shout"); strings.Contains(one, "area") || !strings.Contains(one, "def shout") {
			t.Errorf("tools export shout:\n%s", one)
		}

		if out := in.must(t, e, "tools", "rm", "area"); out != "removed: area\n" {
			t.Errorf("tools rm: %q", out)
		}
		for _, args := range [][]string{{"tools", "show", "area"}, {"tools", "rm", "area"}, {"tools", "export", "area"}} {
			if out, errs, code := in.run(t, e, args...); code != exitFail || out != "" || !strings.Contains(errs, `"area"`) || !strings.Contains(errs, "shout") || !strings.Contains(errs, "hint: tools are kept by project") {
				t.Errorf("%v: exit %d, %q, %s", args, code, out, errs)
			}
		}
		if out, errs, code := h.run(t, e, "tools", "list"); code != 0 || out != "" || !strings.Contains(errs, "no tools are saved") {
			t.Errorf("outside of the project: exit %d, %q, %s", code, out, errs)
		}
		if out := h.must(t, e, "tools", "list", "--json"); out != "[]\n" {
			t.Errorf("outside of the project: %q", out)
		}
		for _, args := range [][]string{{"tools"}, {"tools", "list", "x"}, {"tools", "show"}, {"tools", "rm"}, {"tools", "zzz"}} {
			if _, errs, code := h.run(t, e, args...); (code != exitUsage) != (len(args) == 1) {
				t.Errorf("%v: exit %d, %s", args, code, errs)
			}
		}
	})
}

// pythonSays runs code with the host's Python, outside of any sandbox.
func pythonSays(t *testing.T, code string) string {
	t.Helper()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("needs the host's Python: apt-get install python3")
	}
	out, err := exec.Command("/usr/bin/python3", "-c", code).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	return string(out)
}

// TestToolsShowNothingToObey: the source of a tool came out of a sandbox.
func TestToolsShowNothingToObey(t *testing.T) {
	h := firstHost(t)
	e := h.ownState(t)
	e["NO_COLOR"], e["TOOLCELL_IMAGE"], e["TERM"] = "1", "host", "xterm"
	code := "from mcp import runtime\ndef f():\n\t'\x1b[2J\x07 cleared'\nruntime.save_tool(f)\nNone"
	h.must(t, e, "exec", "-c", code)
	for _, args := range [][]string{{"tools", "show", "f"}, {"tools", "export", "f"}, {"tools", "list"}} {
		p := atTerminal(t, h.command(t, e, args...), 80)
		p.leaves()
		p.sees("cleared")
		if strings.ContainsAny(p.screen.String(), "\x1b\x07") {
			t.Errorf("%v: %q", args, p.screen)
		}
	}
}
