package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// newSigned has a server up with a tool f, whose input schema is another one (live) than was
// known of it. work may be done during its calls.
func newSigned(t *testing.T, known, live string, work func(ctx context.Context, r *mcp.CallToolRequest)) (s *Runs, calls func() int32) {
	t.Helper()
	var count atomic.Int32
	var up *mcp.Server
	var entries []config.Server
	define := func(schema string) {
		if schema == "" {
			schema = "{}"
		}
		up.AddTool(&mcp.Tool{Name: "f", InputSchema: json.RawMessage(strings.Replace(schema, "{", `{"type":"object"`+map[bool]string{true: "", false: ","}[schema == "{}"], 1))}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			count.Add(1)
			if work != nil {
				work(ctx, r)
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "got " + string(r.Params.Arguments)}}}, nil
		})
	}
	o := bridgetest.Options{Proxy: mcpproxy.Options{CatalogDir: t.TempDir(), PinDir: t.TempDir()}}
	o.Change = func(entry *config.Server) { entries = append(entries, *entry) }
	o.Tool = func(s *mcp.Server, _ string) bool {
		up = s
		define(known)
		return true
	}
	before := fakeUpstreams{"up": {"f": nil}, "no": {}}.Proxy(t, o)
	if err := errors.Join(before.AwaitTools(t.Context(), "up"), before.Close()); err != nil {
		t.Fatal(err)
	}
	define(live)
	proxy := mcpproxy.New(config.Config{Servers: entries}, o.Proxy)
	t.Cleanup(func() { _ = proxy.Close() })
	return newServer(t, nil, func(o *Options) { o.Upstreams = proxy }), count.Load
}

func TestCallsAreCheckedBeforeTheyGoOut(t *testing.T) {
	const known, live = `{"properties":{"old":{"type":"string"}},"required":["old"]}`, `{"properties":{"new":{"type":"string"},"kind":{"enum":["a","b"]}},"required":["new"]}`
	s, calls := newSigned(t, known, live, nil)
	r := runCode(t, s, `
async def tell(call):
    try: print(await call)
    except Exception as e: print(type(e).__name__, e)
await tell(mcp_up.f(old="1"))
await tell(mcp_up.f(new="3", kind="a"))
await tell(mcp_up.f(newer="4"))
await tell(mcp_up.f("5", "c"))
await tell(mcp_up.f(6))
await tell(mcp_servers["up"].f(new=["7"]))
await tell(mcp_up["f"](("8", 9)))
await tell(mcp_up.g(1))
await tell(mcp_no.g(1))
from mcp import runtime
await tell(runtime.call_tool("up", "f", {"newer": 6}))`, "up")
	want := []string{
		`got {"old":"1"}`, `got {"new":"3","kind":"a"}`,
		"TypeError f() has no parameter 'newer' (did you mean 'new'?) and lacks 'new'; it is f(new: str, kind: Literal[\"a\", \"b\"] = None)",
		`ValueError f() got "c" for kind, which must be one of "a", "b"`,
		"TypeError f(): new must be a string, not int",
		"TypeError f(): new must be a string, not list",
		"TypeError f(): new must be a string, not list",
		`MCPError server "up" has no tool "g"; the nearest are "f"`,
		`MCPError server "no" is not granted to this run: call run_python with "no" in its servers argument`,
		`got {"newer":6}`,
	}
	if !slices.Equal(r.Stdout, want) {
		t.Errorf("got\n%s\n%s\nwant\n%s", strings.Join(r.Stdout, "\n"), r.Error, strings.Join(want, "\n"))
	}
	if calls() != 3 {
		t.Errorf("%d calls went out", calls())
	}
}

func TestCallToolChecksValues(t *testing.T) {
	const schema = `{"properties":{"path":{"type":"string"},"head":{"type":"integer"}},"required":["path"]}`
	s, _ := newSigned(t, schema, schema, nil)
	r := runCode(t, s, `
from datetime import date
from mcp import runtime
from pathlib import Path
for arguments in ({"path": 1}, {"path": Path("a"), "head": "2"}, {"path": date(2024, 2, 29), "head": None}, {"paht": "b"}):
    try: print(await runtime.call_tool("up", "f", arguments))
    except TypeError as e: print(e)
print(await runtime.call_tool("up", "f", {"path": [1], "head": "2", "n": None}, check=False))
try: await runtime.call_tool("no", "f", {}, check=False)
except runtime.MCPError as e: print(e)
try: await runtime.call_tool("up", "f", {"path": object()}, check=False)
except TypeError as e: print(e)`, "up")
	want := []string{
		"f(): path must be a string, not int", "f(): head must be an integer, not str", `got {"path":"2024-02-29"}`, `got {"paht":"b"}`,
		`got {"path":[1],"head":"2","n":null}`,
		`server "no" is not granted to this run: call run_python with "no" in its servers argument`,
		"argument path: object is not JSON",
	}
	if !slices.Equal(r.Stdout, want) {
		t.Errorf("got %q\n%s\nwant %q", r.Stdout, r.Error, want)
	}
}

func TestResourcesAndPromptsNeedAGrant(t *testing.T) {
	tool := func(context.Context, json.RawMessage) (string, error) { return "", nil }
	s := newServer(t, fakeUpstreams{"yes": {"f": tool}, "no": {"f": tool}}, nil)
	r := runCode(t, s, `
from mcp import runtime
for server in ("yes", "no", "nope"):
    try:
        print(runtime.list_resources_sync(server)[0].uri, (await runtime.list_resource_templates(server))[0].name, runtime.list_prompts_sync(server)[0].name)
        print(await runtime.read_resource(server, "x://1"))
    except runtime.MCPError as e: print(e, e.server)
    try: print((await runtime.get_prompt(server, "p", {"n": 1})).messages[0].content)
    except runtime.MCPError as e: print(e, e.server)`, "yes")
	want := []string{
		"x://a t p", "of x://1", "pmap[n:1]",
		`server "no" is not granted to this run: call run_python with "no" in its servers argument no`,
		`server "no" is not granted to this run: call run_python with "no" in its servers argument no`,
		`there is no server "nope"; servers: "no", "yes" nope`, `there is no server "nope"; servers: "no", "yes" nope`,
	}
	if !slices.Equal(r.Stdout, want) {
		t.Errorf("got\n%s\n%s\nwant\n%s", strings.Join(r.Stdout, "\n"), r.Error, strings.Join(want, "\n"))
	}
}

func TestProgressOfCallsReachesTheClient(t *testing.T) {
	var mu sync.Mutex
	var told []string
	s, _ := newSigned(t, "", "", func(ctx context.Context, r *mcp.CallToolRequest) {
		if err := bridgetest.ReportProgress(ctx, r, 1, 4, "reading\nfiles"); err != nil {
			t.Error(err)
		}
		for n := range 1000 { // too often
			if err := bridgetest.ReportProgress(ctx, r, float64(n+2), 10_000, ""); err != nil {
				t.Error(err)
			}
		}
	})
	r := s.Do(t.Context(), Request{Code: "await mcp_up.f(a=1)", Servers: []string{"up"}, Progress: func(done, total int64, text string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprint(done, " ", total, " ", text))
	}})
	if r.IsError() || len(told) == 0 || told[0] != "0 0 up/f: 1 of 4 reading files" || len(told) > 100 {
		t.Errorf("%+v, told %d: %.300s", r, len(told), strings.Join(told, "\n"))
	}
}

// TestRealServer calls npm's server-everything as a user would: with what
// inspect says, with content of all kinds, and wrongly.
func TestRealServer(t *testing.T) {
	program := filepath.Join(os.Getenv("TOOLCELL_TEST_NPM"), "node_modules", ".bin", "mcp-server-everything")
	if _, err := os.Stat(program); err != nil {
		t.Skip("needs Node.js and npm: apt-get install nodejs npm, then make test")
	}
	proxy := mcpproxy.New(config.Config{Servers: []config.Server{{
		Name: "everything", Alias: "everything", Transport: config.Stdio, Command: program,
	}}}, mcpproxy.Options{})
	t.Cleanup(func() { proxy.Close() })
	s := newServer(t, nil, func(o *Options) { o.Upstreams = proxy })
	r := s.Do(t.Context(), Request{Timeout: 2 * time.Minute, Servers: []string{"everything"}, Code: `
import inspect
from mcp import runtime
e = mcp_everything
print(inspect.signature(e.get_sum), await e.get_sum(20, b=22))
print(str(inspect.signature(e.get_annotated_message)))
print((await e.get_structured_content("Chicago")).temperature > -100)
text, image, more = await e.get_tiny_image()
print(image.mime_type, image.data[1:4], image.raw if hasattr(image, "raw") else "part", len(open(image.save("x.png"), "rb").read()) == len(image.data))
link = (await e.get_resource_links(1))[1]
print(type(link).__name__, link.uri.startswith("demo://"), link.mime_type)
print(type((await e.get_resource_reference("Text", 1))[1]).__name__, (await e.get_resource_reference("Blob", 1))[1].data[:8])
for call in (e.get_sum(a="x", b=2), runtime.call_tool("everything", "get-sum", {"a": 1, "b": True}), e.get_sum(a=1, bb=2), e.get_summ(1), e.get_structured_content("Berlin")):
    try: await call
    except Exception as error: print(type(error).__name__, error)
doc = await runtime.query_tool_docs("everything", "get-sum", detail="full")
print(doc, doc.inputSchema.required)`})
	got := strings.Join(r.Stdout, "\n")
	for _, want := range []string{
		"(a: float, b: float) The sum of 20 and 22 is 42.\n",
		"(messageType: Literal['error', 'success', 'debug'], includeImage: bool = False)\nTrue\nimage/png b'PNG' part True\nResourceLink True text/plain\nResourceText b'Resource'\n",
		"TypeError get_sum(): a must be a number, not str\nTypeError get_sum(): b must be a number, not bool\n",
		"TypeError get_sum() has no parameter 'bb' (did you mean 'b'?) and lacks 'b'; it is get_sum(a: float, b: float)\n",
		`MCPError server "everything" has no tool "get_summ"; the nearest are "get_sum", `,
		`ValueError get_structured_content() got "Berlin" for location, which must be one of "New York", "Chicago", "Los Angeles"`,
		"mcp_everything.get_sum(\n    a: float,  # First number\n", "['a', 'b']",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s\n%s", want, got, strings.Join(r.Stderr, "\n"))
		}
	}
	for code, want := range map[string]int{"display((await mcp_everything.get_tiny_image())[1])": 1, "await mcp_everything.get_tiny_image()": 1, "(await mcp_everything.get_tiny_image())[0]": 0} {
		r := s.Do(t.Context(), Request{Timeout: 2 * time.Minute, Servers: []string{"everything"}, Code: code})
		if r.IsError() || len(r.Pictures) != want || want > 0 && r.Pictures[0].Type != "image/png" {
			t.Errorf("%s: %d pictures, want %d: %+v", code, len(r.Pictures), want, r)
		}
	}
}
