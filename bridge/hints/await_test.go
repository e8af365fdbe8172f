package hints

import "testing"

// TestAwaitInAPlainFunctionNamesIt has the messages of Python 3.10 to 3.14.
func TestAwaitInAPlainFunctionNamesIt(t *testing.T) {
	const (
		load = "await works at the top level and in async functions only: write async def load(…) and await load(…)"
		main = "await works at the top level and in async functions only: write async def main() and await main()"
	)
	for _, tt := range []struct{ code, line, what, want string }{
		{"def load():\n    return await f()", "2", "'await' outside async function", load},
		{"def load(): return await f()", "1", "'await' outside async function", load},
		{"def other():\n    pass\ndef load(\n        a):\n    if a:\n\n        return await f()", "7", "'await' outside async function", load},
		{"def load():\n  async with f(): pass", "2", "'async with' outside async function", load},
		{"def other():\n    pass\nif x:\n    y = lambda: await f()", "4", "'await' outside async function", main},
		{"async def other():\n    y = lambda: await f()", "2", "'await' outside async function", main},
		{"x = lambda: await f()", "1", "'await' outside function", main},
		{"async def outer():\n  def inner():\n    async def f():\n      y = lambda: await f()", "4", "'await' outside async function", main},
		{"def outer():\n  async def f():\n    y = lambda: await f()", "3", "'await' outside async function", main},
		{"x", "9", "'await' outside async function", main},
		{"x", "0", "'await' outside async function", main},
		{"x x", "1", "invalid syntax", ""},
	} {
		r := Case{Failed: true, Code: tt.code, Error: "SyntaxError: " + tt.what + " (<run_python>, line " + tt.line + ")"}
		if got := For(r); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.code, got, tt.want)
		}
	}
}
