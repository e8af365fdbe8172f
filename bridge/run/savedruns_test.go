package run

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/savedtools"
)

const saving = `
from mcp import runtime
import json
from collections import Counter as Count
RATE, gh = 1.2, mcp_github

@runtime.save_tool
def net_price(gross: float, digits: int = 2) -> float:
    """Take the sales tax off a price.

    More of it.
    """
    return json.loads(json.dumps(round(gross / RATE, digits))), Count("aa")["a"], gh is mcp_github or type(gh).__name__
`

func TestSavedToolStandsBesideUpstreamTools(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many Pythons")
	}
	t.Parallel()
	s := newServer(t, fakeUpstreams{"github": {"echo": func(context.Context, json.RawMessage) (string, error) { return "{}", nil }}}, nil)
	if r := runCode(t, s, saving); r.IsError() {
		t.Fatalf("%+v", r)
	}
	for name, c := range map[string]struct{ code, want string }{
		"by name":                  {"net_price(120)", "(100.0, 2, 'Server')"},
		"by import":                {"from user_tools import net_price as n\nn(12, digits=0)", "(10.0, 2, 'Server')"},
		"search":                   {"[(h.server, h.tool, 'user_tools import net_price' in h.description) for h in await runtime.search_tool_docs('price without tax')]", "[('user_tools', 'net_price', True)]"},
		"search for another thing": {"await runtime.search_tool_docs('weather forecast')", "[]"},
		"docs":                     {"runtime.query_tool_docs_sync('user_tools')[0].description", "'Saved tool (from user_tools import net_price). Take the sales tax off a price.'"},
		"full docs":                {"d = await runtime.query_tool_docs('user_tools', 'net_price', detail='full')\nprint(d)\nrepr(d.inputSchema)", `"{'type': 'object', 'properties': {'gross': {'type': 'number'}, 'digits': {'type': 'integer', 'default': 2}}, 'required': ['gross']}"`},
		"tools of it":              {"[t.name for t in runtime.list_tools_sync('user_tools')], runtime.describe_server('user_tools').tools[0].name", "(['net_price'], 'net_price')"},
		"dir":                      {"import user_tools\ndir(user_tools), (await runtime.saved_tools())[0].name", "(['net_price'], 'net_price')"},
		"list":                     {"[(t.name, t.signature, t.imports, t.doc[:4], 'source' in t) for t in runtime.saved_tools()]", "[('net_price', '(gross: float, digits: int = 2) -> float', ['collections', 'json'], 'Take', False)]"},
		"export":                   {"scope = dict(mcp_servers=mcp_servers, mcp_github=0)\nexec(await runtime.export_tools('net_price'), scope)\nscope['net_price'](6)[0]", "5.0"},
		"not a tool of it":         {"try: runtime.query_tool_docs_sync('user_tools', 'netprice')\nexcept runtime.MCPError as e: print(e)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := runCode(t, s, "from mcp import runtime\n"+c.code)
			if r.IsError() || r.Result != c.want {
				t.Errorf("got %s, want %s\n%s", r.Result, c.want, strings.Join(r.Stderr, "\n"))
			}
			if out := strings.Join(r.Stdout, "\n"); name == "full docs" && !strings.HasPrefix(out, "# from user_tools import net_price\nnet_price(gross: float, digits: int = 2) -> float") {
				t.Errorf("printed:\n%s", out)
			}
		})
	}
	r := runCode(t, s, "from mcp import runtime\nnet_price(1)\nruntime.remove_tool('net_price')\nimport user_tools\nuser_tools.net_price")
	if !r.IsError() || !strings.Contains(r.Error, "no saved tool 'net_price'") {
		t.Errorf("after it was removed: %+v", r)
	}
	if r := runCode(t, s, "from mcp import runtime\nruntime.saved_tools()"); r.Result != "()" {
		t.Errorf("left: %+v", r)
	}
}

func TestSavedToolThatDoesNotImportIsSkippedWithANote(t *testing.T) {
	s := newServer(t, nil, nil)
	for name, source := range map[string]string{"gone": "import no_such_module\ndef gone(): pass\n", "good": "def good(): return 1\n"} {
		if err := s.saved.Save(savedtools.Tool{Name: name, Source: source}); err != nil {
			t.Fatal(err)
		}
	}
	const want = `saved tool "gone" was skipped: ModuleNotFoundError: No module named 'no_such_module' (runtime.remove_tool("gone") removes it)`
	for code, note := range map[string]string{"from user_tools import *\ngood()": want, "good()": "", "try: gone()\nexcept NameError: pass": want} {
		r := runCode(t, s, code)
		if r.IsError() || strings.Join(r.Notes, "; ") != note || len(r.Stderr) > 0 {
			t.Errorf("%s: %+v", code, r)
		}
	}
}

// TestSavedToolsOfHostileCode: whatever is said about a tool is bounded.
//
//test:long
func TestSavedToolsOfHostileCode(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil, nil)
	r := runCode(t, s, `
from mcp import runtime
host = runtime.saved_tools.__self__.host
big = "x" * (1 << 20)
host.ask("save_tool", {"name": "a", "source": "", "doc": big[:100_000], "signature": "\n" * 1000 + big[:90_000], "imports": ["\x1b"] * 9999})
for wrong in ({"name": "b", "source": big}, {"name": "b", "imports": [0]}, {"name": "../b"}, {"name": "b", "doc": big * 8}):
    try: host.ask("save_tool", wrong)
    except runtime.MCPError as e: print(e)
for i in range(9999): host.ask("saved_failed", {"name": "a%d" % i, "source": big[:9999] + "\n" * 99})
`)
	a, err := s.saved.Show("a")
	if err != nil || len(a.Doc) > (8<<10)+100 || len(a.Signature) > (2<<10)+100 || strings.Contains(a.Signature, "\n") || len(a.Imports) > 100 {
		t.Errorf("kept %d, %d, %d (%v)", len(a.Doc), len(a.Signature), len(a.Imports), err)
	}
	if len(r.Stdout) != 4 || len(r.Notes) > 5 || len(strings.Join(r.Notes, "")) > 4000 {
		t.Errorf("%+v", r)
	}
}

// TestNoSavedToolStandsInForAModule: what code forgot to import is missing. It is
// never a function of an earlier run, which would get the grants of this one.
//
//test:long
func TestNoSavedToolStandsInForAModule(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil, nil)
	for name, want := range map[string]string{
		"json": "'json' is the name of a module", "statistics": "'statistics' is the name of a module",
		"pd": "pd is the usual name for something of the module pandas", "requests": "requests is the name of a module",
	} {
		r := runCode(t, s, "from mcp import runtime\ndef "+name+"(): return 'taken'\nruntime.save_tool("+name+")")
		if !r.IsError() || !strings.HasPrefix(r.Error, "ValueError: ") || !strings.Contains(r.Error, want) || !strings.Contains(r.Error, "another name") {
			t.Errorf("saving %s: %q", name, r.Error)
		}
		// Hostile code does not ask the runner.
		runCode(t, s, "from mcp import runtime\nhost = runtime.saved_tools.__self__.host\n"+
			"try: host.ask('save_tool', {'name': '"+name+"', 'source': 'def "+name+"(): return \"taken\"\\n'})\nexcept ValueError: pass")
		for _, code := range []string{name + "()", "from user_tools import *\n" + name + "()", "from user_tools import " + name} {
			if r := runCode(t, s, code); !r.IsError() || strings.Contains(strings.Join(r.Stderr, "\n"), "taken") {
				t.Errorf("%s: %s", code, strings.Join(r.Stderr, "\n"))
			}
		}
	}
	const note = `saved tool "statistics" was skipped: statistics is the name of a module here (runtime.remove_tool("statistics") removes it)`
	if r := runCode(t, s, "statistics.mean([1])"); len(r.Notes) != 1 || r.Notes[0] != note || !strings.Contains(r.Error, "Did you forget to import 'statistics'") {
		t.Errorf("%+v", r)
	}
	if r := runCode(t, s, "import statistics\nstatistics.mean([1])"); r.IsError() || len(r.Notes) > 0 {
		t.Errorf("%+v", r)
	}
	if r := runCode(t, s, "from mcp import runtime\nruntime.remove_tool('statistics')"); r.IsError() {
		t.Errorf("%+v", r)
	}
}

func TestReplacingASavedToolIsNoted(t *testing.T) {
	s := newServer(t, nil, nil)
	save := func(value string) []string {
		return runCode(t, s, "from mcp import runtime\ndef value(): return "+value+"\nruntime.save_tool(value)\nNone").Notes
	}
	if first, same := save("1"), save("1"); len(first)+len(same) > 0 {
		t.Errorf("notes %q, %q", first, same)
	}
	if notes := save("2"); len(notes) != 1 || !strings.HasPrefix(notes[0], `saved tool "value" replaced another, saved at 20`) {
		t.Errorf("notes %q", notes)
	}
}
