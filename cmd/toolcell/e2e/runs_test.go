package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A listedRun is a row of toolcell runs list --json.
type listedRun struct {
	Run, Status, Command   string
	Client                 struct{ Name, Version string }
	Calls, Writes, Unknown int
}

// listRuns lists the runs that fit some flags.
func listRuns(t *testing.T, h *host, e env, flags ...string) (all []listedRun) {
	t.Helper()
	out := h.must(t, e, append([]string{"runs", "list", "--json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return all
}

// TestACallOfAKilledServeIsUnknown: what went out and was not answered may have taken effect, and the
// record says so. It is whole.
func TestACallOfAKilledServeIsUnknown(t *testing.T) {
	t.Parallel()
	h := firstHost(t)
	e := h.ownState(t)
	e["TOOLCELL_IMAGE"], e["TOOLCELL_SERVERS_CONFIG"] = "host", fakeConfig(t, nil)
	c := h.serveRaw(t, e)
	c.sendCode(t, "await mcp_odd.pid()\nawait mcp_odd.hang()", "odd")
	waitFor(t, "the call to go out", func() bool { return len(listRuns(t, h, e, "--tool", "odd.hang")) == 1 })
	if all := listRuns(t, h, e); len(all) != 1 || all[0].Status != "running" || all[0].Client.Name != "raw" {
		t.Errorf("while it runs: %+v", all)
	}
	c.kill9(t)
	_ = c.stop()
	waitFor(t, "the run to be known as killed", func() bool { return len(listRuns(t, h, e, "--status", "killed")) == 1 })
	all := listRuns(t, h, e)
	if len(all) != 1 || all[0].Calls != 2 || all[0].Unknown != 1 {
		t.Fatalf("%+v", all)
	}
	out := h.must(t, e, "runs", "show", all[0].Run[:6])
	for _, want := range []string{
		"  killed\n", "its process ended before the run did", "1 unknown: may have taken effect", "raw 1, by toolcell serve",
		"#1     1  await mcp_odd.pid()\n", "#2*    2  await mcp_odd.hang()\n", "odd.hang  writes  unknown: may have taken effect\n",
	} {
		if !strings.Contains(out, want) && !strings.Contains(out, strings.ReplaceAll(want, "#1 ", "#1*")) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	if out := h.must(t, e, "runs", "verify"); !strings.Contains(out, "its process was killed\n") || !strings.Contains(out, "\nwhole: 1 file ") {
		t.Errorf("verify: %s", out)
	}
	if out := h.must(t, e, "runs", "stats"); !strings.Contains(out, "hang") {
		t.Errorf("stats: %s", out)
	}
}

// TestFollowPrintsRunsAsTheyCome, for a person and as JSON.
func TestFollowPrintsRunsAsTheyCome(t *testing.T) {
	t.Parallel()
	h := firstHost(t)
	for _, flags := range [][]string{nil, {"--json"}} {
		e := h.ownState(t)
		e["TOOLCELL_IMAGE"], e["TOOLCELL_SERVERS_CONFIG"] = "host", fakeConfig(t, nil)
		h.must(t, e, "exec", "-c", "'before'")
		follow := h.command(t, e, append([]string{"runs", "follow"}, flags...)...)
		out, err := follow.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		follow.Stderr = os.Stderr
		if err := follow.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = follow.Process.Kill() })
		lines := make(chan string)
		go func() {
			defer close(lines)
			for in := bufio.NewScanner(out); in.Scan(); {
				lines <- in.Text()
			}
		}()
		begins, ends := "  begins  exec, servers github", "  ends    success after "
		if flags != nil {
			begins, ends = `"kind":"run.start"`, `"kind":"run.end"`
		}
		// It follows from when it has begun to look, which nothing tells: runs are made until it shows one
		// from its beginning.
		var seen []string
		whole := func() bool {
			_, after, began := strings.Cut(strings.Join(seen, "\n"), begins)
			return began && strings.Contains(after, ends)
		}
		for end := time.Now().Add(slow(patience)); !whole(); {
			if time.Now().After(end) {
				t.Fatalf("it printed %q", seen)
			}
			h.must(t, e, "exec", "--server", "github", "-c", "await mcp_github.create_issue(title='one')")
			for more := true; more; {
				select {
				case line := <-lines:
					seen = append(seen, line)
				case <-time.After(time.Second):
					more = false
				}
			}
		}
		all := strings.Join(seen, "\n")
		want := []string{"  begins  exec, servers github", "  call    #1   github.create_issue  writes  sent\n", "  call    #1   github.create_issue  writes  ok  "}
		if flags != nil {
			want = []string{`"kind":"run.start"`, `"kind":"call.start"`}
			for _, line := range seen {
				if !json.Valid([]byte(line)) {
					t.Errorf("it printed %q", line)
				}
			}
		}
		for _, w := range want {
			if !strings.Contains(all, w) {
				t.Errorf("there is no %q in\n%s", w, all)
			}
		}
		if strings.Contains(all, "before") {
			t.Errorf("it began with runs of before: %s", all)
		}
		if err := follow.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		for range lines { // up to its end
		}
		if _ = follow.Wait(); follow.ProcessState.ExitCode() != 130 {
			t.Errorf("interrupted it ends with %v", follow.ProcessState)
		}
	}
}

// TestTheRecordSaysWhoAllowedACall, also when its serve has gone.
func TestTheRecordSaysWhoAllowedACall(t *testing.T) {
	h, e := asking(t)
	state := h.ownState(t)
	e["TOOLCELL_STATE_DIR"] = state["TOOLCELL_STATE_DIR"]
	c := h.serve(t, e)
	if r := c.python(t, "print((await mcp_github.create_issue(title='one')).title)", "github"); r.status() != "approval_needed" {
		t.Fatalf("%s: %s", r.status(), r.text)
	}
	id := questions(t, h, e)[0].ID
	if out := h.must(t, e, "approvals", "list", "--all"); !strings.Contains(out, id) || !strings.Contains(out, "  pending  ") {
		t.Errorf("while it waits: %s", out)
	}
	p := inOtherTerminal(t, h.command(t, e, "approvals", "approve", id))
	p.sees("To allow this call, type ")
	p.enters(p.sees(":")+"\r", "approved: "+id)
	if code := p.exits(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	c.call(t, map[string]any{"code": "", "session": id}).want(t, "one")
	if r := c.python(t, tryCall, "github"); r.status() != "approval_needed" {
		t.Fatalf("%s: %s", r.status(), r.text)
	}
	denied := questions(t, h, e)[1].ID
	h.must(t, e, "approvals", "deny", denied)
	c.call(t, map[string]any{"code": "", "session": denied})
	c.Close()

	out := h.must(t, e, "approvals", "list", "--all")
	for _, want := range []string{id + "  ", "  approved  with toolcell approvals on pts/", "  github.create_issue {\"title\":\"one\"}\n", denied + "  ", "  denied    with toolcell approvals"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	all := listRuns(t, h, e, "--client", "e2e", "--status", "success")
	if len(all) == 0 {
		t.Fatalf("there are no runs: %+v", listRuns(t, h, e))
	}
	out = h.must(t, e, "runs", "show", all[len(all)-1].Run)
	for _, want := range []string{"github.create_issue  writes  ok  ", "allowed by the user with toolcell approvals on pts/", "(" + id + ")", "a rule asks: "} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	if out := h.must(t, e, "runs", "list", "--calls"); !strings.Contains(out, "denied by the user with toolcell approvals") || !strings.Contains(out, "  refused ") {
		t.Errorf("calls: %s", out)
	}
}

// TestValuesOfPrivateServersStayOnRecord: the record has them since the policy says so, and a program
// does not get them unasked.
func TestValuesOfPrivateServersStayOnRecord(t *testing.T) {
	t.Parallel()
	h := firstHost(t)
	e := h.ownState(t)
	dir, write := policyFolder(t)
	e["TOOLCELL_IMAGE"], e["TOOLCELL_SERVERS_CONFIG"], e["XDG_CONFIG_HOME"] = "host", fakeConfig(t, nil), dir
	write("[servers.github]\nprivate = true\nrecord = 'all'")
	h.must(t, e, "exec", "--server", "github", "-c", "print(await mcp_github.create_issue(title=chr(65)*9))")
	run := listRuns(t, h, e)[0].Run
	write("") // it counts that the server was private
	for _, args := range [][]string{{"runs", "show", run}, {"runs", "show", "--json", run}, {"runs", "list", "--calls"}, {"runs", "export"}} {
		if out := h.must(t, e, args...); strings.Contains(out, "AAAAAAAAA") || !strings.Contains(out, "create_issue") {
			t.Errorf("%v: %s", args, out)
		}
	}
	if out := h.must(t, e, "runs", "show", "--values", run); strings.Count(out, "AAAAAAAAA") < 3 {
		t.Errorf("with --values: %s", out)
	}
	p := atTerminal(t, h.command(t, e, "runs", "show", run), 120)
	p.sees(`{"title":"AAAAAAAAA"}`)
	if code := p.leaves(); code != 0 {
		t.Errorf("exit %d", code)
	}
}
