package history

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
)

func collect(t *testing.T, r *Record, f Filter) (runs []Run) {
	t.Helper()
	for run, err := range r.Runs(f) {
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	return runs
}

func ids(runs []Run) (ids []string) {
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	return ids
}

// A clock for journals, in whose seconds runs differ.
type clock struct{ at time.Time }

func (c *clock) journal(r *Record, host string) *record.Journal {
	return record.Open(record.Options{Dir: r.dir, Host: host, Now: func() time.Time {
		c.at = c.at.Add(time.Second)
		return c.at
	}})
}

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func TestRunsOfAll(t *testing.T) {
	r, name := writeRecord(t)
	runs := collect(t, r, Filter{})
	if len(runs) != 2 {
		t.Fatalf("%+v", runs)
	}
	got := runs[1]
	if got.Start.IsZero() || time.Since(got.Start) > time.Hour {
		t.Error(got.Start)
	}
	got.Start = time.Time{}
	want := Run{
		ID: "aaaaaaaaaa", Duration: 4000, Status: "success", Command: "serve", User: "ada", Host: "vm",
		Client:  record.Client{Name: "claude-code", Version: "2.1.0", Era: "2025-11-25"},
		Servers: []string{"github"}, Tools: []string{"github.add_label", "github.list_issues"}, Calls: 2, Writes: 1, File: name, granted: []string{"github"},
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// TestRunsAreMergedByTime of processes that run at the same time, and over midnight.
func TestRunsAreMergedByTime(t *testing.T) {
	r := Open(t.TempDir())
	c := &clock{noon}
	one, two := c.journal(r, "one"), c.journal(r, "two")
	writeRun(t, one, "r1")
	writeRun(t, two, "r2")
	long := one.Begin("r3", "")
	must(t, long.Append(record.RunStart{}))
	writeRun(t, two, "r4")
	writeRun(t, one, "r5")
	c.at = noon.AddDate(0, 0, 1)
	writeRun(t, two, "r6")
	must(t, long.Append(record.RunEnd{Status: "timeout"})) // it goes on the day after
	must(t, errors.Join(one.Close(), two.Close()))

	runs := collect(t, r, Filter{})
	if got := ids(runs); !slices.Equal(got, []string{"r6", "r5", "r4", "r3", "r2", "r1"}) {
		t.Errorf("runs %q", got)
	}
	if runs[3].Status != "timeout" {
		t.Errorf("%+v", runs[3])
	}
	entries, err := r.Show("r3")
	if err != nil || len(entries) != 2 || entries[1].Kind != record.KindRunEnd || entries[0].File == entries[1].File {
		t.Errorf("%+v %v", entries, err)
	}
	for filter, want := range map[Filter]string{
		{From: noon.AddDate(0, 0, 1)}:                           "r6",
		{To: runs[3].Start}:                                     "r2 r1",
		{From: runs[3].Start, To: runs[2].Start}:                "r3",
		{From: noon.AddDate(0, 0, 2)}:                           "",
		{Status: "timeout"}:                                     "r3",
		{Writes: true, To: noon.Add(time.Minute)}:               "r5 r4 r2 r1",
		{Server: "github", From: noon.AddDate(0, 0, 1)}:         "r6",
		{Server: "git"}:                                         "",
		{Tool: "add_label", From: noon.AddDate(0, 0, 1)}:        "r6",
		{Tool: "github.add_label", From: noon.AddDate(0, 0, 1)}: "r6",
		{Tool: "label"}:                                         "",
		{Client: "Claude", From: noon.AddDate(0, 0, 1)}:         "r6",
		{Client: "cursor"}:                                      "",
	} {
		if got := strings.Join(ids(collect(t, r, filter)), " "); got != want {
			t.Errorf("%+v: %q, want %q", filter, got, want)
		}
	}
}

func TestRunsAreReadNoFurtherThanAsked(t *testing.T) {
	r, name := writeRecord(t)
	// What is before the last run is not even lines.
	edit(t, r, name, func(l lines) lines { return append(lines{[]byte("\x00\x01\n")}, l[6:]...) })
	for run, err := range r.Runs(Filter{}) {
		if err != nil || run.ID != "bbbbbbbbbb" {
			t.Error(run, err)
		}
		break
	}
}

func TestRunWithoutAnEnd(t *testing.T) {
	r := Open(t.TempDir())
	j := record.Open(record.Options{Dir: r.dir})
	run := j.Begin("aaaaaaaaaa", "")
	must(t, run.Append(record.RunStart{}))
	must(t, run.Append(record.CallStart{Call: 1, Server: "s", Tool: "t", Writes: true}))
	must(t, run.Append(record.CallStart{Call: 2, Server: "s", Tool: "u", Writes: true}))
	must(t, run.Append(record.CallEnd{Call: 2, Server: "s", Tool: "u", Outcome: record.Refused})) // it was not sent after all
	must(t, run.Append(record.CallEnd{Call: 3, Server: "s", Tool: "v", Outcome: record.Refused}))
	must(t, run.Append(record.CallStart{Call: 4, Server: "s", Tool: "w"}))
	must(t, run.Append(record.CallEnd{Call: 4, Server: "s", Tool: "w", Outcome: record.ToolError}))
	must(t, run.Append(record.Ask{Question: "q", State: "asked"}))
	must(t, run.Append(record.Ask{Question: "q", State: "approved"}))

	got := collect(t, r, Filter{})[0]
	if got.Status != StatusRunning || got.Calls != 2 || got.Writes != 1 || got.Unknown != 1 || got.Refused != 2 || got.Failed != 1 || got.Asked != 1 {
		t.Errorf("%+v", got)
	}
	entries, err := r.Show("aaaa")
	if err != nil {
		t.Fatal(err)
	}
	if calls := UnknownCalls(entries); len(calls) != 1 || calls[0].Call != 1 {
		t.Errorf("%+v", calls)
	}
	must(t, j.Close()) // as the kernel does for a process that is killed
	if got := collect(t, r, Filter{})[0]; got.Status != StatusKilled {
		t.Errorf("%+v", got)
	}
	all, err := r.Stats(Filter{})
	if err != nil || len(all) != 4 || all[0].Tool != "t" || all[0].Unknown != 1 || all[0].Calls != 1 || all[2].Writes != 0 || all[2].Tool != "u" || all[2].Calls != 0 || all[2].Refused != 1 {
		t.Errorf("%+v %v", all, err)
	}
}

func TestShowJoinsValues(t *testing.T) {
	r, name := writeRecord(t)
	entries, err := r.Show("bbb")
	if err != nil || len(entries) != 6 {
		t.Fatal(len(entries), err)
	}
	start := entries[0].Body.(*record.RunStart)
	if code := entries[0].Values["code"]; start.Client.Name != "claude-code" || code.Wrong || code.Value.Value != "print(await mcp_github.list_issues())" {
		t.Errorf("%+v %+v", start, code)
	}
	if got := entries[1].Values["arguments"]; got.Value.Value != `{"number":9007199254740993}` {
		t.Errorf("%+v", got)
	}
	end := entries[5].Body.(*record.RunEnd)
	if out := entries[5].Values["stdout"]; out.Value.Value != "done\n" || end.Stdout.Size != 5 {
		t.Errorf("%+v", out)
	}
	if got := entries[2].Body.(*record.CallEnd).Answer; got.Size != 14 || got.Kept != 0 || entries[2].Values != nil {
		t.Errorf("an answer was kept: %+v", got)
	}

	edit(t, r, record.ValuesName(name), func(l lines) lines {
		for i := range l {
			l[i] = []byte(strings.Replace(string(l[i]), "print", "Print", 1))
		}
		return l
	})
	if entries, err = r.Show("bbb"); err != nil || !entries[0].Values["code"].Wrong {
		t.Error("a value that was changed is shown as if it were recorded", err)
	}
}

func TestShortIDs(t *testing.T) {
	r := Open(t.TempDir())
	j := record.Open(record.Options{Dir: r.dir})
	for _, id := range []string{"abc1", "abc2", "abc", "b1"} {
		must(t, j.Begin(id, "").Append(record.RunStart{}))
	}
	must(t, j.Close())
	for id, want := range map[string]string{"abc1": "abc1", "abc": "abc", "b": "b1"} {
		if got, err := r.Resolve(id); got != want || err != nil {
			t.Errorf("%s: %q %v", id, got, err)
		}
	}
	var ambiguous *AmbiguousError
	if _, err := r.Resolve("ab"); !errors.As(err, &ambiguous) || !slices.Equal(ambiguous.Runs, []string{"abc", "abc1", "abc2"}) {
		t.Error(err)
	}
	for _, id := range []string{"", "c", `"`, `abc","`} {
		if _, err := r.Show(id); !errors.Is(err, ErrNoRun) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestLinesThatAreNone(t *testing.T) {
	r, name := writeRecord(t)
	edit(t, r, name, func(l lines) lines {
		return slices.Insert(l, 3, []byte("\n"), []byte("no JSON\n"), []byte(strings.Repeat("x", 3*record.MaxLine)+"\n"), []byte(`{"v":2,"seq":1,"kind":"x"}`+"\n"))
	})
	if err := os.WriteFile(filepath.Join(r.dir, "notes.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ids(collect(t, r, Filter{})); !slices.Equal(got, []string{"bbbbbbbbbb", "aaaaaaaaaa"}) {
		t.Errorf("runs %q", got)
	}
	if n := r.Skipped(); n != 1 {
		t.Errorf("%d lines skipped", n)
	}
	if entries, err := r.Show("aaa"); len(entries) != 6 || err != nil {
		t.Error(len(entries), err)
	}
	if all, err := r.Stats(Filter{}); len(all) != 2 || all[0].Calls != 2 || err != nil {
		t.Error(all, err)
	}
}

// TestLinesOfAnotherForm: JSON that says the same in another order is read as well.
func TestLinesOfAnotherForm(t *testing.T) {
	r, name := writeRecord(t)
	edit(t, r, name, func(l lines) lines {
		for i := range l {
			s := strings.Replace(strings.TrimSuffix(string(l[i]), "}\n"), `{"v":1,`, "{ ", 1)
			l[i] = []byte(s + `, "v": 1 }` + "\n")
		}
		return l
	})
	if runs := collect(t, r, Filter{}); len(runs) != 2 || runs[0].Calls != 2 || runs[0].Status != "success" {
		t.Errorf("%+v", runs)
	}
}

func TestNamesThatNeedEscapes(t *testing.T) {
	r := Open(t.TempDir())
	j := record.Open(record.Options{Dir: r.dir})
	run := j.Begin("aaaaaaaaaa", "")
	server := `a "b\" <☃>`
	must(t, run.Append(record.RunStart{}))
	must(t, run.Append(record.CallStart{Call: 1, Server: server, Tool: `","writes":true,"x":"`}))
	must(t, j.Close())
	runs := collect(t, r, Filter{Server: server})
	if len(runs) != 1 || runs[0].Writes != 0 {
		t.Errorf("%+v", runs)
	}
}

func TestNewestOfAKind(t *testing.T) {
	r := Open(t.TempDir())
	c := &clock{noon}
	one, two := c.journal(r, "one"), c.journal(r, "two")
	for n, j := range []*record.Journal{one, two, two, one} {
		run := j.Begin(fmt.Sprint("r", n), "")
		must(t, run.Append(record.RunStart{}))
		must(t, run.Append(record.Ask{Question: fmt.Sprint("q", n), State: "approved"}))
	}
	must(t, errors.Join(one.Close(), two.Close()))
	var got []string
	for e, err := range r.Newest(record.KindAsk, record.KindPin) {
		must(t, err)
		if got = append(got, e.Body.(*record.Ask).Question); len(got) == 3 {
			break
		}
	}
	if !slices.Equal(got, []string{"q3", "q2", "q1"}) {
		t.Errorf("%q", got)
	}
}

func TestEntriesOfRunsThatFit(t *testing.T) {
	r := Open(t.TempDir())
	c := &clock{noon}
	one, two := c.journal(r, "one"), c.journal(r, "two")
	a, b, other := one.Begin("a", ""), two.Begin("b", ""), two.Begin("other", "")
	must(t, a.Append(record.RunStart{Client: record.Client{Name: "x"}, Code: record.TextOf("of a")}))
	must(t, other.Append(record.RunStart{Code: record.TextOf("of other")}))
	must(t, b.Append(record.RunStart{Client: record.Client{Name: "x"}, Code: record.TextOf("of b")}))
	must(t, a.Append(record.RunEnd{Status: "success"}))
	c.at = noon.AddDate(0, 0, 1)
	must(t, b.Append(record.RunEnd{Status: "error", Error: record.TextOf("oops")}))
	must(t, errors.Join(one.Close(), two.Close()))
	var got []string
	for e, err := range r.Entries(Filter{Client: "x"}) {
		must(t, err)
		text := e.Run + " " + string(e.Kind)
		for _, v := range e.Values {
			text += ": " + v.Value.Value
		}
		got = append(got, text)
	}
	if want := []string{"a run.start: of a", "b run.start: of b", "a run.end", "b run.end: oops"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestNoRecord(t *testing.T) {
	r := Open(filepath.Join(t.TempDir(), "none"))
	if runs := collect(t, r, Filter{}); runs != nil {
		t.Error(runs)
	}
	if all, err := r.Stats(Filter{}); all != nil || err != nil {
		t.Error(all, err)
	}
	if report := verify(t, r); report.Files != 0 || report.Problems != nil {
		t.Error(report)
	}
	if heads, err := r.Heads(); heads != nil || err != nil {
		t.Error(heads, err)
	}
}

func TestStats(t *testing.T) {
	r := Open(t.TempDir())
	c := &clock{noon}
	j := c.journal(r, "vm")
	run := j.Begin("aaaaaaaaaa", "")
	must(t, run.Append(record.RunStart{Client: record.Client{Name: "cursor"}}))
	for i := range 100 {
		call := run.NextCall()
		end := record.CallEnd{Call: call, Server: "s", Tool: "t", Outcome: record.OK, Duration: int64(100 - i), Answer: record.TextOf("12345678")}
		if i < 10 {
			end.Outcome = record.ToolError
		}
		must(t, run.Append(record.CallStart{Call: call, Server: "s", Tool: "t"}))
		must(t, run.Append(end))
	}
	writeRun(t, j, "bbbbbbbbbb")
	must(t, j.Close())
	all, err := r.Stats(Filter{})
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	want := ToolStats{Server: "s", Tool: "t", Calls: 100, Errors: 10, P95: 95, Bytes: 800, Tokens: 200}
	if fmt.Sprint(all[0]) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", all[0], want)
	}
	for filter, want := range map[Filter]int{
		{Client: "claude"}: 2, {Client: "CURSOR"}: 1, {Server: "s"}: 1, {Tool: "list_issues"}: 1, {Tool: "s.t"}: 1,
		{From: noon.Add(time.Minute)}: 2, {To: noon}: 0, {From: noon.AddDate(0, 0, 1)}: 0,
	} {
		if all, err := r.Stats(filter); len(all) != want || err != nil {
			t.Errorf("%+v: %+v %v", filter, all, err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestARunTouchesWhatItWasGranted, called or tried to call.
func TestARunTouchesWhatItWasGranted(t *testing.T) {
	r := Open(t.TempDir())
	j := record.Open(record.Options{Dir: r.dir, Host: "vm"})
	run := j.Begin("aaaaaaaaaa", "")
	for _, e := range []record.Entry{
		record.RunStart{Grants: record.Grants{Servers: []string{"granted"}}},
		record.CallStart{Call: 1, Server: "called", Tool: "x"},
		record.Verdict{Call: 2, Server: "tried", Tool: "x", Decision: "deny"},
	} {
		if err := run.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for found, err := range r.Runs(Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		for server, want := range map[string]bool{"granted": true, "called": true, "tried": true, "other": false} {
			if got := found.Touches(func(s string) bool { return s == server }); got != want {
				t.Errorf("%s: %t", server, got)
			}
		}
	}
}
