package inbox

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
)

// TestTheShellOfAnotherAgentCannotApprove: whatever client has started a server of the
// user's, a shell that it has started is not the user's own terminal.
func TestTheShellOfAnotherAgentCannotApprove(t *testing.T) {
	queue, dir, s := open(t, consent.Options{})
	// The agent is below this test as its server is, and the test may read from a pipe.
	s.own.launchers = s.own.launchers[:0]
	q, _ := ask(t, queue, transfer)
	if got := approveElsewhere(t, "agent", dir, q.ID, consent.ForCall); !strings.Contains(got, ErrAgent.Error()) {
		t.Errorf("got %s", got)
	}
	if got, _ := queue.Question(q.ID); got.State != consent.Pending {
		t.Errorf("the question is %s", got.State)
	}
}

// TestAStrictPolicyRefusesWhatMayBeLeftByAClient.
func TestAStrictPolicyRefusesWhatMayBeLeftByAClient(t *testing.T) {
	queue, dir, s := open(t, consent.Options{})
	s.strict = func() bool { return true }
	q, _ := ask(t, queue, transfer)
	if got := approveElsewhere(t, "terminal", dir, q.ID, consent.ForCall); !strings.Contains(got, ErrStrict.Error()) {
		t.Errorf("got %s", got)
	}
	if got, _ := queue.Question(q.ID); got.State != consent.Pending {
		t.Errorf("the question is %s", got.State)
	}
}

// TestWhatAClientMayHaveLeft compares lines of processes, from the one that approves upward.
// The client began at 100 in a terminal 7, below a shell that began at 50.
func TestWhatAClientMayHaveLeft(t *testing.T) {
	at := func(pid int, started uint64, terminal int) procStat {
		return procStat{process: process{pid, started}, terminal: terminal}
	}
	initial, manager := at(1, 1, 0), at(900, 10, 0)
	window, shell := at(1000, 40, 0), at(1001, 50, 7)
	s := serving{launchers: []procStat{at(2000, 120, 0), at(1999, 100, 7)}, above: []procStat{shell, window, manager, initial}}
	approve := func(terminal int) procStat { return at(5000, 200, terminal) }
	for name, tt := range map[string]struct {
		line   []procStat
		leader procStat
		want   bool
	}{
		"a tab that was open before":         {[]procStat{approve(8), at(1002, 60, 8), window, manager, initial}, at(1002, 60, 8), false},
		"the shell that the client is under": {[]procStat{approve(7), shell, window, manager, initial}, shell, false},
		"a login from before":                {[]procStat{approve(9), at(800, 20, 9), at(799, 19, 0), initial}, at(800, 20, 9), false},
		"tmux from before, its old window":   {[]procStat{approve(9), at(800, 20, 9), at(799, 19, 0), manager, initial}, at(800, 20, 9), false},
		"a new tab":                          {[]procStat{approve(8), at(3000, 150, 8), window, manager, initial}, at(3000, 150, 8), true},
		"a new window of an old tmux":        {[]procStat{approve(9), at(3000, 150, 9), at(799, 19, 0), manager, initial}, at(3000, 150, 9), true},
		"tmux new -d":                        {[]procStat{approve(9), at(3001, 151, 9), at(3000, 150, 0), manager, initial}, at(3001, 151, 9), true},
		"tmux that init has adopted":         {[]procStat{approve(9), at(3001, 151, 9), at(3000, 150, 0), initial}, at(3001, 151, 9), true},
		"a job of the service manager":       {[]procStat{approve(9), manager, initial}, approve(9), true},
		"( ... ) & at the client's terminal": {[]procStat{approve(7), manager, initial}, shell, true},
		"the same, adopted by init":          {[]procStat{approve(7), initial}, shell, true},
		"an orphan with an old terminal":     {[]procStat{approve(8), at(3000, 150, 8), manager, initial}, at(1002, 60, 8), true},
		"at the tick when the client began":  {[]procStat{approve(8), at(3000, 100, 8), window, manager, initial}, at(3000, 100, 8), true},
		"from outside of this namespace":     {[]procStat{approve(8), at(3000, 150, 8)}, at(3000, 150, 8), true},
		"from outside, from before":          {[]procStat{approve(8), at(1002, 60, 8)}, at(1002, 60, 8), false},
		"alone from outside":                 {[]procStat{approve(8)}, approve(8), true},
		"below hidden processes":             {[]procStat{approve(8), at(1002, 60, 8), at(700, 0, 0)}, at(1002, 60, 8), false},
		"late, below hidden processes":       {[]procStat{approve(8), at(3000, 150, 8), at(700, 0, 0)}, at(1002, 60, 8), true},
		"an ID that is another's now":        {[]procStat{approve(8), at(3000, 150, 8), at(1001, 140, 8), manager, initial}, at(1002, 60, 8), true},
		"everything hidden":                  {[]procStat{at(5000, 0, 8)}, at(5000, 0, 8), true},
	} {
		if got := s.mayHaveLeft(tt.line, tt.leader); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if (serving{}).mayHaveLeft([]procStat{approve(8), at(1002, 60, 8), initial}, at(1002, 60, 8)) != true {
		t.Error("where nothing is above the server, a terminal is clearly a person's")
	}
}

// TestLinesThatAreTooLongAreNotSeen: what is above would go unnoticed.
func TestLinesThatAreTooLongAreNotSeen(t *testing.T) {
	if _, err := lineage(0); err == nil {
		t.Error("no process has a line")
	}
	if _, err := lineage(1 << 30); err == nil {
		t.Error("a process that is not there has a line")
	}
}
