package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
)

// refusedRun has a call of a tool that is not there, one that nobody could be asked about, one that the
// user denied, and one that the user allowed from where toolcell cannot tell who typed it.
func refusedRun() []record.Entry {
	const question = "toolcell asks: may Python code make this call?"
	pay := func(call int) record.Entry {
		return record.Verdict{Call: call, Effect: "tools/call", Server: "bank", Tool: "pay", Decision: "ask", Reasons: []string{"it writes"}, Writes: true, Arguments: record.TextOf(`{"to":"Ada"}`)}
	}
	return []record.Entry{
		record.RunStart{Command: "exec", Code: record.TextOf("pay()"), Policy: "ab"},
		record.CallEnd{Call: 1, Server: "bank", Tool: "nothing", Outcome: record.Refused, Error: record.TextOf("there is no tool \"nothing\"")},
		pay(2),
		record.CallEnd{Call: 2, Server: "bank", Tool: "pay", Writes: true, Outcome: record.Refused, Error: record.TextOf("no user can be asked")},
		pay(3),
		record.Ask{Question: "ask-A", State: "asked", About: "call", Calls: []int{3}, Shown: record.TextOf(question)},
		record.Ask{Question: "ask-A", State: "denied", About: "call", Calls: []int{3}, By: "form"},
		record.CallEnd{Call: 3, Server: "bank", Tool: "pay", Writes: true, Outcome: record.Refused, Error: record.TextOf("the user denied it")},
		pay(4),
		record.Ask{Question: "ask-B", State: "asked", About: "call", Calls: []int{4}, Shown: record.TextOf(question)},
		record.Ask{Question: "ask-B", State: "approved", About: "call", Calls: []int{4}, By: "terminal", Remark: strings.Repeat("doubtful ", 40)},
		record.CallStart{Call: 4, Effect: "tools/call", Server: "bank", Tool: "pay", Writes: true, Arguments: record.TextOf(`{"to":"Eve"}`)},
		record.CallEnd{Call: 4, Server: "bank", Tool: "pay", Writes: true, Outcome: record.OK, Answer: record.TextOf("{}")},
		record.RunEnd{Status: "success"},
	}
}

// TestCallsThatWereNotSentSayWhy, and with what arguments, in the list and for other programs.
func TestCallsThatWereNotSentSayWhy(t *testing.T) {
	r := newRecorded(t, record.Options{})
	r.write(t, "aaaabbbbcccc", refusedRun()...)
	r.close(t)
	out, _, _ := r.types(t, "runs", "list", "--calls")
	got := strings.Split(out, "\n")
	for i, want := range []string{
		`bank.nothing          refused                refused: there is no tool "nothing"`,
		`bank.pay      writes  refused  {"to":"Ada"}  refused: no user can be asked`,
		`bank.pay      writes  refused  {"to":"Ada"}  denied by the user in a form (ask-A)`,
		`bank.pay      writes  ok       {"to":"Eve"}  allowed by the user at the terminal (ask-B)`,
	} {
		if !strings.HasSuffix(got[i+1], "  exec    "+want) {
			t.Errorf("call %d is\n%s\nwant\n%s", i+1, got[i+1], want)
		}
	}
	if out, _, _ := r.types(t, "runs", "list", "--tool", "nothing"); !strings.Contains(out, "aaaabbbb") {
		t.Errorf("by a tool that was refused: %s", out)
	}

	var calls []listedCall
	out, _, _ = r.types(t, "runs", "list", "--calls", "--json")
	if err := json.Unmarshal([]byte(out), &calls); err != nil || len(calls) != 4 {
		t.Fatalf("%v: %s", err, out)
	}
	denied, sent := calls[2], calls[3]
	if denied.Arguments == nil || *denied.Arguments.Value != `{"to":"Ada"}` || denied.Remark != "" {
		t.Errorf("%+v", denied)
	}
	if sent.Arguments == nil || *sent.Arguments.Value != `{"to":"Eve"}` || !strings.HasPrefix(sent.Remark, "doubtful ") {
		t.Errorf("%+v", sent)
	}

	out, _, _ = r.types(t, "runs", "export", "--format", "csv")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatalf("%v: %s", err, out)
	}
	for i, want := range []string{`refused: there is no tool "nothing"`, "refused: no user can be asked", "denied by the user in a form (ask-A)", "allowed by the user at the terminal (ask-B)"} {
		if got := rows[i+1][len(rows[0])-1]; got != want {
			t.Errorf("row %d: %q", i, got)
		}
	}
	if strings.Contains(out, "Ada") || strings.Contains(out, "Eve") {
		t.Errorf("values are in\n%s", out)
	}
}

// TestArgumentsOfPrivateServersAreNotListed without a terminal, nor what toolcell says of them.
func TestArgumentsOfPrivateServersAreNotListed(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(rules, []byte("[servers.bank]\nprivate = true"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRecorded(t, record.Options{})
	r.write(t, "aaaabbbbcccc", refusedRun()...)
	r.close(t)
	out, _, _ := r.types(t, "runs", "list", "--calls", "--policy", rules)
	if strings.Contains(out, "Ada") || strings.Contains(out, "Eve") || !strings.Contains(out, "(12 bytes, not shown: runs show ID --values)") {
		t.Errorf("got\n%s", out)
	}
	out, _, _ = r.types(t, "runs", "list", "--calls", "--json", "--policy", rules)
	if strings.Contains(out, "Ada") || strings.Contains(out, "Eve") || strings.Count(out, `"notShown": true`) != 3 {
		t.Errorf("got\n%s", out)
	}
	if out, _, _ := r.types(t, "runs", "list", "--policy", rules); strings.Contains(out, "pay()") || !strings.Contains(out, "(not shown: runs show ID --values)") {
		t.Errorf("got\n%s", out)
	}
	if out, _, _ := r.types(t, "runs", "export", "--format", "csv", "--policy", rules); strings.Contains(out, "there is no tool") {
		t.Errorf("got\n%s", out)
	}
	if out, _, _ := r.types(t, "runs", "show", "--policy", rules); !strings.Contains(out, "  policy    SHA-256 ab; "+rules+" has changed since\n") {
		t.Errorf("got\n%s", out)
	}
}
