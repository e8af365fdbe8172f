package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stubs stand in for what the script finds inside a sandbox.
const stubs = `
import ast, asyncio, inspect, sys, types

class Ready(list):
    def __await__(self):
        return self
        yield

class runtime:
    def discovered_servers():
        return Ready(["tasks", "calendar"])
    async def search_tool_docs(query, *, limit=5, detail="summary"):
        return [{"server": "a", "tool": "b"}]

async def free_slots(**arguments):
    return {"slots": [
        {"start": "2026-11-24T09:00:00+01:00", "minutes": 30},
        {"start": "2026-11-24T10:00:00+01:00", "minutes": 60},
    ]}

async def list_tasks(**arguments):
    return {"tasks": [
        {"line": 1, "title": "small C", "priority": "C", "minutes": 10},
        {"line": 2, "title": "large A", "priority": "A", "minutes": 45, "due": "2026-11-24"},
        {"line": 3, "title": "no estimate"},
        {"line": 4, "title": "too large", "priority": "A", "minutes": 500},
        {"line": 5, "title": "B", "priority": "B", "minutes": 15},
    ]}

sys.modules["mcp"] = types.SimpleNamespace(runtime=runtime)
names = {"mcp_calendar": types.SimpleNamespace(free_slots=free_slots), "mcp_tasks": types.SimpleNamespace(list_tasks=list_tasks)}
code = compile(open(sys.argv[1]).read(), "plan.py", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

async def main():
    await eval(code, names)

asyncio.run(main())
`

func TestScriptFitsTasksIntoFreeTime(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3 on the host")
	}
	out, err := exec.CommandContext(t.Context(), python, "-c", stubs, "plan.py").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const want = `
Plan for 2026-11-24: 70 of 90 free minutes
  09:00   15 min  [B] B
  09:15   10 min  [C] small C
  10:00   45 min  [A] large A  (due today)
  no room  too large
  no room  no estimate
stage: `
	if !strings.Contains(string(out), want) {
		t.Errorf("got:\n%s\nwant in it:\n%s", out, want)
	}
}

// fake returns a session with a server that has the given tool, which answers
// with res.
func fake(t *testing.T, tool string, res *mcp.CallToolResult) *mcp.ClientSession {
	t.Helper()
	clientEnd, serverEnd := mcp.NewInMemoryTransports()
	s := mcp.NewServer(&mcp.Implementation{Name: "toolcell"}, nil)
	s.AddTool(&mcp.Tool{Name: tool, InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return res, nil })
	server, err := s.Connect(t.Context(), serverEnd, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Wait() })
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), clientEnd, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestRunPythonChecksTheAnswer(t *testing.T) {
	answer := func(isError bool, text, structured string) *mcp.CallToolResult {
		return &mcp.CallToolResult{
			IsError: isError, Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: json.RawMessage(structured),
		}
	}
	for _, c := range []struct {
		name      string
		res       *mcp.CallToolResult
		want, err string
	}{
		{"lines of stdout", answer(false, "```toon", `{"stdout":["Plan for x","a"],"notes":["host image"]}`), "Plan for x\na", ""},
		{"text alone", answer(false, "Plan for x", `{}`), "Plan for x", ""},
		{"error", answer(true, "status: timeout", `{}`), "", "status: timeout"},
		{"no plan", answer(false, "hello", `{}`), "", "no plan"},
		{"other fields", answer(false, "Plan for x", `{"stdout":1}`), "", "reading the result"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := runPython(t.Context(), fake(t, "run_python", c.res))
			if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %q, %v, want %q, %q", got, err, c.want, c.err)
			}
		})
	}
}

func TestOnlyTheOneToolIsExpected(t *testing.T) {
	for tool, good := range map[string]bool{"run_python": true, "other": false} {
		tools, err := fake(t, tool, nil).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := showTools(tools); (err == nil) != good {
			t.Errorf("tool %q: %v", tool, err)
		}
	}
}

func TestStagesMoveIntoTheTable(t *testing.T) {
	var times table
	times.add("run_python", 1500*time.Microsecond)
	if got, want := times.takeStages("a\nstage: search = 2.0 ms\nb"), "a\nb"; got != want {
		t.Errorf("answer = %q, want %q", got, want)
	}
	if s := times.String(); !strings.Contains(s, "1.5 ms") || !strings.Contains(s, "search") {
		t.Errorf("table = %q", s)
	}
}

func TestConfigHasAbsolutePathsAndACopyOfTheTasks(t *testing.T) {
	dir := t.TempDir()
	config, err := writeConfig(dir, paths{calendar: "plan.py", tasks: "plan.py", data: filepath.Join("..", "data")})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"calendar", "tasks"} {
		s := got.Servers[name]
		if !filepath.IsAbs(s.Command) || len(s.Args) != 1 || !filepath.IsAbs(s.Args[0]) {
			t.Errorf("%s = %+v, want absolute paths", name, s)
		}
	}
	if todo := got.Servers["tasks"].Args[0]; filepath.Dir(todo) != dir {
		t.Errorf("tasks file %q is not the copy in %q", todo, dir)
	}
	if _, err := writeConfig(dir, paths{calendar: "missing", tasks: "plan.py", data: filepath.Join("..", "data")}); err == nil {
		t.Error("a missing server binary was accepted")
	}
}
