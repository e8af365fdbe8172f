package runner

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/bridgetest"
)

// rtSome runs a test under the oldest and the newest Python and one between,
// another one for each case.
func rtSome(t *testing.T, number int, test func(t *testing.T, py bridgetest.Python)) {
	t.Helper()
	all := bridgetest.Pythons(t)
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
		if py == all[0] || py == all[len(all)-1] || py == all[number%len(all)] {
			test(t, py)
		}
	})
}

// TestRunnerShowsValuesAsANotebook looks at trailing expressions.
func TestRunnerShowsValuesAsANotebook(t *testing.T) {
	t.Parallel()
	wide := `{"name": "Ada", "langs": ["en", "fr"], "address": {"street": "12 St James's Square", "city": "London"}, "note": "first"}`
	rtTable(t, rtHost{}, []rtCase{
		{name: "short list", code: "[1, 'a', None]", result: "[1, 'a', None]"},
		{name: "nested and short", code: "{'a': [1, (2,), {3}], 'b': {}, 'c': set(), 'd': frozenset({1}), 'e': ()}", result: "{'a': [1, (2,), {3}], 'b': {}, 'c': set(), 'd': frozenset({1}), 'e': ()}"},
		{
			name: "wide", code: "[" + wide + "]",
			result: "[{'name': 'Ada',\n  'langs': ['en', 'fr'],\n  'address': {'street': \"12 St James's Square\", 'city': 'London'},\n  'note': 'first'}]",
		},
		{name: "numbers fill lines", code: "out = list(range(60))\nout", result: "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,\n 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50,\n 51, 52, 53, 54, 55, 56, 57, 58, 59]"},
		{name: "a container in itself", code: "a = [1, 2]\na.append(a)\na", result: "[1, 2, …]"},
		{name: "repr of its own", code: "from collections import Counter, OrderedDict, namedtuple\nP = namedtuple('P', 'x y')\n[Counter('aab'), P(1, 2)]", result: "[Counter({'a': 2, 'b': 1}), P(x=1, y=2)]"},
		{name: "answers of tools", code: "from mcp import runtime\n(await mcp_github.echo(a=1, b=[2])).arguments", result: "{'a': 1, 'b': [2]}"},
		{name: "repr that raises", code: "class Bad:\n    def __repr__(self): raise ValueError('no')\n[Bad()]", exit: 1, err: "ValueError: no", stderr: []string{"line 2, in __repr__"}},
	})
}

// TestRunnerBoundsLongValues: a note says how much of a value was cut.
func TestRunnerBoundsLongValues(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		name, code string
		most       int
		want       []string
	}{
		{"many items", "list(range(100000))", 1300, []string{"[0, 1, 2", " 199, … 99,800 more, 100,000 in all]"}},
		{"many keys", "{f'key{i}': 'x' * 50 for i in range(5000)}", 21000, []string{"{'key0': 'xxx", "'key199': ", "… 4,800 more, 5,000 in all}"}},
		{"a long text inside", "{'text': 'é' * 100000}", 2100, []string{"… (100,000 characters)}"}},
		{"deep", "deep = []\nfor i in range(100000): deep = [deep]\ndeep", 200, []string{"…"}},
		{"wide and deep", "[[['x' * 50] * 500] * 500] * 500", 21000, []string{"… cut: ", "characters as it is shown"}},
		{"an own repr inside", "class A:\n    def __repr__(self): return 'a' * 10000\n[A()]", 4100, []string{"… (10,000 characters)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rtSome(t, i, func(t *testing.T, py bridgetest.Python) {
				out := rtHost{}.run(t, py, c.code)
				result, _ := out.done[0]["result"].(string)
				if out.exit != 0 || len([]rune(result)) > c.most {
					t.Errorf("exit %d, %d characters, want at most %d; %s", out.exit, len([]rune(result)), c.most, out.stderr)
				}
				for _, want := range c.want {
					if !strings.Contains(result, want) {
						t.Errorf("result lacks %q: %.300s … %s", want, result, result[max(0, len(result)-200):])
					}
				}
			})
		})
	}
}

// TestRunnerSaysWhatWasMeant goes through the errors about names, on Pythons
// that say it themselves and on those that do not.
func TestRunnerSaysWhatWasMeant(t *testing.T) {
	t.Parallel()
	for i, c := range []struct{ name, code, want string }{
		{"builtin", "pritn(1)", ". Did you mean: 'print'?"},
		{"local", "def f():\n    count = 1\n    return cuont\nf()", ". Did you mean: 'count'?"},
		{"module not imported", "json.dumps(1)", "import 'json'"},
		{"attribute", "'x'.uper()", ". Did you mean: 'upper'?"},
		{"attribute of an attribute", "import os\nos.path.joni('a')", ". Did you mean: 'join'?"},
		{"attribute, by case", "class Box:\n    fullName = 1\nbox = Box()\nbox.full_name", ". Did you mean: 'fullName'?"},
		{"name in a module", "from json import dmups", ". Did you mean: 'dumps'?"},
		{"module", "import jsno", ". Did you mean: 'json'?"},
		{"part of a package", "import email.mesage", ". Did you mean: 'email.message'?"},
		{"function of runtime", "mcp.runtime.search_tools('x')", "no attribute 'search_tools'. Did you mean: await runtime.search_tool_docs(query, *, limit=5, detail='summary')?"},
		{"function of runtime that is only awaited", "mcp.runtime.call_tool_sync('a', 'b')", "no attribute 'call_tool_sync'. Did you mean: await runtime.call_tool(server, tool, arguments=None, *, check=True)?"},
		{"function of runtime by another name", "mcp.runtime.invokeTool('a', 'b')", "no attribute 'invokeTool'. Did you mean: await runtime.call_tool(server, tool, arguments=None, *, check=True)?"},
		{"function of runtime without await", "mcp.runtime.saved_tool()", "no attribute 'saved_tool'. Did you mean: runtime.saved_tools()?"},
		{"exception of runtime", "mcp.runtime.McpError", "Did you mean: runtime.MCPError?"},
		{"name in runtime", "from mcp.runtime import search_tools", "Did you mean: 'search_tool_docs'?"},
		{"key", "row = {'title': 1, 'body': 2}\nrow['titel']", "KeyError: 'titel'. Did you mean: 'title'?"},
		{"key, deeper", "data = {'items': [{'userName': 1}]}\nprint(data['items'][0]['user_name'])", "Did you mean: 'userName'?"},
		{"key, popped", "row = {'title': 1}\nrow.pop('tilte')", "Did you mean: 'title'?"},
		{"key, in a function", "def f(row):\n    return row['tilte']\nfor r in [{'title': 1}]: f(r)", "Did you mean: 'title'?"},
		{"key, nothing near", "row = {'title': 1, 'body': 2}\nrow['zzz']", "KeyError: 'zzz'; there are: title, body"},
		{"key of an answer without a name", "(await mcp_github.echo(total=3))['argumnets']", "KeyError: 'argumnets'. Did you mean: 'arguments'?"},
		{"index of an answer", "(await mcp_github.echo(total=3))[0]", "KeyError: 0: this is a mapping, not a list; its keys are: "},
		{"loop over an answer", "for t in await mcp_github.echo(total=3):\n    t['title']", "; t is 'arguments': a loop over a mapping gives its keys"},
		{"attribute in a loop over a mapping", "found = {'tasks': 1}\nfor t in found: t.id", "; t is 'tasks': a loop over a mapping gives its keys"},
		{"loop over a mapping with a name", "found = {'tasks': 1}\nfor t in found:\n    t['id']", "; t is 'tasks': a loop over a mapping gives its keys"},
		{"key of a server's answer", "answer = await mcp_github.echo(total=3)\nanswer['arguments']['totla']", "Did you mean: 'total'?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rtSome(t, i, func(t *testing.T, py bridgetest.Python) {
				out := rtHost{}.run(t, py, c.code)
				err, _ := out.done[0]["error"].(string)
				last := strings.TrimSpace(out.stderr)
				last = last[strings.LastIndex(last, "\n")+1:]
				if !strings.Contains(err, c.want) || !strings.Contains(last, c.want) {
					t.Errorf("error %q, last line %q, want %q", err, last, c.want)
				}
			})
		})
	}
}

// TestRunnerErrorsSurviveHostileObjects: looking for what was meant goes
// through objects of the code's, which may do anything.
func TestRunnerErrorsSurviveHostileObjects(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"dir raises":       "class A:\n    def __dir__(self): raise SystemExit(3)\nA().x",
		"dir is endless":   "class A:\n    def __dir__(self): return ('x%d' % i for i in range(3))\nA().y",
		"dir of no names":  "class A:\n    def __dir__(self): return [1, None]\nA().y",
		"keys raises":      "class A(dict):\n    def keys(self): raise ValueError\na = A()\na['k']",
		"keys of no order": "a = {1: 2, None: 3, 'b' * 100000: 4}\na['k']",
		"huge name":        "getattr(1, 'x' * 1000000)",
		"many names":       "a = {'k%d' % i: i for i in range(1000000)}\na['kk']",
		"error in error":   "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
		"chain":            "e = None\nfor i in range(5000):\n    n = ValueError(i)\n    n.__context__ = e\n    e = n\nraise e",
		"no traceback":     "import traceback\ntraceback.TracebackException = None\n{}['x']",
	} {
		t.Run(name, func(t *testing.T) {
			rtSome(t, len(name), func(t *testing.T, py bridgetest.Python) {
				out := rtHost{}.run(t, py, code)
				if out.exit != 1 || len(out.done) != 1 || out.stderr == "" || len(out.stderr) > 20000 || strings.Contains(out.stderr, "runner") {
					t.Errorf("exit %d, %d done, %d bytes of stderr: %.2000s", out.exit, len(out.done), len(out.stderr), out.stderr)
				}
			})
		})
	}
}
