package history

import (
	"slices"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
)

// TestRunsAreFoundByWhatTheyTriedToCall, also if nothing was sent, and are listed with what they called.
func TestRunsAreFoundByWhatTheyTriedToCall(t *testing.T) {
	r := Open(t.TempDir())
	j := record.Open(record.Options{Dir: r.dir})
	for id, entries := range map[string][]record.Entry{
		"refused": {record.CallEnd{Call: 1, Server: "bank", Tool: "pay", Outcome: record.Refused}, record.RunEnd{Status: "error"}},
		"planned": {record.Verdict{Call: 1, Server: "bank", Tool: "pay", Decision: "plan"}, record.RunEnd{Status: "success"}},
		"asking":  {record.Verdict{Call: 1, Server: "bank", Tool: "pay", Decision: "ask"}, record.Ask{Question: "ask-A", State: "asked", Calls: []int{1}}},
		"granted": {record.Verdict{Effect: "grant", Tool: "pay", Decision: "allow"}, record.RunEnd{Status: "success"}},
	} {
		run := j.Begin(id, "")
		must(t, run.Append(record.RunStart{}))
		for _, e := range entries {
			must(t, run.Append(e))
		}
	}
	must(t, j.Close())
	for _, f := range []Filter{{Tool: "pay"}, {Tool: "bank.pay"}, {Server: "bank"}} {
		runs := collect(t, r, f)
		found := ids(runs)
		slices.Sort(found)
		if !slices.Equal(found, []string{"asking", "planned", "refused"}) {
			t.Errorf("%+v: %q", f, found)
		}
		for _, run := range runs {
			if run.Calls != 0 || run.Servers != nil || run.Tools != nil {
				t.Errorf("nothing was sent: %+v", run)
			}
		}
	}
}

// TestARunWaitsForItsQuestions, while its process lives.
func TestARunWaitsForItsQuestions(t *testing.T) {
	r := Open(t.TempDir())
	j := record.Open(record.Options{Dir: r.dir})
	run := j.Begin("aaaaaaaaaa", "")
	status := func(want string, entries ...record.Entry) {
		t.Helper()
		for _, e := range entries {
			must(t, run.Append(e))
		}
		if got := collect(t, r, Filter{})[0].Status; got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
	}
	status(StatusRunning, record.RunStart{})
	status(StatusWaiting, record.Ask{Question: "ask-A", State: "asked"})
	status(StatusWaiting, record.Ask{Question: "ask-B", State: "asked"}, record.Ask{Question: "ask-B", State: "approved"})
	status(StatusRunning, record.Ask{Question: "ask-A", State: "denied"})
	status(StatusWaiting, record.Ask{Question: "ask-C", State: "asked"})
	must(t, j.Close())
	status(StatusKilled)
}

// TestStatsOfWrites count no calls that only read.
func TestStatsOfWrites(t *testing.T) {
	r, _ := writeRecord(t)
	all, err := r.Stats(Filter{Writes: true})
	if err != nil || len(all) != 1 || all[0].Tool != "add_label" || all[0].Calls != 2 || all[0].Writes != 2 || all[0].P95 == 0 {
		t.Errorf("%+v %v", all, err)
	}
}

// TestValuesOfOneFieldAreJoined with entries of several runs, and those that were forgotten are not there.
func TestValuesOfOneFieldAreJoined(t *testing.T) {
	r := Open(t.TempDir())
	j := record.Open(record.Options{Dir: r.dir})
	for _, id := range []string{"aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc"} {
		run := j.Begin(id, "")
		must(t, run.Append(record.RunStart{Code: record.TextOf("code")}))
		must(t, run.Append(record.Ask{Question: id, State: "asked", Shown: record.TextOf(`"field":"shown" of ` + id)}))
		must(t, run.Append(record.Ask{Question: id, State: "denied"}))
	}
	must(t, j.Close())
	if _, err := record.Forget(r.dir, "bbbbbbbbbb"); err != nil {
		t.Fatal(err)
	}
	var entries []Entry
	for e, err := range r.Newest(record.KindAsk, record.KindRunStart) {
		must(t, err)
		entries = append(entries, e)
	}
	must(t, r.JoinValues(entries, "shown"))
	for _, e := range entries {
		ask, _ := e.Body.(*record.Ask)
		want := ask != nil && ask.State == "asked" && e.Run != "bbbbbbbbbb"
		if v := e.Values["shown"]; (v != nil) != want || want && (v.Wrong || v.Value.Value != `"field":"shown" of `+e.Run) || len(e.Values) > 1 {
			t.Errorf("%s %s: %+v", e.Run, e.Kind, e.Values)
		}
	}
}
