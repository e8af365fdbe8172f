package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// trackerServer has reading tools, and writing ones with output schemas and without.
func trackerServer() {
	s := mcp.NewServer(&mcp.Implementation{Name: "tracker"}, nil)
	var writes atomic.Int64
	add := func(name string, reads bool, in, out string, answer func() map[string]any) {
		tool := &mcp.Tool{Name: name, InputSchema: json.RawMessage(in), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: reads}}
		if out != "" {
			tool.OutputSchema = json.RawMessage(out)
		}
		s.AddTool(tool, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if !reads {
				writes.Add(1)
			}
			body, err := json.Marshal(answer())
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(body)}}}, err
		})
	}
	add("writes", true, `{"type":"object"}`, "", func() map[string]any { return map[string]any{"count": writes.Load()} })
	add("read", true, `{"type":"object","properties":{"number":{"type":"integer"}}}`, "", func() map[string]any { return map[string]any{"title": "Crash"} })
	add("create", false, `{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}`,
		`{"type":"object","properties":{"number":{"type":"integer"},"url":{"type":"string"}}}`, func() map[string]any { return map[string]any{"number": 7} })
	add("close", false, `{"type":"object","properties":{"number":{"type":"integer"},"why":{"type":"string"}},"required":["number"]}`, "", func() map[string]any { return nil })
	add("drop", false, `{"type":"object"}`, "", func() map[string]any { return nil })
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil && !errors.Is(err, io.EOF) {
		log.Print(err)
	}
}

const plannedCode = `
issue = await mcp_tracker.create(title=(await mcp_tracker.read(number=3)).title)
print(f"Issue {issue.number} is at {issue.url}")
print(await mcp_tracker.close(issue.number, why=f"it is {issue.url}"))
print(await mcp_tracker.read(number=issue.number))
try:
    await mcp_tracker.drop()
except Exception as error:
    print("denied:", "drop" in str(error))
try:
    await mcp_tracker.close("seven")
except TypeError:
    print("checked")
print("writes:", (await mcp_tracker.writes()).count)
`

func plannedServer(t *testing.T) (w *workshop, policy string) {
	t.Helper()
	w = newWorkshop(t)
	w.put(t, "home/.cursor/mcp.json", `{"mcpServers": {"tracker": {"command": "FAKE_SERVER", "env": {"FAKE_ENV": "tracker"}}}}`)
	return w, w.put(t, "home/policy.toml", "[servers.tracker]\ndeny = \"drop\"\nask = \"writes\"\n")
}

func TestPlanListsTheCallsThatWriteAndMakesNone(t *testing.T) {
	w, policy := plannedServer(t)
	out, errs, code := w.run(t, w.env, "exec", "--plan", "--policy", policy, "--server", "tracker", "-c", plannedCode)
	want := `Issue <result 1>.number is at <result 1>.url
<result 2>
<result 3>
denied: True
checked
writes: 0
plan, none of it was done:
1. tracker.create {"title":"Crash"}
2. tracker.close {"number":"<result 1>.number","why":"it is <result 1>.url"}
3. tracker.read {"number":"<result 1>.number"}
`
	if code != exitOK || out != want {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}
}

func TestPlanIsStructured(t *testing.T) {
	w, policy := plannedServer(t)
	args := []string{"exec", "--plan", "--policy", policy, "--server", "tracker"}
	out, errs, _ := w.run(t, w.env, append(args, "--json", "-c", plannedCode)...)
	var r struct {
		Status string
		Plan   []struct {
			Server, Tool string
			Arguments    map[string]any
		}
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Status != "success" || len(r.Plan) != 3 || r.Plan[1].Tool != "close" || r.Plan[1].Arguments["number"] != "<result 1>.number" {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
	out, _, _ = w.run(t, w.env, append(args, "--output", "toon", "-c", plannedCode)...)
	if !strings.Contains(out, "plan[3]{server,tool,arguments}:") {
		t.Errorf("TOON has no plan:\n%s", out)
	}
	out, _, _ = w.run(t, w.env, append(args, "--json", "-c", "print(1)")...)
	if !strings.Contains(strings.ReplaceAll(out, " ", ""), `"plan":[]`) {
		t.Errorf("a plan without calls is not said:\n%s", out)
	}
	out, errs, code := w.run(t, w.env, append(args, "-c", "print(len(await mcp_tracker.close(1)))")...)
	if code != 1 || !strings.Contains(errs, "hint: in a dry run") || !strings.Contains(out, "1. tracker.close") {
		t.Errorf("exit %s\n%s\n%s", strconv.Itoa(code), out, errs)
	}
	_, errs, _ = w.run(t, w.env, append(args, "--server", "https://example.com", "-c", "1")...)
	if !strings.Contains(errs, "a dry run reaches no hosts: leave https://example.com out") {
		t.Errorf("hosts: %s", errs)
	}
}
