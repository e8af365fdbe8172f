package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/mcpproxy"
)

// A journal is a record for a test.
type journal struct {
	*record.Journal
	run *record.Run
	dir string
}

// entrySecret is a secret of a server's entry.
const entrySecret = "s3cret-of-an-entry"

func newJournal(t *testing.T, keep record.Keep) *journal {
	t.Helper()
	j := &journal{dir: t.TempDir()}
	j.Journal = record.Open(record.Options{Dir: j.dir, Keep: keep, Secrets: func(s string) string { return strings.ReplaceAll(s, entrySecret, "[hidden:KEY]") }})
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	j.run = j.Begin("testtesttest", "")
	return j
}

// lines returns the entries of the run, or its values.
func (j *journal) lines(t *testing.T, values bool) (all []map[string]any) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(j.dir, "*", "*.jsonl"))
	for _, file := range files {
		if strings.HasSuffix(file, ".values.jsonl") != values || filepath.Base(file) == "files.jsonl" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var l map[string]any
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			all = append(all, l)
		}
	}
	return all
}

// summary writes the entries in short.
func (j *journal) summary(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, l := range j.lines(t, false) {
		fmt.Fprint(&b, l["kind"])
		for _, key := range []string{"call", "effect", "tool", "decision", "state", "outcome", "writes", "by", "scope"} {
			if v, ok := l[key]; ok {
				fmt.Fprintf(&b, " %v", v)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// recordingUser answers all questions so, and has them on record.
func recordingUser(t *testing.T, j *journal, c consent.Choice) *consent.Asker {
	t.Helper()
	return recordingUserOf(t, func(q consent.Question) { _ = j.run.Append(askEntry(q)) }, c)
}

func recordingUserOf(t *testing.T, record func(consent.Question), c consent.Choice) *consent.Asker {
	t.Helper()
	queue := consent.NewQueue(consent.Options{})
	asker := queue.Begin(consent.AskerOptions{Stop: func(error) {}, Record: record})
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		asker.AnswerWith(context.Background(), done, func(context.Context, consent.Question) consent.Answer {
			return consent.Answer{Choice: c, By: "terminal"}
		})
	}()
	t.Cleanup(func() {
		close(done)
		<-ended
		asker.End()
	})
	return asker
}

// TestEveryEffectIsOnRecord: what was decided, who was asked, what left and what came of it.
func TestEveryEffectIsOnRecord(t *testing.T) {
	for name, tt := range map[string]struct {
		policy  string
		choice  consent.Choice
		plan    bool
		request Request
		want    string
	}{
		"a call":         {"", "", false, requests["tools/call"], "call.start 1 tools/call write true default\ncall.end 1 write ok true\n"},
		"a resource":     {"", "", false, requests["resources/read"], "call.start 1 resources/read x://1 method\ncall.end 1 x://1 ok\n"},
		"a list":         {"", "", false, requests["prompts/list"], "call.start 1 prompts/list method\ncall.end 1 ok\n"},
		"denied":         {"[servers.up]\ndeny = 'write'", "", false, requests["tools/call"], "verdict 1 tools/call write deny true\ncall.end 1 write refused true\n"},
		"not granted":    {"", "", false, Request{Method: mcpproxy.CallTool, Server: "nowhere", Name: "x"}, "call.end 1 x refused\n"},
		"wrong argument": {"", "", false, Request{Method: mcpproxy.CallTool, Server: "up", Name: "nothing"}, "call.end 1 nothing refused\n"},
		"asked":          {"[servers.up]\nask = '*'", consent.ForCall, false, requests["tools/call"], "verdict 1 tools/call write ask true\nask asked\nask approved terminal call\ncall.start 1 tools/call write true default\ncall.end 1 write ok true\n"},
		"refused":        {"[servers.up]\nask = '*'", consent.Deny, false, requests["tools/call"], "verdict 1 tools/call write ask true\nask asked\nask denied terminal\ncall.end 1 write refused true\n"},
		"planned":        {"", "", true, requests["tools/call"], "verdict 1 tools/call write plan true\n"},
	} {
		t.Run(name, func(t *testing.T) {
			u, j := newUpstream(t), newJournal(t, "")
			o := Options{Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, tt.policy), Taint: &consent.Taint{}, Plan: tt.plan, Record: j.run}
			if tt.choice != "" {
				o.Asker = recordingUser(t, j, tt.choice)
			}
			_, _ = New(o).Do(t.Context(), tt.request)
			if got := j.summary(t); got != tt.want {
				t.Errorf("on record is\n%swant\n%s", got, tt.want)
			}
		})
	}
}

// TestACallNamesTheQuestionThatAllowedIt, which was about an earlier one.
func TestACallNamesTheQuestionThatAllowedIt(t *testing.T) {
	u, j := newUpstream(t), newJournal(t, "")
	g := New(Options{
		Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, "[servers.up]\nask = '*'"), Taint: &consent.Taint{}, Record: j.run,
		Asker: recordingUser(t, j, consent.ForRun),
	})
	for range 2 {
		if _, err := g.Do(t.Context(), requests["tools/call"]); err != nil {
			t.Fatal(err)
		}
	}
	var asked any
	var by []any
	for _, line := range j.lines(t, false) {
		switch line["kind"] {
		case "ask":
			asked = line["question"]
		case "call.start":
			by = append(by, line["question"])
		}
	}
	if len(by) != 2 || by[0] != nil || asked == nil || by[1] != asked {
		t.Errorf("question %v was asked; the calls name %v", asked, by)
	}
}

// TestCallsAreOnRecordWithTheirLines, also those that end before there was a verdict. What the code says
// of its line may be wrong.
func TestCallsAreOnRecordWithTheirLines(t *testing.T) {
	for name, r := range map[string]Request{
		"a call":          requests["tools/call"],
		"not granted":     {Method: mcpproxy.CallTool, Server: "nowhere", Name: "x"},
		"unknown tool":    {Method: mcpproxy.CallTool, Server: "up", Name: "nothing"},
		"wrong arguments": {Method: mcpproxy.CallTool, Server: "up", Name: "write", Arguments: json.RawMessage(`[]`)},
		"a resource":      requests["resources/read"],
	} {
		for said, want := range map[int]any{7: 7.0, 0: nil, -3: nil} {
			u, j := newUpstream(t), newJournal(t, "")
			r.Line = said
			_, _ = New(Options{Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, ""), Taint: &consent.Taint{}, Record: j.run}).Do(t.Context(), r)
			lines := j.lines(t, false)
			for _, l := range lines {
				if l["line"] != want {
					t.Errorf("%s of line %d: %v", name, said, l)
				}
			}
			if end := lines[len(lines)-1]; end["kind"] != "call.end" {
				t.Errorf("%s: the last entry is %v", name, end)
			}
		}
	}
}

// TestNothingLeavesThatCannotBeRecorded, if the user wants it so, and it does not count either.
func TestNothingLeavesThatCannotBeRecorded(t *testing.T) {
	for _, required := range []bool{false, true} {
		u, j := newUpstream(t), newJournal(t, "")
		g := New(Options{
			Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, "[servers.up]\ncallsPerRun = 1"), Taint: &consent.Taint{},
			Record: j.run, RecordRequired: required,
		})
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := g.Do(t.Context(), requests["tools/call"])
			if refused := err != nil && strings.Contains(err.Error(), "nothing is called without a record"); refused != required {
				t.Errorf("required %t: the call gave %v", required, err)
			}
			if !required {
				break
			}
		}
		if _, calls := g.Recorded(); calls != map[bool]int{false: 1, true: 0}[required] {
			t.Errorf("required %t: %d calls left", required, calls)
		}
	}
}

// TestWhatIsAskedIsOnRecord with its arguments, also if nobody can be asked; not if it is private.
func TestWhatIsAskedIsOnRecord(t *testing.T) {
	for policy, want := range map[string]string{
		"ask = '*'":                                       "arguments",
		"ask = '*'\nrecord = 'none'":                      "",
		"ask = '*'\nprivate = true":                       "",
		"ask = '*'\nprivate = true\nrecord = 'arguments'": "arguments",
	} {
		for _, user := range []bool{false, true} {
			u, j := newUpstream(t), newJournal(t, "")
			o := Options{Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, "[servers.up]\n"+policy), Taint: &consent.Taint{}, Record: j.run}
			var g *Gate
			if user {
				o.Asker = recordingUserOf(t, func(q consent.Question) { _ = g.RecordAsk(q) }, consent.Deny)
			}
			g = New(o)
			_, _ = g.Do(t.Context(), requests["tools/call"])
			kept := map[string]bool{}
			for _, v := range j.lines(t, true) {
				kept[fmt.Sprint(v["field"])] = true
			}
			if kept["arguments"] != (want != "") || kept["shown"] != (want != "" && user) {
				t.Errorf("%s, with a user: %t: kept is %v", policy, user, kept)
			}
		}
	}
}

// TestMadeUpNamesHideSecrets: code calls a server and a tool by what it was to keep to itself.
func TestMadeUpNamesHideSecrets(t *testing.T) {
	for name, r := range map[string]Request{
		"no server":   {Method: mcpproxy.CallTool, Server: entrySecret, Name: "x"},
		"no tool":     {Method: mcpproxy.CallTool, Server: "up", Name: entrySecret},
		"no resource": {Method: mcpproxy.ReadResource, Server: "up", Name: "file:///" + entrySecret},
	} {
		u, j := newUpstream(t), newJournal(t, "")
		_, _ = New(Options{Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, ""), Taint: &consent.Taint{}, Record: j.run}).Do(t.Context(), r)
		lines := fmt.Sprint(j.lines(t, false), j.lines(t, true))
		if strings.Contains(lines, entrySecret) || !strings.Contains(lines, "[hidden:KEY]") {
			t.Errorf("%s: %s", name, lines)
		}
	}
}

// TestOutcomesOnRecord: that a tool failed is no success.
func TestOutcomesOnRecord(t *testing.T) {
	j := newJournal(t, "")
	servers := bridgetest.Servers{"up": {
		"fails": func(context.Context, json.RawMessage) (string, error) { return "", fmt.Errorf("no such issue") },
		"works": func(context.Context, json.RawMessage) (string, error) { return "done", nil },
	}}
	g := New(Options{Upstreams: servers.Proxy(t, bridgetest.Options{}), Granted: granted, Policy: policyIn(t, ""), Taint: &consent.Taint{}, Record: j.run})
	for _, tool := range []string{"fails", "works"} {
		_, _ = g.Do(t.Context(), Request{Method: mcpproxy.CallTool, Server: "up", Name: tool})
	}
	const want = "call.start 1 tools/call fails true default\ncall.end 1 fails tool_error true\n" +
		"call.start 2 tools/call works true default\ncall.end 2 works ok true\n"
	if got := j.summary(t); got != want {
		t.Errorf("on record is\n%swant\n%s", got, want)
	}
	writes, calls := g.Recorded()
	if calls != 2 || len(writes) != 2 || writes[0].Outcome != record.ToolError || writes[1].Tool != "works" {
		t.Errorf("%d calls, %+v", calls, writes)
	}
}

// TestValuesOnRecord: of private servers there are none unless their own section says so, and the
// digest of what is sent is there in any case.
func TestValuesOnRecord(t *testing.T) {
	for name, tt := range map[string]struct {
		policy string
		keep   record.Keep
		want   string
		output record.Keep
	}{
		"as it is":                     {"", record.KeepArguments, "arguments", ""},
		"all":                          {"", record.KeepAll, "arguments answer", ""},
		"none":                         {"", record.KeepNone, "", ""},
		"the server's section":         {"[servers.up]\nrecord = 'all'", record.KeepNone, "arguments answer", ""},
		"the section of all":           {"[default]\nrecord = 'none'", record.KeepAll, "", ""},
		"private":                      {"[servers.up]\nprivate = true", record.KeepAll, "", record.KeepNone},
		"private, and all are kept":    {"[servers.up]\nprivate = true\n[default]\nrecord = 'all'", record.KeepAll, "", record.KeepNone},
		"private, and a section of it": {"[servers.up]\nprivate = true\nrecord = 'arguments'", record.KeepNone, "arguments", ""},
	} {
		t.Run(name, func(t *testing.T) {
			u, j := newUpstream(t), newJournal(t, tt.keep)
			g := New(Options{Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, tt.policy), Taint: &consent.Taint{}, Record: j.run})
			if _, err := g.Do(t.Context(), requests["tools/call"]); err != nil {
				t.Fatal(err)
			}
			var fields []string
			for _, v := range j.lines(t, true) {
				fields = append(fields, fmt.Sprint(v["field"]))
				if v["field"] == "arguments" && v["value"] != `{"n":1}` {
					t.Errorf("what was sent is %v", v)
				}
			}
			k := g.Keeping()
			if got := strings.Join(fields, " "); got != tt.want || k.Keep != tt.output || k.Private != strings.Contains(tt.policy, "private") {
				t.Errorf("kept is %q, want %q; of the output %q, private %v", got, tt.want, k.Keep, k.Private)
			}
			if start := j.lines(t, false)[0]; start["arguments"].(map[string]any)["size"] != 7.0 {
				t.Errorf("the call is %v", start)
			}
		})
	}
}

// BenchmarkARecordedRun is what the record costs a run with two calls: with an entry that begins it and
// one that ends it.
func BenchmarkARecordedRun(b *testing.B) {
	dir := b.TempDir()
	for name, open := range map[string]func() *record.Journal{
		"with a record":    func() *record.Journal { return record.Open(record.Options{Dir: dir}) },
		"without a record": func() *record.Journal { return nil },
	} {
		b.Run(name, func(b *testing.B) {
			journal := open()
			defer journal.Close()
			call := Effect{Args: json.RawMessage(`{"owner":"toolcell","repo":"toolcell","state":"open"}`)}
			call.Facts.Method, call.Facts.Name = mcpproxy.CallTool, "list_issues"
			answer := mcpproxy.CallResult{JSON: json.RawMessage(strings.Repeat(`{"number":1,"title":"a bug"},`, 100))}
			for n := 0; b.Loop(); n++ {
				run := journal.Begin(fmt.Sprintf("run%09d", n), "")
				g := New(Options{Record: run})
				_ = run.Append(record.RunStart{Code: record.TextOf(strings.Repeat("print(await mcp_github.list_issues())\n", 20))})
				_ = run.Append(record.RunReady{Image: record.Image{Name: "python:3.14-slim"}})
				for range 2 {
					j := g.journal(Request{Method: mcpproxy.CallTool, Server: "github", Name: "list_issues"})
					j.decided(call, Verdict{Allowed: true})
					g.start(j, call)
					g.end(j, answer, nil, true)
				}
				_ = run.Append(record.RunEnd{Status: "success", Stdout: record.TextOf(strings.Repeat("a line\n", 100))})
			}
		})
	}
}

// TestKeepingOfManyReads: what is kept goes by each of them, however many there were before, and by earlier
// runs of the session.
func TestKeepingOfManyReads(t *testing.T) {
	u := newUpstream(t)
	o := Options{Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, ""), Taint: &consent.Taint{}}
	g := New(o)
	if g.MarkRead("/project"); g.Keeping() != (Keeping{}) {
		t.Errorf("of the client's folder: %+v", g.Keeping())
	}
	for i := range 100 {
		g.MarkRead(fmt.Sprintf("up.tool%d", i))
	}
	if g.Keeping() != (Keeping{Private: true}) {
		t.Errorf("of a server that may be used: %+v", g.Keeping())
	}
	none := Keeping{Private: true, Keep: record.KeepNone}
	if g.MarkRead("other.tool"); g.Keeping() != none {
		t.Errorf("of another one: %+v", g.Keeping())
	}
	o.Earlier = g.Keeping()
	if got := New(o).Keeping(); got != none {
		t.Errorf("of the next run: %+v", got)
	}
}
