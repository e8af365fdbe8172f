package repl

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// typedCode is code in pieces as Python's prompt takes them.
var typedCode = [][]string{
	{"x = 1"},
	{"print('a'); print(\"b\")"},
	{"f(1,", "  2)"},
	{"x = [", "1,  # ]", "'}'", "]"},
	{"s = '''one", "", "  # not a comment", "two'''"},
	{`s = """a \""" b`, `c"""`},
	{"x = 1 + \\", "2"},
	{"s = 'a \\", "b'"},
	{"def f(x):", "    return x", ""},
	{"def f(", "    x,", "):", "    return x", ""},
	{"if 1: x = 2", ""},
	{"for i in range(3):", "    if i:", "        print(i)", "    else:", "        pass", ""},
	{"if 1:", "    pass", "else:", "    pass", ""},
	{"try:", "    1", "except ValueError: pass", "finally:", "    2", ""},
	{"class A: pass", ""},
	{"class A:", "    '''doc", "", "    more'''", "    x = 1", ""},
	{"@decorator", "def f(): pass", ""},
	{"async def f():", "    await g()", ""},
	{"with a as b, \\", "     c as d:", "    pass", ""},
	{"while True:", "    x = (1,", "", "    2)", "    break", ""},
	{"match x:", "    case 1: pass", ""},
	{"x: int = 3"},
	{"x = {'a': 1, 'b': [2, 3]}"},
	{"y = lambda: 0"},
	{"print(x[1:])"},
	{"iffy = 1"},
	{"s = f'{x[\"a\"]}: #'"},
	{"r'\\\\' + 'x'"},
	{"x = 1  # if:"},
	{"'it''s' '''x'''"},
	{"é = 'ü:'"},
	{"''"},
	{"x = ''"},
}

func TestBlocksEndWherePythonEndsThem(t *testing.T) {
	for _, lines := range typedCode {
		var b block
		for i, line := range lines {
			ready := b.add(line)
			if done := i == len(lines)-1; done != (len(ready) == 1) || done != b.empty() {
				t.Errorf("%q, line %d: ready %q", lines, i+1, ready)
			}
			if len(ready) == 1 && strings.TrimRight(ready[0], "\n") != strings.TrimRight(strings.Join(lines, "\n"), "\n") {
				t.Errorf("%q came out as %q", lines, ready[0])
			}
		}
	}
}

// TestTypedCodeIsWhatPythonTakes asks a real Python, so that the table above is
// no opinion of ours.
func TestTypedCodeIsWhatPythonTakes(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("needs the host's Python: apt-get install python3")
	}
	const ask = `import codeop, json, sys, warnings
warnings.simplefilter("ignore")
for lines in json.load(sys.stdin):
    for n in range(1, len(lines) + 1):
        complete = codeop.compile_command("\n".join(lines[:n])) is not None
        if complete != (n == len(lines)):
            print(lines, "line", n, "complete:", complete)
`
	body, err := json.Marshal(typedCode)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("/usr/bin/python3", "-c", ask)
	c.Stdin = strings.NewReader(string(body))
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestBlocksOfPastedCode(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		ready      []string
		rest       string
	}{
		{"no empty line", "def f():\n    return 1\nf()", []string{"def f():\n    return 1\n", "f()\n"}, ""},
		{"two functions", "def f():\n    pass\n@d\ndef g():\n    pass", []string{"def f():\n    pass\n"}, "@d\ndef g():\n    pass\n"},
		{"comments", "# one\nif 1:\n    x\n# two\n    y\n\n# three", []string{"if 1:\n    x\n# two\n    y\n"}, ""},
		{"a header", "#!/usr/bin/env python3\n# /// script\n# dependencies = ['six',\n#]\n# ///\n# why\nimport six", []string{"# /// script\n# dependencies = ['six',\n#]\n# ///\n", "import six\n"}, ""},
		{"a header without its end", "# /// script\n# dependencies = []\nx\ny", []string{"# /// script\n# dependencies = []\n", "x\n", "y\n"}, ""},
		{"a header in a string", "x = '''\n# /// script\n'''", []string{"x = '''\n# /// script\n'''\n"}, ""},
		{"empty lines", "\n\nx\n\n\ny", []string{"x\n", "y\n"}, ""},
		{"wrong", "x = )\n'\ny = ]", []string{"x = )\n", "'\n", "y = ]\n"}, ""},
		{"the end is missing", "f(1,\n2", nil, "f(1,\n2\n"},
		{"an indent too many", "    x", []string{"    x\n"}, ""},
	} {
		var b block
		var ready []string
		for line := range strings.SplitSeq(tt.code, "\n") {
			ready = append(ready, b.add(line)...)
		}
		if rest := strings.Join(b.flush(), ""); !slices.Equal(ready, tt.ready) || rest != tt.rest {
			t.Errorf("%s: %q, then %q; want %q, then %q", tt.name, ready, rest, tt.ready, tt.rest)
		}
	}
}
