package history

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
)

// TestEntriesOfNoRun, as of what a command accepted, are in exports of all runs and of a time, and are
// followed. They are no runs, and the record with them is whole.
func TestEntriesOfNoRun(t *testing.T) {
	r := Open(t.TempDir())
	at := noon
	j := record.Open(record.Options{Dir: r.dir, Host: "vm", Shared: true, Now: func() time.Time { at = at.Add(time.Second); return at }})
	f := follower{record: r, at: map[string]int64{}}
	must(t, f.skip())
	accepted := record.Pin{Server: "bank", Tool: "pay", Change: "accepted", By: "a command"}
	must(t, j.Append(accepted)) // the first of its file
	writeRun(t, j, "aaaaaaaaaa")
	must(t, j.Append(accepted))
	followed, err := f.look()
	must(t, errors.Join(err, j.Close()))
	if len(followed) != 8 || followed[0].Kind != record.KindPin || followed[7].Run != "" || *followed[7].Body.(*record.Pin) != accepted {
		t.Errorf("followed are %d: %+v", len(followed), followed)
	}
	for name, tt := range map[string]struct {
		filter    Filter
		pins, all int
	}{
		"all":                {Filter{}, 2, 8},
		"since it":           {Filter{From: noon}, 2, 8},
		"since the run":      {Filter{From: noon.Add(3 * time.Second)}, 1, 1},
		"until the run ends": {Filter{To: noon.Add(5 * time.Second)}, 1, 7},
		"one server":         {Filter{Server: "github"}, 0, 6},
		"another time":       {Filter{To: noon}, 0, 0},
	} {
		var got, pins int
		for _, e := range all(t, r, tt.filter) {
			if got++; e.Kind == record.KindPin {
				pins++
			}
		}
		if got != tt.all || pins != tt.pins {
			t.Errorf("%s: %d entries with %d pins, want %d with %d", name, got, pins, tt.all, tt.pins)
		}
	}
	if report := verify(t, r); fmt.Sprint(report.Problems, report.Notes) != "[] []" || report.Files != 1 || report.Values != 4 {
		t.Errorf("%+v", report)
	}
	if runs := collect(t, r, Filter{}); len(runs) != 1 || runs[0].ID != "aaaaaaaaaa" {
		t.Errorf("%+v", runs)
	}
	if entries, err := r.Show("a"); len(entries) != 6 || err != nil {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}
