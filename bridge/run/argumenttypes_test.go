package run

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// TestWrongArgumentsAreRefusedInWordsOfPython gives each function of mcp.runtime values
// of other types than it takes, one parameter after the other.
func TestWrongArgumentsAreRefusedInWordsOfPython(t *testing.T) {
	const code = `
import inspect
from mcp import runtime

right = {
    "call_tool": ("up", "echo", {"a": 1}), "describe_server": ("up",), "discovered_servers": (True,), "export_tools": ("a", "b"),
    "get_prompt": ("up", "p", {"n": "1"}), "get_prompt_sync": ("up", "p", {"n": "1"}), "list_prompts": ("up",),
    "list_prompts_sync": ("up",), "list_resource_templates": ("up",), "list_resource_templates_sync": ("up",),
    "list_resources": ("up",), "list_resources_sync": ("up",), "list_tools": ("up",), "list_tools_sync": ("up",),
    "query_tool_docs": ("up", "echo", "full"), "query_tool_docs_sync": ("up", "echo", "full"), "read_resource": ("up", "x://a"),
    "read_resource_sync": ("up", "x://a"), "remove_tool": ("a",), "save_tool": (len,),
    "search_tool_docs": ("q",), "search_tool_docs_sync": ("q",),
}
named = {"search_tool_docs": {"limit": 5, "detail": "full"}, "search_tool_docs_sync": {"limit": 5, "detail": "full"}}
without = {"display", "capability_summary", "end_session", "list_loaded_server_metadata", "list_servers", "list_servers_sync", "saved_tools", "MCPError"}
wrong = [None, 5, -1, 10**40, 2.5, float("nan"), True, "", "\ud800", "x" * 70_000, b"x", [], ["up"], [1], (), {}, {"a": 1}, {1: {2}}, {1, 2}, object(),
         int, len, lambda: 0, mcp_up.echo, Exception("x")]
assert set(runtime.__all__) == set(right) | without, set(runtime.__all__) ^ (set(right) | without)

async def attempt(name, *args, **kwargs):
    try:
        value = getattr(runtime, name)(*args, **kwargs)
        if inspect.isawaitable(value):
            await value
    except Exception as e:
        print("refused", name, type(e).__name__, str(e)[:300].replace("\n", " "), sep="|")

for name, args in right.items():
    for given in wrong:
        for i in range(len(args)):
            await attempt(name, *args[:i], given, *args[i + 1:], **named.get(name, {}))
        for key in named.get(name, ()):
            await attempt(name, *args, **{**named[name], key: given})
for name in without - {"MCPError", "display"}:
    await attempt(name, 1)
`
	up := fakeUpstreams{"up": {"echo": func(context.Context, json.RawMessage) (string, error) { return "1", nil }}}
	s := newServer(t, up, func(o *Options) { o.MaxOutput = 1 << 20 })
	r := runCode(t, s, code, "up")
	if r.IsError() || len(r.Stdout) < 200 {
		t.Fatalf("%d errors; %s", len(r.Stdout), strings.Join(r.Stderr, "\n"))
	}
	foreign := regexp.MustCompile(`json:|nmarshal|\bGo\b|struct|interface|map\[|invalid character|strconv|hostapi|params|NoneType.*attribute|unhashable|%!|0x`)
	seen := map[string]bool{}
	for _, line := range r.Stdout {
		rest, refused := strings.CutPrefix(line, "refused|")
		name, rest, _ := strings.Cut(rest, "|")
		kind, message, _ := strings.Cut(rest, "|")
		if !refused {
			t.Fatalf("%.300s", line)
		}
		if seen[name+message] {
			continue
		}
		seen[name+message] = true
		if foreign.MatchString(message) || kind != "TypeError" && kind != "ValueError" && kind != "MCPError" && kind != "UnknownServerError" {
			t.Errorf("%s: %s: %s", name, kind, message)
		}
	}
}

// TestForgedParametersAreRefusedInWordsOfPython: code can also write frames of its own.
func TestForgedParametersAreRefusedInWordsOfPython(t *testing.T) {
	s := newServer(t, nil, nil)
	r := runCode(t, s, `
import sys
host = sys.modules["mcp"].runtime.call_tool.__self__.host
for params in ({"server": {}}, {"server": [1]}, {"tool": 5}, {"limit": "5"}, {"limit": 1.5}, {"limit": 10**40}, {"offset": True}, {"drawn": 1},
               {"data": "?"}, {"data": 5}, {"name": {"a": 1}}, {"detail": 1}, {"uri": 1}, [], 5, "x"):
    try: print("taken:", host.ask("list_tools", params))
    except Exception as e: print(type(e).__name__, e)
try: host.ask("save_tool", {"name": 5})
except Exception as e: print(type(e).__name__, e)
`)
	want := `TypeError list_tools(): server must be a str, not dict
TypeError list_tools(): server must be a str, not list
TypeError list_tools(): tool must be a str, not int
TypeError list_tools(): limit must be an int, not str
TypeError list_tools(): limit must be an int, not float
ValueError list_tools(): limit is out of range
TypeError list_tools(): offset must be an int, not bool
TypeError list_tools(): drawn must be a bool, not int
ValueError list_tools(): data is not base64
TypeError list_tools(): data must be a str, not int
TypeError list_tools(): name must be a str, not dict
TypeError list_tools(): detail must be a str, not int
TypeError list_tools(): uri must be a str, not int
MCPError reading the parameters of list_tools: they are not a JSON object
MCPError reading the parameters of list_tools: they are not a JSON object
MCPError reading the parameters of list_tools: they are not a JSON object
TypeError save_tool(): name must be a str, not int`
	if got := strings.Join(r.Stdout, "\n"); got != want {
		t.Errorf("got\n%s\n%s\nwant\n%s", got, strings.Join(r.Stderr, "\n"), want)
	}
}
