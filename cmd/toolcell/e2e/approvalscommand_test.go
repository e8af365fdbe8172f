package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A question is one of the rows of toolcell approvals list --json.
type question struct {
	ID, Run, Server, Tool, Reason, State, Text string
	Choice                                     string
	Holds                                      bool
	Arguments                                  json.RawMessage
	CallsBefore                                int
	AskedAt, ExpiresAt                         time.Time
}

// asking is a host on which create_issue of a server asks.
func asking(t *testing.T) (h *host, e env) {
	t.Helper()
	dir, write := policyFolder(t)
	write("[servers.github]\nask = 'create_*'")
	return firstHost(t), env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": fakeConfig(t, nil), "XDG_CONFIG_HOME": dir, "NO_COLOR": "1"}
}

// questions lists what is asked.
func questions(t *testing.T, h *host, e env) (all []question) {
	t.Helper()
	out, errs, code := h.run(t, e, "approvals", "list", "--json")
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != 0 {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	return all
}

const createTwo = "a = await mcp_github.create_issue(title='one')\nb = await mcp_github.create_issue(title='two')\nprint(a.title, b.title)"

func TestApprovalsAnswerARunOfServe(t *testing.T) {
	h, e := asking(t)
	c := h.serve(t, e)
	r := c.python(t, createTwo, "github")
	if r.status() != "approval_needed" {
		t.Fatalf("%s: %s", r.status(), r.text)
	}
	all := questions(t, h, e)
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	q := all[0]
	if q.Server != "github" || q.Tool != "create_issue" || q.State != "pending" || q.Run == "" || q.CallsBefore != 0 ||
		!strings.Contains(q.Reason, "create_*") || strings.Join(strings.Fields(string(q.Arguments)), "") != `{"title":"one"}` || !q.ExpiresAt.After(q.AskedAt) {
		t.Errorf("%+v", q)
	}
	if out, _, code := h.run(t, e, "approvals", "show", q.ID); code != 0 || !strings.Contains(out, "tool: \"create_issue\"") || !strings.Contains(out, "state: pending\n") {
		t.Errorf("show: exit %d, %s", code, out)
	}

	if out, _, _ := h.run(t, e, "__complete", "zsh", "approvals", "approve", "ask-"); !strings.Contains(out, q.ID+"\tgithub.create_issue") {
		t.Errorf("completion: %s", out)
	}
	if out, _, code := h.run(t, e, "approvals"); code != 0 || !strings.Contains(out, q.ID) {
		t.Errorf("exit %d, %s", code, out)
	}

	// The test is the client, so what it starts cannot approve, with a terminal or without.
	if out, errs, code := h.run(t, e, "approvals", "approve", q.ID); code != exitFail || !strings.Contains(errs, "terminal") {
		t.Errorf("without a terminal: exit %d, %s%s", code, out, errs)
	}
	p := atTerminal(t, h.command(t, e, "approvals", "approve", q.ID), 100)
	p.sees("was started by the MCP client")
	if code := p.leaves(); code != exitFail {
		t.Errorf("under the client: exit %d", code)
	}

	p = inOtherTerminal(t, h.command(t, e, "approvals", "approve", q.ID))
	p.sees(`arguments: {"title":"one"}`)
	p.sees("To allow this call, type ")
	p.enters("nope\r", "this is not the code, so nothing was approved")
	if code := p.exits(); code != exitFail {
		t.Errorf("with a wrong code: exit %d", code)
	}
	if all := questions(t, h, e); all[0].State != "pending" {
		t.Fatalf("%+v", all)
	}
	p = inOtherTerminal(t, h.command(t, e, "approvals", "approve", q.ID, "--for", "run"))
	p.sees("To allow this tool for the rest of the run, type ")
	p.enters(p.sees(":")+"\r", "approved for the run: "+q.ID)
	if code := p.exits(); code != 0 {
		t.Errorf("exit %d", code)
	}
	c.call(t, map[string]any{"code": "", "session": q.ID}).want(t, "one two")
	for _, command := range []string{"approve", "deny"} {
		p = inOtherTerminal(t, h.command(t, e, "approvals", command, q.ID))
		p.sees("answered already (approved, by toolcell approvals)")
		if code := p.exits(); code != exitFail {
			t.Errorf("%s again: exit %d", command, code)
		}
	}
}

func TestApprovalsDenyAndStop(t *testing.T) {
	h, e := asking(t)
	c := h.serve(t, e)
	var ids []string
	for _, stop := range []bool{false, true} {
		r := c.python(t, tryCall, "github")
		all := questions(t, h, e)
		id := all[len(all)-1].ID
		ids = append(ids, id)
		args := []string{"approvals", "deny", id, "--json"}
		if stop {
			args = append(args, "--stop")
		}
		var answered []question
		out, errs, code := h.run(t, e, args...)
		if err := json.Unmarshal([]byte(out), &answered); err != nil || code != 0 || len(answered) != 1 || answered[0].State != map[bool]string{false: "denied", true: "stopped"}[stop] {
			t.Fatalf("exit %d, %s%s after %s", code, out, errs, r.text)
		}
		r = c.call(t, map[string]any{"code": "", "session": id})
		if r.isError != stop || !strings.Contains(r.text, map[bool]string{false: "denied by the user", true: "stopped the run"}[stop]) {
			t.Errorf("stop %t: %s", stop, r.text)
		}
	}
	for i, want := range []string{`"state":"denied"`, `"state":"stopped"`} {
		lines := h.recorded(t, `"question":"`+ids[i]+`"`)
		if len(lines) != 2 || !strings.Contains(lines[0], `"state":"asked"`) || !strings.Contains(lines[1], want) || !strings.Contains(lines[1], `"by":"toolcell approvals","client":"`) {
			t.Errorf("on record: %q", lines)
		}
	}
}

const gatherThree = "import asyncio\nprint([getattr(r, 'title', r) for r in await asyncio.gather(*[mcp_github.create_issue(title=t) for t in ('one', 'two', 'three')], return_exceptions=True)])"

func TestApprovalsOfAPartAndWithAReason(t *testing.T) {
	h, e := asking(t)
	c := h.serve(t, e)
	c.python(t, gatherThree, "github")
	id := questions(t, h, e)[0].ID
	for _, args := range [][]string{{"--calls", ""}, {"--calls", "1", "--for", "run"}, {"--calls", "1", "--revoke"}} {
		if out, errs, code := h.run(t, e, append([]string{"approvals", "approve", id}, args...)...); code != exitUsage || !strings.Contains(errs, "--calls") {
			t.Errorf("%q: exit %d, %s%s", args, code, out, errs)
		}
	}
	p := inOtherTerminal(t, h.command(t, e, "approvals", "approve", id, "--calls", "1,4"))
	p.sees("give numbers from 1 to 3, such as 1,3")
	if code := p.exits(); code != exitFail {
		t.Errorf("with a number that is none: exit %d", code)
	}
	p = inOtherTerminal(t, h.command(t, e, "approvals", "approve", id, "--calls", "1,3"))
	p.sees(`3. server "github", tool "create_issue", arguments: {"title":"three"}`)
	p.sees("To allow only calls 1,3, and deny 1 other, type ")
	p.enters(p.sees(":")+"\r", "approved, 2 of 3 calls: "+id)
	if code := p.exits(); code != 0 {
		t.Errorf("exit %d", code)
	}
	c.call(t, map[string]any{"code": "", "session": id}).want(t, "['one', MCPError('denied by the user'), 'three']")

	for _, stop := range []bool{true, false} {
		want := "denied by the user, who says: use the test account"
		if stop {
			want = "the user stopped the run: use the test account"
		}
		c.python(t, tryCall, "github")
		all := questions(t, h, e)
		id := all[len(all)-1].ID
		args := []string{"approvals", "deny", id, "--because"}
		if stop {
			args = []string{"approvals", "deny", id, "--stop", "--because"}
		}
		if out, errs, code := h.run(t, e, append(args, strings.Repeat("x", 501))...); code != exitUsage || !strings.Contains(errs, "the reason has 501 characters, of at most 500") {
			t.Errorf("too long: exit %d, %s%s", code, out, errs)
		}
		if out, errs, code := h.run(t, e, append(args, " use the\ntest \x1b[31maccount")...); code != 0 {
			t.Fatalf("exit %d, %s%s", code, out, errs)
		}
		if r := c.call(t, map[string]any{"code": "", "session": id}); r.isError != stop || !strings.Contains(r.text, want) {
			t.Errorf("stop %t: %s", stop, r.text)
		}
		for _, list := range [][]string{{"approvals"}, {"approvals", "show", id}, {"approvals", "list", "--all"}, {"runs", "list", "--calls", "-n", "1"}, {"runs", "show"}} {
			if out := h.must(t, e, list...); !strings.Contains(out, ": use the test account") {
				t.Errorf("stop %t: %q prints\n%s", stop, list, out)
			}
		}
	}
}

// recorded returns the entries of all records of the host's tests that have a text, in their order.
func (h *host) recorded(t *testing.T, with string) (lines []string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(h.home, "state", "state", "records", "*", "*.jsonl"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, with) && !strings.Contains(file, ".values.") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// TestKilledServeLeavesNoQuestions: nor its socket, once somebody looks.
func TestKilledServeLeavesNoQuestions(t *testing.T) {
	h, e := asking(t)
	c := h.serve(t, e)
	c.python(t, createTwo, "github")
	sockets := func() []string {
		found, err := filepath.Glob(filepath.Join(h.home, "state", "run", "approvals", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if st, err := os.Lstat(sockets()[0]); err != nil || st.Mode() != 0o600|os.ModeSocket {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if len(questions(t, h, e)) != 1 || len(sockets()) != 1 {
		t.Fatalf("%v", sockets())
	}
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of serve, and of its socket", func() bool { return len(questions(t, h, e)) == 0 && len(sockets()) == 0 })
}

func TestApprovalsAreWatched(t *testing.T) {
	h, e := asking(t)
	p := atTerminal(t, h.command(t, e, "approvals", "list", "--watch"), 200)
	c := h.serve(t, e)
	c.python(t, createTwo, "github")
	p.sees(`pending  github.create_issue {"title":"one"}`)
	if _, errs, code := h.run(t, e, "approvals", "deny", questions(t, h, e)[0].ID); code != 0 {
		t.Fatal(errs)
	}
	p.sees("denied  github.create_issue")
	p.types("\x03")
	p.leavesWith(130)
}

// TestAWaitingQuestionNotifies, by the terminal and by notify-send, and without its arguments.
func TestAWaitingQuestionNotifies(t *testing.T) {
	h, e := asking(t)
	c := h.serve(t, e)
	bin := t.TempDir()
	shown := filepath.Join(bin, "shown")
	if err := os.WriteFile(filepath.Join(bin, "notify-send"), []byte(fmt.Sprintf("#!/bin/sh\necho \"$*\" >>'%s'\n", shown)), 0o755); err != nil {
		t.Fatal(err)
	}
	watching := maps.Clone(e)
	watching["PATH"], watching["TERM"] = bin+":"+os.Getenv("PATH"), "xterm"
	for i, command := range [][]string{{"approvals", "--watch", "--notify"}, {"approvals", "list", "--watch", "--notify"}} {
		p := atTerminal(t, h.command(t, watching, command...), 200)
		c.python(t, createTwo, "github")
		p.sees("\a\x1b]9;toolcell: github.create_issue waits for your approval\a")
		var lines string
		waitFor(t, "notify-send", func() bool {
			data, _ := os.ReadFile(shown)
			lines = string(data)
			return strings.Count(lines, "\n") == i+1
		})
		if want := "--app-name=toolcell -- toolcell github.create_issue waits for your approval\n"; lines != strings.Repeat(want, i+1) {
			t.Errorf("notify-send was called so: %s", lines)
		}
		all := questions(t, h, e)
		if _, errs, code := h.run(t, e, "approvals", "deny", all[len(all)-1].ID); code != 0 {
			t.Fatal(errs)
		}
		p.sees("denied  github.create_issue")
		p.types("\x03")
		p.leavesWith(130)
	}
}

func TestExecAsksForApproval(t *testing.T) {
	h, e := asking(t)
	for name, c := range map[string]struct {
		typed, sees string
		code        int
	}{
		"yes, yes":     {"y\ry\r", "one two", 0},
		"for the run":  {"r\r", "one two", 0},
		"no":           {"n\r", "denied by the user", exitFail},
		"no, because":  {"n use the test account\r", "denied by the user, who says: use the test account", exitFail},
		"stop":         {"s\r", "stopped", exitFail},
		"end of input": {"\x04", "stopped", exitFail},
		"Ctrl-C":       {"\x03", "", 130},
	} {
		t.Run(name, func(t *testing.T) {
			p := atTerminal(t, h.command(t, e, "exec", "--server", "github", "-c", createTwo), 100)
			for part := range strings.SplitAfterSeq(c.typed, "\r") {
				if part != "" {
					p.sees("Your answer [y/r/n/s]: ")
					p.types(part)
				}
			}
			p.sees(c.sees)
			p.leavesWith(c.code)
		})
	}
}

func TestExecAsksWhichOfSeveralCalls(t *testing.T) {
	h, e := asking(t)
	p := atTerminal(t, h.command(t, e, "exec", "--server", "github", "-c", gatherThree), 100)
	p.sees("numbers, such as 1,3: allow only these calls, and deny the others")
	p.enters("4\r", "give numbers from 1 to 3, such as 1,3")
	p.sees("Your answer [y/r/n/s or numbers]: ")
	p.enters("2-3\r", "[MCPError('denied by the user'), 'two', 'three']")
	p.leavesWith(0)
}

// TestExecAsksWhileItsInputIsAPipe: the lines of the pipe are the code's.
func TestExecAsksWhileItsInputIsAPipe(t *testing.T) {
	h, e := asking(t)
	cmd := h.command(t, e, "exec", "--server", "github", "-c", "print((await mcp_github.create_issue(title=input())).title)")
	cmd.Stdin = strings.NewReader("n\ns\n")
	p := atTerminal(t, cmd, 100)
	p.sees(`{"title":"n"}`)
	p.sees("Your answer [y/r/n/s]: ")
	p.enters("y\r", "\nn\r\n")
	p.leavesWith(0)
}

func TestPromptAsks(t *testing.T) {
	h, e := asking(t)
	p := atPrompt(t, h, e, "--server", "github")
	for typed, sees := range map[string]string{"y\r": "'it'", "n\r": "denied by the user", "\x03": "stopped"} {
		p.enters(fmt.Sprintf("(await mcp_github.create_issue(title='%s')).title\r", "it"), "Your answer [y/r/n/s]: ")
		p.enters(typed, sees)
		p.sees(">>> ")
	}
	p.types("\x04")
	p.leavesWith(0)
}

// TestExecWithoutATerminalAsksNobody: the policy says what holds then.
func TestExecWithoutATerminalAsksNobody(t *testing.T) {
	h, e := asking(t)
	if out, errs, code := h.run(t, e, "exec", "--server", "github", "-c", createTwo); code != exitFail || !strings.Contains(errs, "ask") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}

// TestAWrapperDoesNotHideTheClient: serve is a child of a shell, as it is of npx, and the
// test, which is the client, has started that shell.
func TestAWrapperDoesNotHideTheClient(t *testing.T) {
	h, e := asking(t)
	c := connect(t, h.shell(t, e, `"$@"; :`, "serve"))
	c.python(t, createTwo, "github")
	q := questions(t, h, e)[0]
	p := atTerminal(t, h.command(t, e, "approvals", "approve", q.ID), 100)
	p.sees("was started by the MCP client")
	p.leavesWith(exitFail)
	if _, errs, code := h.run(t, e, "approvals", "deny", q.ID, "--stop"); code != 0 {
		t.Error(errs)
	}
}
