package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
)

// TestCallsWithoutEntries: the disk was full, and only the end of the run tells of its calls.
func TestCallsWithoutEntries(t *testing.T) {
	effects := []record.Done{
		{Call: 1, Server: "s", Tool: "t", Outcome: record.OK}, {Call: 2, Server: "s", Tool: "u", Outcome: record.Unknown}, {Call: 4, Server: "s", Tool: "t", Outcome: record.ToolError},
	}
	start, end := record.CallStart{Call: 1, Server: "s", Tool: "t", Writes: true}, record.CallEnd{Call: 1, Server: "s", Tool: "t", Writes: true, Outcome: record.OK}
	for what, entries := range map[string][]record.Entry{
		"all are lost": nil, "one is there": {start, end}, "of one the start is there": {start}, "of one the end is there": {end},
	} {
		t.Run(what, func(t *testing.T) {
			r := Open(t.TempDir())
			j := record.Open(record.Options{Dir: r.dir, Host: "vm"})
			run := j.Begin("aaaaaaaaaa", "")
			for _, e := range slices.Concat([]record.Entry{record.RunStart{}}, entries, []record.Entry{record.RunEnd{Status: "success", Calls: 5, Effects: effects, Lost: 8}}) {
				must(t, run.Append(e))
			}
			must(t, j.Close())
			runs := collect(t, r, Filter{Writes: true, Tool: "s.u"})
			if len(runs) != 1 {
				t.Fatalf("%+v", runs)
			}
			unknown := 1
			if what == "of one the start is there" {
				unknown = 2
			}
			if got := runs[0]; got.Calls != 5 || got.Writes != 3 || got.Failed != 1 || got.Unknown != unknown || got.Lost != 8 || !slices.Equal(got.Tools, []string{"s.t", "s.u"}) {
				t.Errorf("%+v", got)
			}
			all, err := r.Stats(Filter{})
			must(t, err)
			var got []string
			for _, s := range all {
				got = append(got, fmt.Sprintf("%s.%s %d calls %d writes %d errors %d unknown", s.Server, s.Tool, s.Calls, s.Writes, s.Errors, s.Unknown))
			}
			want := []string{UnknownServer + ". 2 calls 0 writes 0 errors 0 unknown", fmt.Sprintf("s.t 2 calls 2 writes 1 errors %d unknown", unknown-1), "s.u 1 calls 1 writes 0 errors 1 unknown"}
			if !slices.Equal(got, want) {
				t.Errorf("%q", got)
			}
			if all[0].Lost != 2 || all[2].Lost != 1 {
				t.Errorf("%+v", all)
			}
		})
	}
}

// without removes the entries of a kind of a run.
func without(t *testing.T, r *Record, name, run string, kind record.Kind) {
	t.Helper()
	edit(t, r, name, func(l lines) lines {
		return slices.DeleteFunc(l, func(line []byte) bool {
			s, ok := scan(line)
			return ok && s.kind == kind && string(s.run) == run
		})
	})
}

// TestRunsWithoutAStart have their place in the list, and their calls in the figures.
func TestRunsWithoutAStart(t *testing.T) {
	r := Open(t.TempDir())
	c := &clock{noon}
	j := c.journal(r, "vm")
	for n := range 5 {
		writeRun(t, j, fmt.Sprint("r", n))
	}
	torn := j.Begin("torn", "")
	must(t, torn.Append(record.RunEnd{Status: "success", Lost: 1}))
	must(t, j.Close())
	name := onlyFile(t, r)
	without(t, r, name, "r1", record.KindRunStart)
	without(t, r, name, "r3", record.KindRunStart)

	runs := collect(t, r, Filter{})
	if got := strings.Join(ids(runs), " "); got != "torn r4 r3 r2 r1 r0" {
		t.Errorf("runs %s", got)
	}
	if got := runs[2]; got.Calls != 2 || got.Writes != 1 || got.Status != "success" || got.Lost != 1 || got.File != name || !got.Start.After(runs[3].Start) {
		t.Errorf("%+v", got)
	}
	for _, f := range []Filter{{}, {Writes: true}, {From: runs[2].Start, To: runs[1].Start}} {
		want := len(collect(t, r, f))
		if f == (Filter{}) {
			want-- // which made no calls
		}
		tools := 2
		if f.Writes {
			tools = 1
		}
		all, err := r.Stats(f)
		if err != nil || len(all) != tools || all[0].Calls != want || all[tools-1].Calls != want {
			t.Errorf("%+v: %d runs, %+v %v", f, want, all, err)
		}
	}
}

// TestRunsThatBeganTheDayBefore have a start, also if that day is not asked for.
func TestRunsThatBeganTheDayBefore(t *testing.T) {
	r := Open(t.TempDir())
	c := &clock{noon}
	one, two := c.journal(r, "one"), c.journal(r, "two")
	long, cut := one.Begin("long", ""), two.Begin("cut", "")
	must(t, errors.Join(long.Append(record.RunStart{}), cut.Append(record.RunStart{})))
	before := allFiles(t, r)
	c.at = noon.AddDate(0, 0, 1)
	for _, run := range []*record.Run{long, cut} {
		must(t, run.Append(record.CallStart{Call: 1, Server: "s", Tool: "t"}))
		must(t, run.Append(record.RunEnd{Status: "success", Calls: 1}))
	}
	must(t, errors.Join(one.Close(), two.Close()))
	today := Filter{From: noon.AddDate(0, 0, 1)}
	for n, want := range []string{"", "cut"} {
		if n == 1 {
			without(t, r, before[1], "cut", record.KindRunStart)
		}
		if got := strings.Join(ids(collect(t, r, today)), " "); got != want {
			t.Errorf("runs %q, want %q", got, want)
		}
		if all, err := r.Stats(today); len(all) != n || err != nil {
			t.Errorf("%+v %v", all, err)
		}
	}
	if got := strings.Join(ids(collect(t, r, Filter{})), " "); got != "cut long" {
		t.Errorf("runs %q", got)
	}
}
