package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
)

// all collects what an iterator yields.
func all(t testing.TB, r *Record, f Filter) (entries []Entry) {
	t.Helper()
	for e, err := range r.Entries(f) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
}

// TestEntriesHaveTheirValues as Show gives them, of the runs that fit and no others.
func TestEntriesHaveTheirValues(t *testing.T) {
	r, _ := writeRecord(t)
	j := record.Open(record.Options{Dir: r.dir, Host: "vm", Shared: true, Command: "exec"})
	run := j.Begin("cccccccccc", "")
	if err := run.Append(record.RunStart{Code: record.TextOf("print(3)")}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		filter Filter
		runs   []string
	}{
		{Filter{}, []string{"aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc"}},
		{Filter{Writes: true}, []string{"aaaaaaaaaa", "bbbbbbbbbb"}},
		{Filter{Client: "exec"}, []string{"cccccccccc"}},
		{Filter{Client: "nope"}, nil},
	} {
		var want []Entry
		for _, id := range tt.runs {
			some, err := r.Show(id)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, some...)
		}
		got := all(t, r, tt.filter)
		if len(got) != len(want) {
			t.Errorf("%+v: %d entries, want %d", tt.filter, len(got), len(want))
			continue
		}
		for _, e := range got {
			at := slices.IndexFunc(want, func(w Entry) bool { return w.Run == e.Run && w.Seq == e.Seq })
			if at < 0 || string(e.Raw) != string(want[at].Raw) || fmt.Sprint(texted(e)) != fmt.Sprint(texted(want[at])) {
				t.Errorf("%+v: %s with %v", tt.filter, e.Raw, texted(e))
			}
		}
	}
}

// texted returns the values of an entry by their fields.
func texted(e Entry) map[string]string {
	m := map[string]string{}
	for field, v := range e.Values {
		m[field] = v.Value.Value
	}
	return m
}

// TestCodesOfRuns are those that are kept.
func TestCodesOfRuns(t *testing.T) {
	r, _ := writeRecord(t)
	if _, err := record.Forget(r.dir, "aaaaaaaaaa"); err != nil {
		t.Fatal(err)
	}
	var runs []Run
	for run, err := range r.Runs(Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	codes, err := r.Codes(runs)
	if err != nil || len(codes) != 1 || !strings.HasPrefix(codes["bbbbbbbbbb"].Value, "print(") {
		t.Errorf("%+v, %v", codes, err)
	}
}

// TestStatsGoByAllFilters, also those that only the end of a run tells.
func TestStatsGoByAllFilters(t *testing.T) {
	r, _ := writeRecord(t)
	j := record.Open(record.Options{Dir: r.dir, Host: "vm", Shared: true, Command: "servers call"})
	run := j.Begin("cccccccccc", "")
	for _, e := range []record.Entry{
		record.RunStart{},
		record.CallStart{Call: 1, Server: "github", Tool: "list_issues"},
		record.CallEnd{Call: 1, Server: "github", Tool: "list_issues", Outcome: record.ToolError},
		record.RunEnd{Status: "error"},
	} {
		if err := run.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		filter Filter
		calls  int
	}{
		{Filter{}, 5},
		{Filter{Status: "error"}, 1},
		{Filter{Status: "success"}, 4},
		{Filter{Writes: true}, 2},
		{Filter{Client: "servers call"}, 1},
		{Filter{Client: "claude"}, 4},
		{Filter{Status: "killed"}, 0},
	} {
		stats, err := r.Stats(tt.filter)
		calls := 0
		for _, s := range stats {
			calls += s.Calls
		}
		if err != nil || calls != tt.calls {
			t.Errorf("%+v: %d calls, want %d; %v", tt.filter, calls, tt.calls, err)
		}
	}
}

// TestWhatARunIsMadeOfIsRead: the kind is known.
func TestWhatARunIsMadeOfIsRead(t *testing.T) {
	r := Open(t.TempDir())
	j := record.Open(record.Options{Dir: r.dir})
	run := j.Begin("aaaaaaaaaa", "")
	for _, e := range []record.Entry{record.RunStart{}, record.RunReady{Image: record.Image{Name: "host"}}} {
		if err := run.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := r.Show("aaaa")
	if err != nil || len(entries) != 2 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	if ready, ok := entries[1].Body.(*record.RunReady); !ok || ready.Image.Name != "host" {
		t.Errorf("%+v", entries[1].Body)
	}
}
