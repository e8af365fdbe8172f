package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A formUser answers the forms of a client.
type formUser struct {
	mu     sync.Mutex
	asked  []*mcp.ElicitParams
	answer func(n int) *mcp.ElicitResult // the n-th form, from 1 on
}

func (p *formUser) elicit(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, req.Params)
	return p.answer(len(p.asked)), nil
}

func (p *formUser) forms() []*mcp.ElicitParams {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func choose(choice string) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"choice": choice}}
}

// eras are the versions of the protocol in which a client is asked in another way.
var eras = map[string]*mcp.ClientSessionOptions{
	"2025-06-18": {ProtocolVersion: "2025-06-18"},
	"2025-11-25": {ProtocolVersion: "2025-11-25"},
	"2026-07-28": nil,
}

// asks is an environment whose policy has every writing tool asked.
func asks(t *testing.T, policy string, more env) env {
	t.Helper()
	dir, write := policyFolder(t)
	write(policy)
	e := env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": fakeConfig(t, nil), "XDG_CONFIG_HOME": dir}
	maps.Copy(e, more)
	return e
}

func TestUserIsAskedByAForm(t *testing.T) {
	h := firstHost(t)
	for era, version := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			for _, tt := range []struct {
				name   string
				answer func(n int) *mcp.ElicitResult
				code   string
				want   string
				forms  int
				status string
			}{
				{"this call", func(int) *mcp.ElicitResult { return choose("call") }, `
a = []
for i in range(3):
    a.append((await mcp_github.create_issue(title=f"t{i}")).title)
print(a)`, "['t0', 't1', 't2']", 3, ""},
				{"for the run", func(int) *mcp.ElicitResult { return choose("run") }, `
for i in range(20):
    r = await mcp_github.create_issue(title=f"t{i}")
print(r.title)`, "t19", 1, ""},
				{"together", func(int) *mcp.ElicitResult { return choose("call") }, `
import asyncio
print(len(await asyncio.gather(*[mcp_github.create_issue(title=f"t{i}") for i in range(100)])))`, "100", 1, ""},
				{"denied", func(int) *mcp.ElicitResult { return &mcp.ElicitResult{Action: "decline"} }, `
from mcp import runtime
try: await mcp_github.create_issue(title="t")
except runtime.MCPError as e: print(e)`, "denied by the user", 1, ""},
				{"stopped", func(n int) *mcp.ElicitResult { return choose([]string{"call", "stop"}[n-1]) }, `
await mcp_github.create_issue(title="first")
try: await mcp_github.create_issue(title="second")
except BaseException: print("caught")`, "status: cancelled\nerror: the user stopped the run\ncalls that have taken effect; a retry should not repeat what they changed:\n  github.create_issue {\"title\": \"first\"}", 2, "cancelled"},
				{"many rounds", func(int) *mcp.ElicitResult { return choose("call") }, `
for i in range(8):
    r = await mcp_github.create_issue(title=f"t{i}")
print(r.title)`, "t7", 8, ""},
			} {
				t.Run(tt.name, func(t *testing.T) {
					p := &formUser{answer: tt.answer}
					c := connectAs(t, h.command(t, asks(t, "[servers.github]\nask = 'writes'", nil), "serve"), &mcp.ClientOptions{ElicitationHandler: p.elicit}, version)
					r := c.python(t, tt.code, "github")
					if r.text != tt.want || tt.status != "" && r.status() != tt.status {
						t.Errorf("got %s\nwant %s", r.text, tt.want)
					}
					forms := p.forms()
					if len(forms) != tt.forms {
						for _, f := range forms {
							t.Log(f.Message)
						}
						t.Fatalf("asked %d times, want %d", len(forms), tt.forms)
					}
					schema, _ := json.Marshal(forms[0].RequestedSchema)
					if titled := strings.Contains(string(schema), `"oneOf"`); titled != (era >= "2025-11-25") || strings.Contains(string(schema), "default") {
						t.Errorf("the form is %s", schema)
					}
					if text := forms[0].Message; !strings.HasPrefix(text, "toolcell asks: may Python code make th") || !strings.Contains(text, "create_issue") {
						t.Errorf("the question is %s", text)
					}
				})
			}
		})
	}
}

// TestAPartOfAGatherIsAllowed in a form, and the model reads why the rest is not; so it does of a denial.
func TestAPartOfAGatherIsAllowed(t *testing.T) {
	h := firstHost(t)
	const gather = `
import asyncio
all = await asyncio.gather(*[mcp_github.create_issue(title=f"t{i}") for i in range(3)], return_exceptions=True)
print([getattr(r, "title", r) for r in all])
await mcp_github.create_issue(title="last")`
	const want = "['t0', MCPError('denied by the user, who says: t1 is there already'), 't2']"
	for era, version := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			answers := []map[string]any{
				{"choice": "call", "calls": "1-2, 3", "because": "all of them, and a reason: no answer"},
				{"choice": "call", "calls": "1, 3", "because": " t1 is there\nalready\x1b[2J"},
				{"choice": "deny", "calls": "", "because": "use the test account"},
			}
			if era != "2026-07-28" { // what is no answer is not asked again there, but elsewhere
				answers = answers[1:]
			}
			p := &formUser{answer: func(n int) *mcp.ElicitResult { return &mcp.ElicitResult{Action: "accept", Content: answers[n-1]} }}
			c := connectAs(t, h.command(t, asks(t, "[servers.github]\nask = 'writes'", nil), "serve"), &mcp.ClientOptions{ElicitationHandler: p.elicit}, version)
			r := c.python(t, gather, "github")
			if !r.isError || !strings.Contains(r.text, want) || !strings.Contains(r.text, "MCPError: denied by the user, who says: use the test account") {
				t.Errorf("got %s", r.text)
			}
			forms := p.forms()
			if len(forms) != len(answers) {
				t.Fatalf("asked %d times", len(forms))
			}
			schema, _ := json.Marshal(forms[0].RequestedSchema)
			if !strings.Contains(string(schema), `"calls"`) || !strings.Contains(string(schema), `"because"`) || !strings.Contains(forms[0].Message, "\n3. server ") {
				t.Errorf("%s\n%s", schema, forms[0].Message)
			}
		})
	}
}

// TestAnswersThatAreNone has a client accept without a choice: nothing is called then.
func TestAnswersThatAreNone(t *testing.T) {
	h := firstHost(t)
	for era, version := range eras {
		for name, answer := range map[string]*mcp.ElicitResult{
			"empty":         {Action: "accept"},
			"cancelled":     {Action: "cancel"},
			"cancel, yes":   {Action: "cancel", Content: map[string]any{"choice": "call"}},
			"yes, because":  {Action: "accept", Content: map[string]any{"choice": "call", "because": "x"}},
			"part of one":   {Action: "accept", Content: map[string]any{"choice": "call", "calls": "1"}},
			"two":           {Action: "accept", Content: map[string]any{"choice": "call", "other": "x"}},
			"other actions": {Action: "approve", Content: map[string]any{"choice": "call"}},
		} {
			t.Run(era+", "+name, func(t *testing.T) {
				t.Parallel()
				p := &formUser{answer: func(int) *mcp.ElicitResult { return answer }}
				c := connectAs(t, h.command(t, asks(t, "[servers.github]\nask = ['create_*']", nil), "serve"), &mcp.ClientOptions{ElicitationHandler: p.elicit}, version)
				r := c.python(t, `await mcp_github.create_issue(title="t"); print("called")`, "github")
				if r.isError || r.status() != "approval_needed" || strings.Contains(r.text, "called") {
					t.Errorf("got %s", r.text)
				}
			})
		}
	}
}

func TestUserIsAskedElsewhere(t *testing.T) {
	h := firstHost(t)
	e := asks(t, "[servers.github]\nask = 'writes'", env{"TOOLCELL_APPROVAL_TIMEOUT": "5s"})
	c := h.serve(t, e)
	r := c.python(t, "n = 1\nawait mcp_github.create_issue(title='![x](http://a.b/c)')\nprint(n)", "github")
	approval, _ := r.fields["approval"].(map[string]any)
	id, _ := approval["id"].(string)
	if r.isError || r.status() != "approval_needed" || approval["server"] != "github" || approval["tool"] != "create_issue" || id == "" {
		t.Fatalf("got %s\n%v", r.text, r.fields)
	}
	if !strings.Contains(r.text, fmt.Sprintf("`toolcell approvals` in a terminal, then call run_python with code=\"\" and session=%q", id)) {
		t.Errorf("the text does not say how it goes on: %s", r.text)
	}
	if r := c.call(t, map[string]any{"code": "print(1)", "session": id}); r.status() != "validation_error" || !strings.Contains(r.text, `come back to it with code=""`) {
		t.Errorf("other code gave %s", r.text)
	}
	if r := connect(t, h.command(t, e, "serve")).call(t, map[string]any{"code": "", "session": id}); r.status() != "validation_error" {
		t.Errorf("another client got %s", r.text)
	}
	if r := c.call(t, map[string]any{"code": "", "session": id}); r.status() != "cancelled" || !strings.Contains(r.text, "no answer came in time") {
		t.Errorf("after the time: %s", r.text)
	}
	if r := c.call(t, map[string]any{"code": "", "session": id}); r.status() != "cancelled" || !strings.Contains(r.text, "the result of this run was given already") {
		t.Errorf("once more: %s", r.text)
	}
}

func TestRunThatWaitsEndsWithToolcell(t *testing.T) {
	h := firstHost(t)
	e := asks(t, "[[servers.github.tools.create_issue.when]]\npath = 'title'\nop = '!='\nvalue = 'free'", nil)
	c := h.serve(t, e)
	r := c.python(t, "await mcp_github.create_issue(title='free')\nawait mcp_github.create_issue(title='paid')", "github")
	approval, _ := r.fields["approval"].(map[string]any)
	id, _ := approval["id"].(string)
	if id == "" {
		t.Fatalf("got %s", r.text)
	}
	_ = c.cmd.Process.Kill()
	c = h.serve(t, e)
	r = c.call(t, map[string]any{"code": "", "session": id})
	for end := time.Now().Add(slow(patience)); r.status() == "validation_error" && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		r = c.call(t, map[string]any{"code": "", "session": id}) // the one that was killed is still ending
	}
	if r.status() != "cancelled" || !strings.Contains(r.text, `the run ended with toolcell; calls done: github.create_issue {"title": "free"}`) {
		t.Errorf("after a restart: %s", r.text)
	}
}

// TestPrivateDataIsAskedBeforeItLeaves reads from a private server in one run, and
// sends to an open one in another, in a saved tool, and from another process.
func TestPrivateDataIsAskedBeforeItLeaves(t *testing.T) {
	t.Parallel()
	h := firstHost(t)
	e := asks(t, "[servers.filesystem]\nprivate = true\n[servers.github]\nopen = true", env{"TOOLCELL_STATE_DIR": filepath.Join(h.home, "private-data")})
	const send = "await mcp_github.create_issue(title='t'); print('sent')"
	p := &formUser{answer: func(int) *mcp.ElicitResult { return choose("call") }}
	serve := func() *client {
		return connectAs(t, h.command(t, e, "serve"), &mcp.ClientOptions{ElicitationHandler: p.elicit}, nil)
	}
	c := serve()
	c.python(t, send, "github").want(t, "sent")
	if n := len(p.forms()); n != 0 {
		t.Fatalf("asked %d times before anything was read", n)
	}
	c.python(t, `from mcp import runtime
def helper():
    return 1
await mcp_filesystem.read_file(path='a.txt')
runtime.save_tool(helper)
open('/workspace/out/kept.txt', 'w').write('x') if __import__('os').makedirs('/workspace/out', exist_ok=True) is None else 0
print('read')`, "filesystem")
	c.python(t, send, "github").want(t, "sent")
	forms := p.forms()
	if len(forms) != 1 || !strings.Contains(forms[0].Message, "private data was read before, from filesystem.read\\u005ffile") && !strings.Contains(forms[0].Message, "private data was read before, from filesystem.read_file") {
		t.Fatalf("asked %d times: %+v", len(forms), forms)
	}
	if schema, _ := json.Marshal(forms[0].RequestedSchema); strings.Contains(string(schema), `"run"`) {
		t.Errorf("the rest of the run is offered: %s", schema)
	}
	other := serve()
	other.python(t, send, "github").want(t, "sent")
	if n := len(p.forms()); n != 1 {
		t.Errorf("another process was asked, %d in all", n)
	}
	other.python(t, "from user_tools import helper\n"+send, "github").want(t, "sent")
	if n := len(p.forms()); n != 2 {
		t.Errorf("with a tool that was saved after the read: asked %d times in all, want 2", n)
	}
}

// TestServersAskThroughUs has the reference server ask the user during a call.
func TestServersAskThroughUs(t *testing.T) {
	h := firstHost(t)
	everything := map[string]any{"command": npmProgram(t, "mcp-server-everything")}
	e := env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": writeConfig(t, map[string]any{"mcpServers": map[string]any{"everything": everything}})}
	const code = "print([t.name for t in await runtime.list_tools('everything') if 'elicit' in t.name])\nprint(await mcp_everything.trigger_elicitation_request())"
	for era, version := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			p := &formUser{answer: func(int) *mcp.ElicitResult {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}
			}}
			c := connectAs(t, h.command(t, e, "serve"), &mcp.ClientOptions{ElicitationHandler: p.elicit}, version)
			r := c.python(t, "from mcp import runtime\n"+code, "everything")
			forms := p.forms()
			if r.isError || !strings.Contains(r.text, "Ada") || len(forms) != 1 {
				t.Fatalf("asked %d times, got %s", len(forms), r.text)
			}
			if !strings.Contains(forms[0].Message, `everything`) || forms[0].RequestedSchema == nil {
				t.Errorf("the form is %+v", forms[0])
			}
		})
	}
	t.Run("a client without forms", func(t *testing.T) {
		r := h.serve(t, e).python(t, "from mcp import runtime\n"+strings.Split(code, "\n")[0], "everything")
		r.want(t, "[]")
	})
}
