// Package timeline makes of the entries of a run what a person reads: who ran what in what, the code
// with its calls beside it, each call with who allowed it and what became of it, what it cost, and
// how it ended.
//
// What code, servers and users wrote is printed without what a terminal would obey, on lines of its
// own that nothing of it can leave. It does not check whether the record is whole: history.Verify does.
package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
)

// A Timeline is what one run did. Of a run that goes on, or whose record is torn, parts are nil.
type Timeline struct {
	Run       history.Run
	Start     *record.RunStart
	Ready     *record.RunReady
	End       *record.RunEnd
	Cost      *record.RunCost
	Calls     []*Call     // in the order of their beginnings
	Questions []*Question // in the order in which they were asked

	entries  []history.Entry
	numbered map[int]*Call    // Calls
	servers  map[string]bool  // that it could use, or tried to
	private  bool             // some of them were
	others   []*history.Entry // what is shown between the calls
	start    *history.Entry   // of Start
	end      *history.Entry   // of End
}

// New makes the timeline of a run of its entries, which are in the order of their times.
func New(run history.Run, entries []history.Entry) *Timeline {
	t := &Timeline{Run: run, entries: entries, numbered: map[int]*Call{}, servers: map[string]bool{}}
	for i := range entries {
		t.Add(&entries[i])
	}
	for _, q := range t.Questions {
		for _, c := range t.Calls {
			if slices.Contains(q.Calls, c.Number) {
				q.tools = append(q.tools, c.Name())
			}
		}
	}
	for _, c := range t.Calls {
		c.allowed(t.Questions)
		c.over = t.over()
	}
	return t
}

// over reports whether the run has ended, in whatever way.
func (t *Timeline) over() bool {
	return t.End != nil || t.Run.Status != history.StatusRunning && t.Run.Status != history.StatusWaiting
}

// Add takes in one more entry, which may be needed as long as the timeline is.
func (t *Timeline) Add(e *history.Entry) {
	switch body := e.Body.(type) {
	case *record.RunStart:
		t.Start, t.start = body, e
		t.touch("", body.Private)
		for _, server := range body.Grants.Servers {
			t.touch(server, false)
		}
	case *record.RunReady:
		t.Ready = body
	case *record.RunEnd:
		t.End, t.end = body, e
		t.touch("", body.Private)
	case *record.RunCost:
		t.Cost = body
	case *record.Verdict:
		if body.Call == 0 {
			t.others = append(t.others, e)
			return
		}
		c := t.call(body.Call, e.Time)
		c.Verdict, c.verdict = body, e
		t.touch(body.Server, body.Private)
		c.describe(body.Server, body.Tool, body.Effect, body.Line, body.Writes)
	case *record.CallStart:
		c := t.call(body.Call, e.Time)
		c.Start, c.start, c.At = body, e, e.Time
		t.touch(body.Server, body.Private)
		c.describe(body.Server, body.Tool, body.Effect, body.Line, body.Writes)
	case *record.CallEnd:
		c := t.call(body.Call, e.Time)
		c.End, c.end = body, e
		t.touch(body.Server, body.Private)
		c.describe(body.Server, body.Tool, "", body.Line, body.Writes)
	case *record.Ask:
		t.ask(body, e)
		t.touch(body.Server, false)
	case *record.Egress, *record.File, *record.Limit, *record.Pin, *record.Torn:
		t.others = append(t.others, e)
	}
}

// touch notes that the run could use a server, which was private then or not.
func (t *Timeline) touch(server string, private bool) {
	if server != "" {
		t.servers[server] = true
	}
	t.private = t.private || private
}

// call returns the call of a number, which is a new one if it is not there yet.
func (t *Timeline) call(number int, at time.Time) *Call {
	c := t.numbered[number]
	if c == nil {
		c = &Call{Number: number, At: at}
		t.Calls, t.numbered[number] = append(t.Calls, c), c
	}
	return c
}

// ask takes in a question, or what became of it.
func (t *Timeline) ask(body *record.Ask, e *history.Entry) {
	at := slices.IndexFunc(t.Questions, func(q *Question) bool { return q.ID == body.Question })
	if at < 0 {
		t.Questions = append(t.Questions, &Question{ID: body.Question, Asked: e.Time, Calls: body.Calls, About: body.About, Server: body.Server, Tool: body.Tool, entry: e})
		at = len(t.Questions) - 1
	}
	if q := t.Questions[at]; body.State != asked {
		q.Last, q.answered, q.scope = body, e, cmp.Or(body.Scope, q.scope)
	}
}

// FirstCall returns the first call that a question is about, nil if it is about none.
func (t *Timeline) FirstCall(q *Question) *Call {
	if len(q.Calls) == 0 {
		return nil
	}
	return t.numbered[q.Calls[0]]
}

// Took writes a time that is given in microseconds as a person would.
func Took(us int64) string {
	d := time.Duration(us) * time.Microsecond
	switch {
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
