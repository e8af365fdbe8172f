package history

import (
	"cmp"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
)

// TestRunsWithoutAnEndOnRecord: what became of them depends on what comes after.
func TestRunsWithoutAnEndOnRecord(t *testing.T) {
	r := Open(t.TempDir())
	c := &clock{noon}
	j := c.journal(r, "vm")
	lost, killed := j.Begin("lost", ""), j.Begin("killed", "")
	must(t, lost.Append(record.RunStart{}))
	must(t, lost.Append(record.CallStart{Call: 1, Server: "s", Tool: "t"}))
	must(t, j.Append(record.Torn{Lost: 2, Error: "no space left on device"}))
	must(t, killed.Append(record.RunStart{}))
	for range 2 { // while its process lives, and after
		want := map[string]string{"lost": StatusIncomplete, "killed": cmp.Or(map[bool]string{true: StatusRunning}[r.isOpen(onlyFile(t, r))], StatusKilled)}
		for _, run := range collect(t, r, Filter{}) {
			if run.Status != want[run.ID] {
				t.Errorf("%s is %s, want %s", run.ID, run.Status, want[run.ID])
			}
			if underWay := map[bool]int{true: 1}[run.ID == "lost" && run.Status == StatusRunning]; run.UnderWay != underWay {
				t.Errorf("%d calls of %s, which is %s, are under way", run.UnderWay, run.ID, run.Status)
			}
		}
		must(t, j.Close())
	}
}

// TestCommandsThatRun are those whose process is the one that began the run.
func TestCommandsThatRun(t *testing.T) {
	sleep := exec.Command("sleep", "60")
	must(t, sleep.Start())
	defer sleep.Wait()
	defer sleep.Process.Kill()
	gone := exec.Command("true")
	must(t, gone.Run())
	for what, row := range map[string]struct {
		start  record.RunStart
		at     time.Time
		status string
	}{
		"it lives":                       {record.RunStart{PID: sleep.Process.Pid}, time.Now(), StatusRunning},
		"it is gone":                     {record.RunStart{PID: gone.Process.Pid}, time.Now(), StatusKilled},
		"another one has its number":     {record.RunStart{PID: sleep.Process.Pid}, time.Now().Add(-time.Minute), StatusKilled},
		"it is the first one of another": {record.RunStart{PID: 1, Host: "other"}, time.Now(), StatusKilled},
	} {
		t.Run(what, func(t *testing.T) {
			r := Open(t.TempDir())
			j := record.Open(record.Options{Dir: r.dir, Shared: true, Now: func() time.Time { return row.at }})
			must(t, errors.Join(j.Begin("a", "").Append(row.start), j.Close()))
			if got := collect(t, r, Filter{})[0].Status; got != row.status {
				t.Errorf("it is %s, want %s", got, row.status)
			}
		})
	}
}

func TestProcessBegan(t *testing.T) {
	before := time.Now()
	sleep := exec.Command("sleep", "60")
	must(t, sleep.Start())
	defer sleep.Wait()
	defer sleep.Process.Kill()
	began, err := processBegan(sleep.Process.Pid)
	if err != nil || began.Before(before.Add(-clockSlack)) || began.After(time.Now().Add(clockSlack)) {
		t.Errorf("%v, before it was %v: %v", began, before, err)
	}
}
