package hints

import (
	"strings"
	"testing"
)

// TestWhatIsLookedAtIsBounded: the end of the output, the beginnings of the error and of the code.
func TestWhatIsLookedAtIsBounded(t *testing.T) {
	const failure, code = "[Errno -3] Temporary failure in name resolution", "import socket\n"
	long := []string{strings.Repeat("x", maxOutput/2), strings.Repeat("x", maxOutput/2)}
	for name, tt := range map[string]struct {
		of   Case
		want string
	}{
		"the end of stdout":       {Case{Code: code, Stdout: append(long, failure)}, noNetwork},
		"the end of stderr":       {Case{Code: code, Stderr: append(long, failure)}, noNetwork},
		"the beginning of stdout": {Case{Code: code, Stdout: append([]string{failure}, long...)}, ""},
		"the beginning of stderr": {Case{Code: code, Stderr: append([]string{failure}, long...)}, ""},
		"the error":               {Case{Failed: true, Error: "ValueError: " + failure + strings.Repeat("x", maxError)}, noNetwork},
		"the end of the error":    {Case{Failed: true, Error: "ValueError: " + strings.Repeat("x", maxError) + failure}, ""},
		"the code":                {Case{Code: code + strings.Repeat("#", maxCode), Stdout: []string{failure}}, noNetwork},
		"the end of the code":     {Case{Code: strings.Repeat("\n", maxCode) + code, Stdout: []string{failure}}, ""},
	} {
		if got := For(tt.of); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestCompilingIsNamedOnlyForImports: what else takes long is not faster the next time.
func TestCompilingIsNamedOnlyForImports(t *testing.T) {
	for line, want := range map[string]bool{
		"line 1, in <module>: import polars":                                 true,
		"line 2, in <module>: from polars import DataFrame":                  true,
		"<user_tools.h> line 3, in h: json = importlib.import_module(x)":     true,
		"line 1, in <module>: time.sleep(600)":                               false,
		"line 1, in <module>: rows = await mcp_github.important(x=reimport)": false,
	} {
		if got := Compiling([]string{"line 9, in <module>: main()", line}); (got != "") != want {
			t.Errorf("%s: %q", line, got)
		}
	}
	if got := Compiling(nil); got != "" {
		t.Errorf("without a stack: %q", got)
	}
}

func TestCallToolIsShownWithItsServerAndTool(t *testing.T) {
	const failure = "TypeError: Runtime.call_tool() missing 1 required positional argument: 'tool'"
	const begins = "call_tool takes server, tool and arguments separately: await runtime.call_tool("
	for _, tt := range []struct{ err, code, want string }{
		{failure, `await runtime.call_tool("github.list_issues", {})`, begins + `"github", "list_issues", {"name": value})`},
		{failure, `await runtime.call_tool( 'my-files.read.text', {})`, begins + `"my-files", "read.text", {"name": value})`},
		{failure, "await runtime.call_tool(name)", begins + `"server", "tool", {"name": value})`},
		{"ValueError: call_tool() is mine", `call_tool("github.list_issues")`, ""},
		{"TypeError: f() takes no arguments", `call_tool("github.list_issues")`, ""},
	} {
		if got := For(Case{Failed: true, Error: tt.err, Code: tt.code}); got != tt.want {
			t.Errorf("%s, %s: %q, want %q", tt.err, tt.code, got, tt.want)
		}
	}
}

// TestTextThatHoldsJSONIsNamed if the code has a name for it, and json is imported only once.
func TestTextThatHoldsJSONIsNamed(t *testing.T) {
	const named = "rows is a text that holds JSON: json.loads(rows) reads it"
	const unnamed = "the tool returns a text, as its server says, and it holds JSON: json.loads reads it"
	for _, tt := range []struct{ text, code, want string }{
		{"rows", "rows['a']", named + ", after import json"},
		{"rows", "import json\nrows['a']", named},
		{"rows", "import os, json\nrows['a']", named},
		{"rows", "from json import dumps\nrows['a']", named + ", after import json"},
		{"", "(await f())['a']", unnamed + ", after import json"},
		{"", "import json\n(await f())['a']", unnamed},
		{"a\nb", "import json", unnamed},
	} {
		got := For(Case{Failed: true, Error: "TypeError: string indices must be integers", HoldsJSON: true, JSONText: tt.text, Code: tt.code})
		if got != tt.want {
			t.Errorf("%q in %q: %q, want %q", tt.text, tt.code, got, tt.want)
		}
	}
}

// TestCallWithoutAwaitIsNamed, with what works in the function that it is in.
func TestCallWithoutAwaitIsNamed(t *testing.T) {
	for _, tt := range []struct {
		call  string
		inDef bool
		want  string
	}{
		{"mcp_a.b", false, "mcp_a.b() is a coroutine: write await mcp_a.b(…)"},
		{"mcp_a.b", true, "mcp_a.b() is a coroutine, and await works in an async def only: here, write asyncio.run(mcp_a.b(…))"},
		{"mcp_a.b\nforged", false, ""},
		{"", false, ""},
	} {
		got := For(Case{Failed: true, Error: "TypeError: 'Call' object is not iterable", Unawaited: tt.call, InDef: tt.inDef})
		if got != tt.want {
			t.Errorf("%q, %v: %q, want %q", tt.call, tt.inDef, got, tt.want)
		}
	}
}
