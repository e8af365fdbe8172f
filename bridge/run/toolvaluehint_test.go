package run

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// TestToolValueTakenForTheResultIsExplained goes through values of every kind, and
// through errors that only look like it.
func TestToolValueTakenForTheResultIsExplained(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many Pythons")
	}
	gives := func(text string) func(context.Context, json.RawMessage) (string, error) {
		return func(context.Context, json.RawMessage) (string, error) { return text, nil }
	}
	s := newServer(t, fakeUpstreams{"up": {"text": gives("a text"), "list": gives(`[{"a": 1}, 2]`), "record": gives(`{"a": {"b": 1}}`)}}, nil)
	for code, want := range map[string]bool{
		"r = await mcp_up.text()\nr.content":                                            true,
		"r = await mcp_up.text()\nr.content[0].text":                                    true,
		"r = await mcp_up.text()\nr.text":                                               true,
		"r = await mcp_up.text()\nr[0].text":                                            true,
		"r = await mcp_up.text()\nr['content']":                                         true,
		"r = await mcp_up.text()\nr['content'][0]['text']":                              true,
		"r = await mcp_up.text()\nr.structuredContent":                                  true,
		"r = await mcp_up.text()\nif r.isError: pass":                                   true,
		"r = await mcp_up.list()\nr.content":                                            true,
		"r = await mcp_up.list()\nr['content']":                                         true,
		"r = await mcp_up.record()\nr.content":                                          true,
		"r = await mcp_up.record()\nr['content']":                                       true,
		"r = await mcp_up.record()\nr['structuredContent']['x']":                        true,
		"from mcp import runtime\nr = await runtime.call_tool('up', 'text')\nr.content": true,
		"def f(r):\n    return r.content\nf(await mcp_up.text())":                       true,
		"a, b = await asyncio.gather(mcp_up.text(), mcp_up.list())\nb.content":          true,
		"print((await mcp_up.text()).content)":                                          true,
		"r = await mcp_up.record()\nr['other']":                                         false,
		"r = await mcp_up.text()\nr.foo":                                                false,
		"d = {}\nd['content']":                                                          false,
		"class A: pass\nA().content":                                                    false,
		"r = await mcp_up.text()\nd = {}\nd['content']":                                 false,
		"r = await mcp_up.text()\nint(r)":                                               false,
		"'content'.content":                                                             false,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			r := runCode(t, s, code, "up")
			if r.Status != StatusError || strings.Contains(r.Hint, "a tool returns its value") != want {
				t.Errorf("hint %q\n%s", r.Hint, strings.Join(r.Stderr, "\n"))
			}
		})
	}
}
