package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// These tests have sandboxed code call servers that people use, as npm has
// them, through the whole program.

// realFolder makes a folder that the program's user may write to.
func realFolder(t *testing.T, h *host) string {
	t.Helper()
	dir, err := os.MkdirTemp(shared, "real-")
	if err != nil {
		t.Fatal(err)
	}
	if h.cred != nil {
		err = os.Chown(dir, int(h.cred.Uid), int(h.cred.Gid))
	}
	if err := errors.Join(err, os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serveReal serves with these upstream servers, and a policy that the test
// may write.
func serveReal(t *testing.T, h *host, servers map[string]any) (c *client, policy func(string)) {
	t.Helper()
	dir, policy := policyFolder(t)
	return h.serve(t, env{
		"TOOLCELL_IMAGE": "host", "XDG_CONFIG_HOME": dir,
		"TOOLCELL_SERVERS_CONFIG": writeConfig(t, map[string]any{"mcpServers": servers}),
	}), policy
}

// succeeds runs code that ends well, and gives what it printed.
func (c *client) succeeds(t *testing.T, code string, servers ...string) string {
	t.Helper()
	r := c.call(t, map[string]any{"code": code, "servers": servers, "timeout": 110})
	if r.isError {
		t.Fatalf("running\n%s\n%s", code, r.text)
	}
	return strings.Split(r.text, "\nnote: ")[0]
}

func TestRealMemory(t *testing.T) {
	t.Parallel()
	h := firstHost(t)
	memory := map[string]any{
		"command": npmProgram(t, "mcp-server-memory"), "env": map[string]string{"MEMORY_FILE_PATH": filepath.Join(realFolder(t, h), "graph.json")},
	}
	c, policy := serveReal(t, h, map[string]any{"memory": memory})
	const graph = "g = await mcp_memory.read_graph()\nprint([(e.name, e.observations) for e in g.entities], [r.relationType for r in g.relations])"
	const wantGraph = "[('ann', ['likes tea']), ('tea', [])] ['drinks']"
	got := c.succeeds(t, `
await mcp_memory.create_entities(entities=[
    {"name": "ann", "entityType": "person", "observations": ["likes tea"]},
    {"name": "tea", "entityType": "drink", "observations": []}])
await mcp_memory.create_relations(relations=[{"from": "ann", "to": "tea", "relationType": "drinks"}])
`+graph, "memory")
	if got != wantGraph {
		t.Errorf("got %s\nwant %s", got, wantGraph)
	}

	// The server marks its tools: what reads may be called, what writes not.
	policy("[servers.memory]\nreadOnly = true\n")
	got = c.succeeds(t, `
from mcp.runtime import MCPError
try: await mcp_memory.delete_entities(entityNames=["ann"])
except MCPError as e: print(e, e.server, e.tool)
`+graph, "memory")
	if want := `policy.toml, [servers.memory] readOnly = true: calling "delete_entities" of server "memory" is not allowed: the server does not say that it only reads memory delete_entities`; !strings.Contains(got, want) || !strings.HasSuffix(got, wantGraph) {
		t.Errorf("got %s\nwant %s\n%s", got, want, wantGraph)
	}
}

func TestRealSequentialThinking(t *testing.T) {
	t.Parallel()
	c, _ := serveReal(t, firstHost(t), map[string]any{"thinking": map[string]any{"command": npmProgram(t, "mcp-server-sequential-thinking")}})
	got := c.succeeds(t, `
n = 0
while True:
    n += 1
    r = await mcp_thinking.sequentialthinking(thought=f"step {n}", thoughtNumber=n, totalThoughts=5, nextThoughtNeeded=n < 5)
    if not r.nextThoughtNeeded:
        break
print(n, r.thoughtHistoryLength)`, "thinking")
	if got != "5 5" {
		t.Errorf("got %s", got)
	}
}

func TestRealFilesystem(t *testing.T) {
	t.Parallel()
	h := firstHost(t)
	dir := realFolder(t, h)
	c, policy := serveReal(t, h, map[string]any{"files": map[string]any{"command": npmProgram(t, "mcp-server-filesystem"), "args": []string{dir}}})
	got := c.succeeds(t, `
import asyncio
async def write(i): await mcp_files.write_file(path=f"`+dir+`/note{i}.txt", content=f"note number {i} — ünï")
await asyncio.gather(*[write(i) for i in range(20)])
t = await mcp_files.read_text_file(path="`+dir+`/note7.txt")
print(t if isinstance(t, str) else t.content)`, "files")
	if got != "note number 7 — ünï" {
		t.Errorf("got %s", got)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "note19.txt")); string(b) != "note number 19 — ünï" {
		t.Errorf("on the host: %q, %v", b, err)
	}

	// A failed run tells what it wrote, and the glob keeps it from more.
	policy("[servers.files]\ndeny = ['move_*', 'edit*']\n[servers.files.tools.write_file]\ncallsPerRun = 2\n")
	r := c.python(t, `
for name in "abc":
    await mcp_files.write_file(path="`+dir+`/" + name, content=name * 1000)`, "files")
	if !r.isError || !strings.Contains(r.text, `[servers.files.tools.write_file] callsPerRun = 2: this run has called "write_file" of server "files" 2 times already`) ||
		strings.Count(r.text, "\n  files.write_file {\"path\": ") != 2 {
		t.Errorf("got %s", r.text)
	}
	if _, err := os.Stat(filepath.Join(dir, "c")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the third file: %v", err)
	}
	r = c.python(t, `await mcp_files.move_file(source="`+dir+`/a", destination="`+dir+`/moved")`, "files")
	if !r.isError || !strings.Contains(r.text, `deny = "move_*": calling "move_file" of server "files" is not allowed`) || strings.Contains(r.text, "taken effect") {
		t.Errorf("got %s", r.text)
	}
}

// TestRealProgressReachesTheClient: what a server says of a long call, the client
// of run_python hears.
func TestRealProgressReachesTheClient(t *testing.T) {
	config := writeConfig(t, map[string]any{"mcpServers": map[string]any{
		"everything": map[string]any{"command": npmProgram(t, "mcp-server-everything")},
	}})
	heard := heardProgress(t, firstHost(t), env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": config}, map[string]any{
		"code":    "print(await mcp_everything.trigger_long_running_operation(duration=2, steps=4))",
		"servers": []string{"everything"},
	})
	var texts []string
	for _, p := range heard {
		texts = append(texts, p.Message)
	}
	for step := range 4 {
		if want := fmt.Sprintf("everything/trigger_long_running_operation: %d of 4", step+1); !slices.Contains(texts, want) {
			t.Errorf("not told %q: %q", want, texts)
		}
	}
}

// isPNG is Python that prints whether data are the bytes of a PNG.
const isPNG = "data[:8] == b'\\x89PNG\\r\\n\\x1a\\n' and data[-8:-4] == b'IEND'"

// TestRealEverything calls the tools of the reference server that give more
// than text.
func TestRealEverything(t *testing.T) {
	t.Parallel()
	c, _ := serveReal(t, firstHost(t), map[string]any{"everything": map[string]any{"command": npmProgram(t, "mcp-server-everything")}})
	for name, tt := range map[string]struct{ code, want string }{
		"structured content": {"r = await mcp_everything.get_structured_content(location='New York')\nprint(r.conditions, r['humidity'] > 0)", "Cloudy True"},
		"an image": {
			"import base64\nr = await mcp_everything.get_tiny_image()\n" +
				"data = base64.b64decode([c for c in r.raw['content'] if c['type'] == 'image'][0]['data'])\nprint(" + isPNG + ")", "True",
		},
		"an embedded resource": {
			"r = await mcp_everything.get_resource_reference(resourceType='Text', resourceId=1)\n" +
				"print([c['resource']['text'][:10] for c in r.raw['content'] if c['type'] == 'resource'])", "['Resource 1']",
		},
		"resource links": {
			"r = await mcp_everything.get_resource_links(count=3)\nprint(len([c for c in r.raw['content'] if c['type'] == 'resource_link']))", "3",
		},
		"a call that takes its time, with progress": {
			"print(await mcp_everything.trigger_long_running_operation(duration=1, steps=5))", "Long running operation completed. Duration: 1 seconds, Steps: 5.",
		},
		"many calls at once": {
			"import asyncio\nprint(sum(int(t.split()[-1].rstrip('.')) for t in await asyncio.gather(*[mcp_everything.get_sum(a=i, b=i) for i in range(50)])))", "2450",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.succeeds(t, tt.code, "everything"); got != tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestRealBrowser has code drive a headless Chromium: it reads a page of this
// test, types into it and takes its picture. Nothing of it goes beyond
// loopback.
func TestRealBrowser(t *testing.T) {
	t.Parallel()
	playwright := npmProgram(t, "playwright-mcp")
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("needs Chromium: apt-get install chromium")
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!doctype html><title>Orders</title><h1>Orders of today</h1>
			<ul><li>3 apples</li><li>7 pears</li></ul>
			<button onclick="document.querySelector('h1').textContent = 'All ' + document.querySelectorAll('li').length + ' sent'">Send</button>`))
	}))
	defer page.Close()
	h := firstHost(t)
	dir := realFolder(t, h)
	settings, err := json.Marshal(map[string]any{
		"browser": map[string]any{
			"isolated": true,
			"launchOptions": map[string]any{
				"headless": true, "executablePath": chromium, "chromiumSandbox": false,
				"args": []string{
					"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--disable-background-networking", "--disable-component-update", "--no-pings",
					"--toolcell-test=" + dir, // tells our processes from others
				},
			},
		},
		"outputDir": dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "playwright.json")
	if err := os.WriteFile(file, settings, 0o644); err != nil {
		t.Fatal(err)
	}
	c, policy := serveReal(t, h, map[string]any{"browser": map[string]any{
		"command": playwright, "args": []string{"--config", file}, "cwd": dir, "env": map[string]string{"TMPDIR": dir},
	}})
	// A browser is worth a policy: no code of the page's own, no files.
	policy("[servers.browser]\ndeny = ['browser_evaluate', 'browser_run_code*', 'browser_file_upload', 'browser_drop']\n")

	got := c.succeeds(t, `
import base64, re
from mcp import runtime
hits = await runtime.search_tool_docs("take a picture of the web page")
print(any(h.tool == "browser_take_screenshot" for h in hits))
await mcp_browser.browser_navigate(url="`+page.URL+`")
before = str(await mcp_browser.browser_snapshot())
print(re.search(r'heading "([^"]*)"', before)[1], re.findall(r"listitem.*: (.*)", before))
button = re.search(r'button "Send" \[ref=(\w+)\]', before)[1]
await mcp_browser.browser_click(element="the Send button", target=button)
after = str(await mcp_browser.browser_snapshot())
print(re.search(r'heading "([^"]*)"', after)[1])
shot = await mcp_browser.browser_take_screenshot(type="png")
data = base64.b64decode([c for c in shot.raw["content"] if c["type"] == "image"][0]["data"])
width, height = (int.from_bytes(data[i:i + 4], "big") for i in (16, 20))
print(`+isPNG+`, width > 300, height > 300)
open("shot.png", "wb").write(data)
try: await mcp_browser.browser_evaluate(function="() => 1")
except runtime.MCPError as e: print('deny = "browser_evaluate"' in str(e))`, "browser")
	want := "True\nOrders of today ['3 apples', '7 pears']\nAll 2 sent\nTrue True True\nTrue"
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}

	// The browser is a process of its own session: it goes with us too.
	if !alive("--toolcell-test=" + dir) {
		t.Error("there is no browser to be ended")
	}
	c.Close()
	waitFor(t, "the browser's end", func() bool { return !alive("--toolcell-test=" + dir) })
}

// TestOneScriptFindsReadsAndCalls is what the program is for: with a dozen
// servers configured, one run without a word about any of them finds the tools
// it needs, reads how to call them, and calls three servers at once.
//
//test:mainjob
func TestOneScriptFindsReadsAndCalls(t *testing.T) {
	h := firstHost(t)
	dir := realFolder(t, h)
	config := fakeConfig(t, map[string]any{
		"memory":     map[string]any{"command": npmProgram(t, "mcp-server-memory"), "env": map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "graph.json")}},
		"thinking":   map[string]any{"command": npmProgram(t, "mcp-server-sequential-thinking")},
		"everything": map[string]any{"command": npmProgram(t, "mcp-server-everything")},
		"notes":      map[string]any{"command": npmProgram(t, "mcp-server-filesystem"), "args": []string{dir}},
	})
	c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": config})
	got := c.succeeds(t, `
import asyncio
from mcp import runtime

async def find(need, server):
    hits = await runtime.search_tool_docs(need, limit=5)
    hit = next(h for h in hits if h.server == server)
    doc = await runtime.query_tool_docs(hit.server, hit.tool, detail="full")
    return hit, set(doc["inputSchema"]["properties"])

needs = {"create an issue": "github", "create entities in the knowledge graph": "memory", "sum of two numbers": "everything"}
found = await asyncio.gather(*[find(need, server) for need, server in needs.items()])
for hit, parameters in found:
    print(hit.server, hit.tool, sorted(parameters & {"title", "repo", "entities", "a", "b"}))
issue, entities, total = await asyncio.gather(
    runtime.call_tool(found[0][0].server, found[0][0].tool, {"title": "from one script", "repo": "o/r"}),
    runtime.call_tool(found[1][0].server, found[1][0].tool, {"entities": [{"name": "n", "entityType": "t", "observations": []}]}),
    runtime.call_tool(found[2][0].server, found[2][0].tool, {"a": 20, "b": 22}))
print(issue.title, [e.name for e in entities.entities], "42" in str(total), len(runtime.discovered_servers()))`, "*")
	want := "github create_issue ['repo', 'title']\nmemory create_entities ['entities']\neverything get-sum ['a', 'b']\nfrom one script ['n'] True 12"
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
