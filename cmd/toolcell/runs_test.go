package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/terminaltest"
)

// A recorded is a state folder with a record that a test writes.
type recorded struct {
	state   string
	journal *record.Journal
}

func newRecorded(t *testing.T, o record.Options) *recorded {
	t.Helper()
	for _, name := range []string{"XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	state := t.TempDir()
	o.Dir, o.Host = filepath.Join(state, "state", "records"), "vm"
	return &recorded{state, record.Open(o)}
}

// write writes a run.
func (r *recorded) write(t *testing.T, id string, entries ...record.Entry) {
	t.Helper()
	run := r.journal.Begin(id, "")
	for _, e := range entries {
		if err := run.Append(e); err != nil {
			t.Fatal(err)
		}
	}
}

// close ends the process that writes, as far as readers can tell.
func (r *recorded) close(t *testing.T) {
	t.Helper()
	if err := r.journal.Close(); err != nil {
		t.Fatal(err)
	}
}

// types runs `toolcell runs …` on this record, with pipes for its streams.
func (r *recorded) types(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	stdout, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := os.Create(filepath.Join(t.TempDir(), "errs"))
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { stdout.Close(); stderr.Close(); null.Close() }()
	code = runCommandLine(r.line(args), null, stdout, stderr)
	return read(t, stdout), read(t, stderr), code
}

func (r *recorded) line(args []string) []string {
	return append([]string{"toolcell"}, append(args, "--state-dir", r.state)...)
}

// atTerminal runs it at a terminal, where typed is typed.
func (r *recorded) atTerminal(t *testing.T, typed string, args ...string) (out string, code int) {
	t.Helper()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	ours, theirs := terminaltest.Open(t, 120)
	seen := make(chan string)
	go func() {
		all, _ := io.ReadAll(ours) // its error says that the other end is closed
		seen <- string(all)
	}()
	if _, err := ours.WriteString(typed); err != nil {
		t.Fatal(err)
	}
	code = runCommandLine(r.line(args), theirs, theirs, theirs)
	theirs.Close()
	return strings.ReplaceAll(<-seen, "\r\n", "\n"), code
}

// a run of a client with two calls, of which the user allowed one.
func aRun(code string) []record.Entry {
	return []record.Entry{
		record.RunStart{
			Command: "serve", Version: "0.2.0", Client: record.Client{Name: "claude-code", Version: "2.1.0", Era: "2026-07-28"}, User: "ada", Session: "s1",
			Code: record.TextOf(code), Grants: record.Grants{Servers: []string{"bank", "github"}, Hosts: []string{"api.github.com"}}, Policy: strings.Repeat("ab", 32),
		},
		record.RunReady{Image: record.Image{Name: "python:3.14-slim", Digest: "sha256:0123"}, Packages: []record.Package{{Name: "pandas", Version: "2.2"}}, Continued: true},
		record.CallStart{Call: 1, Line: 1, Effect: "tools/call", Server: "github", Tool: "list_issues", Arguments: record.TextOf(`{"n":9007199254740993}`)},
		record.CallEnd{Call: 1, Server: "github", Tool: "list_issues", Outcome: record.OK, Duration: 120_000, Answer: record.TextOf(`{"content":[]}`)},
		record.Verdict{Call: 2, Line: 2, Effect: "tools/call", Server: "bank", Tool: "transfer", Decision: "ask", Reasons: []string{"it writes"}, Writes: true, Arguments: record.TextOf(`{"to":"landlord"}`)},
		record.Ask{Question: "ask-A", State: "asked", About: "call", Calls: []int{2}, Shown: record.TextOf("transfer?")},
		record.Ask{Question: "ask-A", State: "approved", About: "call", Calls: []int{2}, By: "toolcell approvals", Terminal: "pts/4", Client: "claude-code", Scope: "call", Waited: 3_000_000},
		record.CallStart{Call: 2, Line: 2, Effect: "tools/call", Server: "bank", Tool: "transfer", Arguments: record.TextOf(`{"to":"landlord"}`), Writes: true},
		record.CallEnd{Call: 2, Server: "bank", Tool: "transfer", Outcome: record.OK, Writes: true, Duration: 1500},
		record.Egress{Host: "api.github.com", Port: 443, Requests: 2, Sent: 100, Received: 2048},
		record.RunEnd{
			Status: "error", Error: record.TextOf("ZeroDivisionError: division by zero"), Traceback: record.TextOf("Traceback\n  1/0"),
			Stdout: record.TextOf("sent to landlord\n"), Calls: 2, Duration: 339_000,
		},
		record.RunCost{CPU: 120_000, Peak: 45 << 20},
	}
}

const twoCalls = "await mcp_github.list_issues()\nawait mcp_bank.transfer()\n1/0"

// TestAPersonReadsWhatARunDid: who, what, which calls at which lines, who allowed them, the cost and the end.
func TestAPersonReadsWhatARunDid(t *testing.T) {
	r := newRecorded(t, record.Options{})
	r.write(t, "aaaabbbbcccc", aRun(twoCalls)...)
	r.close(t)
	out, errs, code := r.types(t, "runs", "show", "aaaa")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	for _, want := range []string{
		"run aaaabbbbcccc  ", "error after 339ms", "2 calls, 1 may have changed something", "ZeroDivisionError: division by zero",
		"claude-code 2.1.0, by toolcell serve (toolcell 0.2.0, MCP 2026-07-28)", "ada@vm", "s1, continued", "servers bank, github; hosts api.github.com",
		"python:3.14-slim (sha256:0123)", "pandas 2.2", "SHA-256 abababababab", "120ms of processor time, 45 MiB of memory at most",
		"   #1    1  await mcp_github.list_issues()\n", "  #2*    2  await mcp_bank.transfer()\n", "       3  1/0\n",
		"#1   github.list_issues  reads   ok  120ms  answered 14 bytes\n", `{"n":9007199254740993}`,
		"#2   bank.transfer       writes  ok  1.5ms\n", "allowed by the user with toolcell approvals on pts/4, after 3s (ask-A)", "a rule asks: it writes",
		"network   api.github.com:443: 2 requests, 100 bytes sent, 2 KiB received", "OUTPUT\n  | sent to landlord\n", "TRACEBACK\n  | Traceback\n  |   1/0\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
}

// TestTheListSaysWhatToLookAt, and its filters leave out the others.
func TestTheListSaysWhatToLookAt(t *testing.T) {
	r := newRecorded(t, record.Options{})
	r.write(t, "aaaabbbbcccc", aRun("import mcp\n# pay\n"+twoCalls)...)
	r.write(t, "bbbbccccdddd", record.RunStart{Command: "serve", Client: record.Client{Name: "cursor"}}, record.CallStart{Call: 1, Server: "mail", Tool: "send", Writes: true})
	r.close(t)
	out, _, _ := r.types(t, "runs")
	if got := fields(out); len(got) != 3 || !strings.HasPrefix(out, "RUN ") ||
		!regexp.MustCompile(`(?m)^bbbbcccc  \d\d:\d\d:\d\d  cursor +killed \(1 unknown\) +1 +1 +–$`).MatchString(out) ||
		!regexp.MustCompile(`(?m)^aaaabbbb  \d\d:\d\d:\d\d  claude-code  error +2 +1  339ms  await mcp_github.list_issues\(\)$`).MatchString(out) {
		t.Errorf("got\n%s", out)
	}
	tomorrow := time.Now().Add(24 * time.Hour).Format(time.DateOnly)
	for _, tt := range []struct {
		args string
		runs int
	}{
		{"--since 1h", 2},
		{"--since today --until today", 2},
		{"--until yesterday", 0},
		{"--since " + tomorrow, 0},
		{"--status killed", 1},
		{"--status success", 0},
		{"--client CURSOR", 1},
		{"--server bank", 1},
		{"--tool send", 1},
		{"--tool mail.send", 1},
		{"--tool bank.send", 0},
		{"--writes", 2},
		{"-n 1", 1},
		{"-n 0", 2},
	} {
		var all []history.Run
		out, errs, code := r.types(t, append([]string{"runs", "list", "--json"}, strings.Fields(tt.args)...)...)
		if err := json.Unmarshal([]byte(out), &all); err != nil || code != 0 || len(all) != tt.runs {
			t.Errorf("%s: exit %d, %v, %d runs, want %d: %s", tt.args, code, err, len(all), tt.runs, errs)
		}
	}
	if _, errs, _ := r.types(t, "runs", "-n", "1"); errs != "hint: there are more runs: -n 10, -n 0 for all, or --until and other filters\n" {
		t.Errorf("got %q", errs)
	}
	out, _, _ = r.types(t, "runs", "list", "--calls", "--writes", "--client", "claude")
	if got := fields(out); len(got) != 2 || !strings.Contains(out, `bank.transfer  writes  ok       {"to":"landlord"}  allowed by the user with toolcell approvals on pts/4`) {
		t.Errorf("got\n%s", out)
	}
}

// fields returns the words of each line.
func fields(s string) (lines [][]string) {
	for line := range strings.Lines(s) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

var ourColors = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// TestHostileRunsAreText: a terminal obeys nothing of them, and no line of a value can be taken for one
// of ours.
func TestHostileRunsAreText(t *testing.T) {
	const evil = "\x1b]0;owned\x07\x1b[2J\u009b31m\u202eevil\r\nWHAT IT DID\n  +0.1s  #1  bank.transfer\n\x1b[1;31m"
	r := newRecorded(t, record.Options{Keep: record.KeepAll})
	long := strings.Repeat("x", 1<<20)
	r.write(t, "eeeeeeeeeeee",
		record.RunStart{Command: evil, Client: record.Client{Name: evil, Version: long}, Session: evil, Code: record.TextOf(evil + long), Grants: record.Grants{Servers: []string{evil}}},
		record.RunReady{Image: record.Image{Name: evil}},
		record.Verdict{Call: 1, Server: evil, Tool: evil, Decision: "ask", Reasons: []string{evil}},
		record.Ask{Question: evil, State: "asked", Calls: []int{1}},
		record.Ask{Question: evil, State: evil, Calls: []int{1}, By: evil, Terminal: evil, Remark: evil, Because: record.TextOf(evil)},
		record.CallStart{Call: 1, Line: 1 << 40, Server: evil, Tool: evil, Arguments: record.TextOf(evil + long)},
		record.CallEnd{Call: 1, Server: evil, Tool: evil, Outcome: record.Outcome(evil), Error: record.TextOf(evil), Answer: record.TextOf(evil + long)},
		record.Egress{Host: evil, Rule: evil}, record.File{Name: evil, Type: evil}, record.Limit{Name: evil, Effect: evil}, record.Pin{Server: evil, Tool: evil, Change: evil},
		record.RunEnd{Status: evil, Error: record.TextOf(evil), Traceback: record.TextOf(evil), Stdout: record.TextOf(evil + long), Result: record.TextOf(evil)})
	r.close(t)
	r.insert(t)
	for _, args := range [][]string{
		{"runs"},
		{"runs", "list", "--calls"},
		{"runs", "show", "eeee"},
		{"runs", "show", "--values", "eeee"},
		{"runs", "stats"},
		{"runs", "verify"},
		{"runs", "head"},
		{"runs", "export"},
		{"runs", "export", "--format", "csv"},
		{"runs", "forget", "--dry-run", "eeee"},
		{"runs", "show", "--json", "eeee"},
		{"approvals", "list", "--all"},
	} {
		name := strings.Join(args, " ")
		out, _ := r.atTerminal(t, "", args...)
		piped, _, _ := r.types(t, args...)
		for _, text := range []string{ourColors.ReplaceAllString(out, ""), piped} {
			if at := strings.IndexFunc(text, func(c rune) bool {
				return unicode.IsControl(c) && c != '\n' || c == '\u202e' && !strings.Contains(name, "json") && !strings.Contains(name, "export")
			}); at >= 0 {
				t.Errorf("%s: a control character in %q", name, text[max(0, at-40):min(len(text), at+40)])
			}
			if n := strings.Count("\n"+text, "\nWHAT IT DID\n"); n > 1 || n == 1 && !strings.Contains(name, "show") {
				t.Errorf("%s: a value looks like a line of ours:\n%.2000s", name, text)
			}
		}
		if len(piped) > 1<<20 {
			t.Errorf("%s: it prints %d bytes", name, len(piped))
		}
	}
}

// insert adds a line to the record that no toolcell writes, with control characters in its names.
func (r *recorded) insert(t *testing.T) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(r.state, "state", "records", "*", "vm-*.jsonl"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".values.jsonl") {
			continue
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"run.start", "call.start", "odd\\u001b]0;x\\u0007"} {
			fmt.Fprintf(f, `{"v":1,"seq":99,"prev":"%064d","time":"2026-11-27T10:00:00.000000000Z","kind":"%s","run":"eeeeeeeeeeee","server":"a\u001b[2J","tool":"\u009b2J","client":{"name":"\u001b[2J"},"status":"\u001b]0;x\u0007"}`+"\n", 0, kind)
		}
		f.Close()
	}
}

// TestValuesOfPrivateServersStayHere: without a terminal they are printed only if the user asks for them,
// nor is what the code printed that called one.
func TestValuesOfPrivateServersStayHere(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "policy.toml")
	for name, policy := range map[string]string{
		"a private server": "[servers.bank]\nprivate = true\nrecord = \"all\"", "a broken policy": "[servers.bank", "a server that was private": "",
	} {
		r := newRecorded(t, record.Options{Keep: record.KeepAll})
		r.write(t, "aaaabbbbcccc", withPrivate(aRun(twoCalls), name == "a server that was private")...)
		r.write(t, "bbbbccccdddd", record.RunStart{Code: record.TextOf("1")}, record.RunEnd{Status: "success", Stdout: record.TextOf("of nobody")})
		r.close(t)
		if err := os.WriteFile(rules, []byte(policy), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"runs", "show", "aaaa"}, {"runs", "show", "--json", "aaaa"}, {"runs", "list", "--calls"}, {"runs", "export"}, {"runs", "export", "--format", "csv"},
		} {
			args = append(args, "--policy", rules)
			line := strings.Join(args[:len(args)-2], " ")
			out, errs, code := r.types(t, args...)
			if code != 0 || strings.Contains(out, "landlord") || !strings.Contains(out, "github") {
				t.Errorf("%s, %s: exit %d, %s%s", name, line, code, out, errs)
			}
			if line == "runs export" && !strings.Contains(out, "of nobody") {
				t.Errorf("%s, %s: values of another run are not there: %s", name, line, out)
			}
			if out, _ := r.atTerminal(t, "", args...); !strings.Contains(out, "landlord") && !strings.Contains(line, "csv") {
				t.Errorf("%s, %s at a terminal: %s", name, line, out)
			}
		}
		out, _, _ := r.types(t, "runs", "show", "aaaa", "--policy", rules)
		if !strings.Contains(out, "(17 bytes, not shown: --values)") || !strings.Contains(out, "OUTPUT  (17 bytes, not shown: --values)") {
			t.Errorf("%s: %s", name, out)
		}
		for _, args := range [][]string{{"runs", "show", "aaaa"}, {"runs", "show", "--json", "aaaa"}, {"runs", "export"}} {
			if out, _, _ := r.types(t, append(args, "--values", "--policy", rules)...); !strings.Contains(out, "landlord") {
				t.Errorf("%s, %v --values: %s", name, args, out)
			}
		}
	}
}

// withPrivate has the entries about the bank say that it is private.
func withPrivate(entries []record.Entry, private bool) []record.Entry {
	for i := range entries {
		switch e := entries[i].(type) {
		case record.Verdict:
			e.Private = private
			entries[i] = e
		case record.CallStart:
			e.Private = private && e.Server == "bank"
			entries[i] = e
		case record.CallEnd:
			e.Private = private && e.Server == "bank"
			entries[i] = e
		case record.RunEnd:
			e.Private = private
			entries[i] = e
		}
	}
	return entries
}

// TestACallWithoutAnEndIsUnknown if the run was killed, and under way while its process lives.
func TestACallWithoutAnEndIsUnknown(t *testing.T) {
	r := newRecorded(t, record.Options{})
	r.write(t, "aaaabbbbcccc", aRun(twoCalls)[:8]...)
	if out, _, _ := r.types(t, "runs", "show", "aaaa"); !strings.Contains(out, "  running\n") || !strings.Contains(out, "bank.transfer       writes  under way for ") {
		t.Errorf("while it runs: %s", out)
	}
	r.close(t)
	out, _, _ := r.types(t, "runs", "show", "aaaa")
	for _, want := range []string{"  killed\n", "1 unknown: may have taken effect", "bank.transfer       writes  unknown: may have taken effect", "allowed by the user"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	var rows []shownRun
	out, _, _ = r.types(t, "runs", "show", "--json", "aaaa")
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 1 || len(rows[0].Entries) != 8 || rows[0].Run.Status != "killed" ||
		fmt.Sprint(rows[0].Run.Uncertain) != "[2]" || rows[0].Run.Image.Digest != "sha256:0123" || rows[0].Run.Client.Version != "2.1.0" {
		t.Errorf("%v: %s", err, out)
	}
}

// TestShortIDs name one run, or the error lists them.
func TestShortIDs(t *testing.T) {
	r := newRecorded(t, record.Options{})
	for _, id := range []string{"aaaabbbbcccc", "aaaaccccdddd", "bbbb"} {
		r.write(t, id, record.RunStart{}, record.RunEnd{Status: "success"})
	}
	r.close(t)
	for id, want := range map[string]string{
		"aaaa": "toolcell: \"aaaa\" begins the IDs of several runs: aaaabbbbcccc, aaaaccccdddd; give more of it\n",
		"cccc": "toolcell: there is no run \"cccc\" on record; toolcell runs list shows them\n",
	} {
		for _, command := range []string{"show", "forget"} {
			if out, errs, code := r.types(t, "runs", command, id); code != 1 || out != "" || errs != want {
				t.Errorf("%s %s: exit %d, %q%q", command, id, code, out, errs)
			}
		}
	}
	if out, _, code := r.types(t, "runs", "show", "aaaab"); code != 0 || !strings.HasPrefix(out, "run aaaabbbbcccc ") {
		t.Errorf("exit %d, %s", code, out)
	}
}

// TestForgetAsks, removes the values and leaves a record that verifies.
func TestForgetAsks(t *testing.T) {
	r := newRecorded(t, record.Options{})
	r.write(t, "aaaabbbbcccc", aRun(twoCalls)...)
	r.write(t, "bbbbccccdddd", aRun("print('mine')")...)
	r.close(t)
	_, head, _ := r.types(t, "runs", "head")
	if head != "" {
		t.Fatal(head)
	}
	if out, errs, code := r.types(t, "runs", "forget", "aaaa"); code != 2 || !strings.Contains(out, "8 values") || !strings.Contains(errs, "needs --yes") {
		t.Errorf("without a terminal: exit %d, %s%s", code, out, errs)
	}
	if out, errs, code := r.types(t, "runs", "forget", "aaaa", "--json"); code != 2 || strings.TrimSpace(out) != "[]" || !strings.Contains(errs, "needs --yes") {
		t.Errorf("without a terminal: exit %d, %s%s", code, out, errs)
	}
	if out, _, code := r.types(t, "runs", "forget", "aaaa", "--dry-run"); code != 0 || !strings.Contains(out, "8 values") {
		t.Errorf("dry: exit %d, %s", code, out)
	}
	if out, code := r.atTerminal(t, "n\n", "runs", "forget", "aaaa"); code != 1 || !strings.Contains(out, "Remove these 8 values for good? [y/N]") || !strings.Contains(out, "nothing was removed") {
		t.Errorf("no: exit %d, %s", code, out)
	}
	if out, _, _ := r.types(t, "runs", "show", "aaaa"); !strings.Contains(out, "list_issues()") {
		t.Errorf("something was removed: %s", out)
	}
	if out, code := r.atTerminal(t, "y\n", "runs", "forget", "aaaa"); code != 0 || !strings.Contains(out, "removed 8 values\n") {
		t.Errorf("yes: exit %d, %s", code, out)
	}
	out, _, _ := r.types(t, "runs", "show", "aaaa", "--values")
	if strings.Contains(out, "list_issues()") || strings.Contains(out, "landlord") || !strings.Contains(out, "CODE  (60 bytes, forgotten or removed)") || !strings.Contains(out, "bank.transfer") {
		t.Errorf("after it: %s", out)
	}
	if out, _, _ := r.types(t, "runs", "show", "bbbb"); !strings.Contains(out, "print('mine')") {
		t.Errorf("the other run: %s", out)
	}
	if out, errs, code := r.types(t, "runs", "verify"); code != 0 || !strings.Contains(out, "\nwhole: 1 file") {
		t.Errorf("verify: exit %d, %s%s", code, out, errs)
	}
	var rows []forgottenRun
	out, _, code := r.types(t, "runs", "forget", "--yes", "--json", "aaaa", "bbbb")
	if err := json.Unmarshal([]byte(out), &rows); err != nil || code != 0 || len(rows) != 2 || rows[0].Values != 0 || rows[1].Values != 8 {
		t.Errorf("exit %d, %v, %s", code, err, out)
	}
}

// TestForgettingNothingSaysOnlyWhy: that nothing was removed is no success.
func TestForgettingNothingSaysOnlyWhy(t *testing.T) {
	r := newRecorded(t, record.Options{})
	dir := filepath.Join(r.state, "state", "records", "2026-11-27")
	if err := os.MkdirAll(filepath.Join(dir, "vm-exec.values.jsonl"), 0o700); err != nil { // which cannot be written to
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "vm-exec.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	o := runsOptions{Streams: &console.Streams{Out: out, Err: out}, Settings: settings.Settings{Dirs: settings.Dirs{State: filepath.Join(r.state, "state")}}}
	if err := o.forget([]forgottenRun{{Run: "aaaabbbbcccc"}}); err == nil || !strings.HasPrefix(err.Error(), "run aaaabbbbcccc: ") {
		t.Errorf("got %v", err)
	}
	if got := read(t, out); got != "" {
		t.Errorf("it prints %s", got)
	}
}

// TestEmptyFiltersAreRefused: they would count as none, as with a variable that is not set.
func TestEmptyFiltersAreRefused(t *testing.T) {
	r := newRecorded(t, record.Options{})
	for _, line := range []string{
		"runs --since=", "runs list --until=", "runs list --status=", "runs stats --client=", "runs export --server=", "runs export --tool=", "runs export --format=", "runs verify --head=",
	} {
		flag := strings.TrimSuffix(strings.Fields(line)[len(strings.Fields(line))-1], "=")
		if out, errs, code := r.types(t, strings.Fields(line)...); code != 2 || out != "" || errs != "toolcell: "+flag+" needs a value\n" {
			t.Errorf("%s: exit %d, %s%s", line, code, out, errs)
		}
	}
}

// TestVerifyNamesFileAndLine of what was changed, also if all hashes were made anew.
func TestVerifyNamesFileAndLine(t *testing.T) {
	r := newRecorded(t, record.Options{})
	r.write(t, "aaaabbbbcccc", aRun(twoCalls)...)
	r.close(t)
	heads, _, code := r.types(t, "runs", "head")
	if code != 0 || len(fields(heads)) != 2 {
		t.Fatalf("exit %d, %s", code, heads)
	}
	file := filepath.Join(t.TempDir(), "heads")
	if err := os.WriteFile(file, []byte(heads), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := r.types(t, "runs", "verify", "--head", file); code != 0 || !strings.HasPrefix(out, "whole: 1 file with 15 entries and 8 values\nThe record matches the 2 hashes kept elsewhere.\n") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	if out, _, _ := r.types(t, "runs", "verify"); !strings.Contains(out, "This does not show whether somebody wrote the whole record anew") {
		t.Errorf("got %s", out)
	}
	name := filepath.Join(r.state, "state", "records", fields(heads)[0][2])
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(data), `"list_issues"`, `"lost_issues"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := r.types(t, "runs", "verify", "--head", file)
	if code != 1 || !strings.Contains(out, "problem: "+fields(heads)[0][2]+":3: the line was changed") || errs != "toolcell: the record is not as it was written: 1 problem\n" ||
		!strings.Contains(out, "\nThe record does not match 1 of the 2 hashes kept elsewhere.\n") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	var rows []verifiedRecord
	out, _, code = r.types(t, "runs", "verify", "--json")
	if err := json.Unmarshal([]byte(out), &rows); err != nil || code != 1 || len(rows) != 1 || rows[0].Whole || len(rows[0].Problems) != 1 || rows[0].Problems[0].Line != 3 {
		t.Errorf("exit %d, %v, %s", code, err, out)
	}
	if err := os.RemoveAll(filepath.Join(r.state, "state", "records")); err != nil {
		t.Fatal(err)
	}
	if out, _, code := r.types(t, "runs", "verify", "--head", file); code != 1 || strings.Count(out, "it is missing: the heads have it") != 2 {
		t.Errorf("all is gone: exit %d, %s", code, out)
	}
}

// TestExportsHaveAllCalls: lines are JSON, and cells are no formulas.
func TestExportsHaveAllCalls(t *testing.T) {
	r := newRecorded(t, record.Options{})
	r.write(t, "aaaabbbbcccc", aRun(twoCalls)...)
	r.write(t, "bbbbccccdddd", record.RunStart{Client: record.Client{Name: "=HYPERLINK(1)"}}, record.CallStart{Call: 1, Server: "mail", Tool: "@send", Writes: true})
	r.write(t, "ccccddddeeee", record.RunStart{Command: "exec"}, record.RunEnd{Status: "success"})
	r.write(t, "ddddeeeeffff", record.RunStart{}, record.CallEnd{Call: 1, Line: 4, Server: "mail", Tool: "nothing", Outcome: record.Refused}, record.RunEnd{Status: "error"})
	r.close(t)
	out, _, code := r.types(t, "runs", "export", "--format", "csv")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || code != 0 || len(rows) != 6 || fmt.Sprint(rows[0]) != fmt.Sprint(exportHead) {
		t.Fatalf("exit %d, %v, %s", code, err, out)
	}
	cells := func(row int, names ...string) (all []string) {
		for _, name := range names {
			for i, head := range exportHead {
				if head == name {
					all = append(all, rows[row][i])
				}
			}
		}
		return all
	}
	got := fmt.Sprint(cells(2, "run", "client", "status", "server", "tool", "writes", "outcome", "call_ms", "arguments_bytes"))
	if got != "[aaaabbbbcccc claude-code error bank transfer true ok 1.5 17]" {
		t.Errorf("got %s", got)
	}
	if got := fmt.Sprint(cells(3, "run", "status", "call", "outcome")); got != "[ccccddddeeee success  ]" {
		t.Errorf("got %s", got)
	}
	if got := fmt.Sprint(cells(4, "run", "line", "tool", "outcome")); got != "[ddddeeeeffff 4 nothing refused]" {
		t.Errorf("got %s", got)
	}
	if got := fmt.Sprint(cells(5, "client", "tool", "outcome", "status")); got != "['=HYPERLINK(1) '@send unknown killed]" {
		t.Errorf("got %s", got)
	}
	out, _, _ = r.types(t, "runs", "export", "--client", "claude")
	lines := 0
	for line := range strings.Lines(out) {
		var e struct {
			Run, Kind, File string
			Values          map[string]struct{ Value string }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Run != "aaaabbbbcccc" || e.File == "" || e.Kind == "run.start" && e.Values["code"].Value != twoCalls {
			t.Errorf("%v: %s", err, line)
		}
		lines++
	}
	if lines != 12 {
		t.Errorf("%d lines", lines)
	}
	if _, errs, code := r.types(t, "runs", "export", "--format", "xml"); code != 2 || !strings.Contains(errs, "jsonl or csv") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// TestAListOfManyRunsReadsFew: what it reads does not grow with the record. Calls of read(2) count.
func TestAListOfManyRunsReadsFew(t *testing.T) {
	r := newRecorded(t, record.Options{})
	for i := range 10_000 {
		r.write(t, fmt.Sprintf("%08d", i),
			record.RunStart{Command: "serve", Code: record.TextOf(strings.Repeat("print(1)\n", 50))}, record.RunEnd{Status: "success", Duration: 1})
	}
	r.close(t)
	before := readBytes(t)
	out, _, code := r.types(t, "runs")
	took := readBytes(t) - before
	if n := len(fields(out)); code != 0 || n != 21 || !strings.HasPrefix(strings.Split(out, "\n")[1], "00009999 ") {
		t.Errorf("exit %d, %d lines: %s", code, n, out)
	}
	if took > 2<<20 {
		t.Errorf("it read %d bytes", took)
	}
	if out, _, _ := r.types(t, "runs", "-n", "0"); len(fields(out)) != 10_001 {
		t.Errorf("all are %d lines", len(fields(out)))
	}
}

// readBytes returns how many bytes this process has read (proc_pid_io(5), rchar).
func readBytes(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip("needs /proc/self/io")
	}
	_, rest, _ := strings.Cut(string(data), "rchar: ")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestAnswersOfEarlierRunsAreListed, with how they came.
func TestAnswersOfEarlierRunsAreListed(t *testing.T) {
	r := newRecorded(t, record.Options{})
	r.write(t, "aaaabbbbcccc", aRun(twoCalls)...)
	r.write(t, "ccccddddeeee", record.RunStart{},
		record.Verdict{Call: 1, Server: "mail", Tool: "send", Decision: "ask", Writes: true, Arguments: record.TextOf(`{"to":"Ada"}`)},
		record.Ask{Question: "ask-C", State: "asked", About: "call", Calls: []int{1}, Shown: record.TextOf("send?")},
		record.Ask{Question: "ask-C", State: "denied", About: "call", Calls: []int{1}, Because: record.TextOf("not on a Sunday")},
		record.Verdict{Call: 2, Server: "mail", Tool: "send", Decision: "ask"}, record.Verdict{Call: 3, Server: "mail", Tool: "send", Decision: "ask"},
		record.Ask{Question: "ask-D", State: "asked", About: "call", Calls: []int{2, 3}},
		record.Ask{Question: "ask-D", State: "approved", About: "call", Calls: []int{2, 3}, Scope: "call", Allowed: []int{3}}, record.RunEnd{Status: "success"})
	r.write(t, "bbbbccccdddd", record.RunStart{}, record.Ask{Question: "ask-B", State: "asked", About: "before"})
	if out, _, _ := r.types(t, "approvals", "list", "--all"); !strings.Contains(out, "  pending  ") {
		t.Errorf("while its process lives: %s", out)
	}
	r.close(t)
	out, _, code := r.types(t, "approvals", "list", "--all")
	if code != 0 || !regexp.MustCompile(`(?m)^ask-A +\d\d:\d\d:\d\d  approved +with toolcell approvals on pts/4  aaaabbbb  bank\.transfer \{"to":"landlord"\}$`).MatchString(out) ||
		!strings.Contains(out, "  denied: not on a Sunday") || !strings.Contains(out, "  ccccdddd  mail.send {\"to\":\"Ada\"}\n") ||
		!regexp.MustCompile(`(?m)^ask-D .*  approved, 1 of 2 calls .*  2 calls: mail\.send, …$`).MatchString(out) ||
		!regexp.MustCompile(`(?m)^ask-B +\d\d:\d\d:\d\d  unanswered +bbbbcccc  what the run may have before it starts$`).MatchString(out) {
		t.Errorf("exit %d, %s", code, out)
	}
	var rows []recordedAnswer
	out, _, _ = r.types(t, "approvals", "list", "--all", "--json")
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 4 || *rows[1].Because.Value != "not on a Sunday" || !slices.Equal(rows[2].Allowed, []int{2}) || rows[0].Client != "claude-code" || rows[0].Decided.IsZero() || rows[0].Scope != "call" || !strings.HasPrefix(*rows[0].Question.Value, "transfer?") {
		t.Errorf("%v: %s", err, out)
	}
	for _, args := range [][]string{{"approvals", "--notify"}, {"approvals", "list", "--notify", "--json"}} {
		if _, errs, code := r.types(t, args...); code != 2 || !strings.Contains(errs, "give --notify with --watch") {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
	if _, errs, code := r.types(t, "approvals", "list", "--all", "--watch"); code != 2 || !strings.Contains(errs, "give --all without --watch") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// TestRunsAreCompleted by their IDs.
func TestRunsAreCompleted(t *testing.T) {
	r := newRecorded(t, record.Options{})
	r.write(t, "aaaabbbbcccc", aRun(twoCalls)...)
	r.close(t)
	t.Setenv("TOOLCELL_STATE_DIR", r.state)
	for line, want := range map[string]string{
		"runs show aa": "aaaabbbbcccc\t", "runs forget aaaabbbbcccc ": "aaaabbbbcccc\t", "runs list --status k": "killed\t", "runs export --format c": "csv\t", "runs list --since y": "yesterday\t",
		"runs list --tool b": "bank.transfer\t", "runs stats --tool ": "bank.transfer\t\ngithub.list_issues\t", "runs export --client c": "claude-code\t",
	} {
		words := strings.Split("__complete zsh "+line, " ")
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		runCommandLine(append([]string{"toolcell"}, words...), nil, out, out)
		if got := read(t, out); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", line, got)
		}
		out.Close()
	}
}

func TestTimesAsAPersonWritesThem(t *testing.T) {
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		paris = time.FixedZone("CET", 3600)
	}
	local := time.Local
	time.Local = paris
	t.Cleanup(func() { time.Local = local })
	now := time.Date(2026, 11, 28, 9, 30, 0, 0, paris)
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 11, day, hour, minute, 0, 0, paris) }
	for s, want := range map[string][2]time.Time{
		"2h": {at(28, 7, 30), at(28, 7, 30)}, "90m": {at(28, 8, 0), at(28, 8, 0)}, "1d": {at(27, 9, 30), at(27, 9, 30)}, "1w": {at(21, 9, 30), at(21, 9, 30)},
		"today": {at(28, 0, 0), at(29, 0, 0)}, "Yesterday": {at(27, 0, 0), at(28, 0, 0)}, "2026-11-26": {at(26, 0, 0), at(27, 0, 0)},
		"2026-11-26T08:00:00Z": {at(26, 9, 0), at(26, 9, 0)}, "2026-11-26 08:15": {at(26, 8, 15), at(26, 8, 15)}, "08:15": {at(28, 8, 15), at(28, 8, 15)}, "now": {now, now},
	} {
		from, to, err := parseWhen(s, now)
		if err != nil || !from.Equal(want[0]) || !to.Equal(want[1]) {
			t.Errorf("%s: %s to %s, %v; want %s to %s", s, from, to, err, want[0], want[1])
		}
	}
	for _, s := range []string{"", "soon", "-2h", "2026-13-01", "5", "1e9d", "NaNd"} {
		if from, _, err := parseWhen(s, now); err == nil {
			t.Errorf("%q is read as %s", s, from)
		}
	}
}

// TestManyCallsAlikeAreSummedUp, unless they write, failed or all is wanted; the error is printed once.
func TestManyCallsAlikeAreSummedUp(t *testing.T) {
	r := newRecorded(t, record.Options{})
	entries := []record.Entry{record.RunStart{Code: record.TextOf("gather(…)\n1/0")}}
	for _, i := range []int{2, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12} {
		writes := i >= 11
		entries = append(entries, record.CallStart{Call: i, Line: 1, Server: "a", Tool: "b", Writes: writes},
			record.CallEnd{Call: i, Server: "a", Tool: "b", Outcome: record.OK, Writes: writes, Answer: record.TextOf("{}")})
	}
	const traceback = "Traceback (most recent call last):\n  1/0\nZeroDivisionError"
	entries = append(entries, record.RunEnd{Status: "error", Stderr: record.TextOf("warned\n" + traceback + "\n"), Traceback: record.TextOf(traceback), Error: record.TextOf("ZeroDivisionError")})
	r.write(t, "aaaabbbbcccc", entries...)
	r.close(t)
	out, _, _ := r.types(t, "runs", "show", "aaaa")
	for _, want := range []string{"  #1-12*    1  gather(…)\n", "  #1   a.b", "7 more calls like this, #4-10: ok, answered 14 bytes; --values shows them\n", "  #11  a.b  writes", "  #12  a.b  writes", "STANDARD ERROR\n  | warned\n", "TRACEBACK\n  | Traceback"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "  #5   a.b") || strings.Count(out, "Traceback (most") != 1 {
		t.Errorf("got\n%s", out)
	}
	if out, _, _ := r.types(t, "runs", "show", "aaaa", "--values"); strings.Count(out, "a.b") != 12 {
		t.Errorf("all of it is\n%s", out)
	}
}

// TestRunsWithLostEntriesAreNamed, as not all that they did is in a list.
func TestRunsWithLostEntriesAreNamed(t *testing.T) {
	r := newRecorded(t, record.Options{})
	r.write(t, "aaaabbbbcccc", record.RunStart{}, record.RunEnd{Status: "success", Calls: 2, Lost: 3})
	r.write(t, "ddddeeeeffff", record.RunStart{}, record.RunEnd{Status: "success"})
	r.close(t)
	for _, args := range [][]string{{"runs", "list"}, {"runs", "list", "--calls"}} {
		_, errs, code := r.types(t, args...)
		if code != 0 || !strings.Contains(errs, "entries could not be written of aaaa") || strings.Contains(errs, "dddd") {
			t.Errorf("%q: exit %d, %s", args, code, errs)
		}
	}
}
