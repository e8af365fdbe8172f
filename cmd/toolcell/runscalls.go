package main

import (
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
)

// allowedWidth bounds who allowed a call in a list. It has room for the ID of a question, and for what the
// user says with a denial.
const allowedWidth = 240

// A listedCall is a row of runs list --calls.
type listedCall struct {
	Run      string    `json:"run"`
	Client   string    `json:"client"` // or the command
	Call     int       `json:"call"`
	Line     int       `json:"line,omitempty"`
	Time     time.Time `json:"time"`
	Server   string    `json:"server"`
	Tool     string    `json:"tool,omitempty"`
	Effect   string    `json:"effect,omitempty"`
	Writes   bool      `json:"writes"`
	Outcome  string    `json:"outcome"`
	Duration int64     `json:"durationUs,omitempty"`
	Allowed  string    `json:"allowed,omitempty"`
	Remark   string    `json:"remark,omitempty"` // what makes the user's answer doubtful

	Arguments *timeline.Value `json:"arguments,omitempty"`

	name, does, outcome, shown string // as a table has them
}

// listCalls prints the calls of runs, those of the newest run first.
func (o runsOptions) listCalls(r *history.Record, f history.Filter, all []history.Run, more bool) error {
	rows, err := o.callsOf(r, f, all)
	if err != nil {
		return o.Settings.Dirs.Explain(err)
	}
	columns := []console.Column{{Name: "RUN", Keep: true}, {Name: "BEGAN"}, {Name: "CLIENT"}, {Name: "CALL"}, {Name: "EFFECT"}, {Name: "OUTCOME", Least: len(record.Refused)}, {Name: "ARGUMENTS"}, {Name: "ALLOWED"}}
	now := time.Now()
	err = printRows(o.Options, rows, "no matching calls", "toolcell runs list -n 0 lists all runs", columns, func(c listedCall) []string {
		return []string{timeline.ShortID(c.Run), timeline.Began(c.Time, now), c.Client, c.name, c.does, c.outcome, c.shown, console.OneLine(c.Allowed, allowedWidth)}
	})
	if err == nil && !o.JSON {
		o.noteLost(all)
	}
	if more && err == nil && !o.JSON {
		o.hintMore()
	}
	return err
}

// callsOf returns the calls that fit of some runs, which are all that fit of those that are not older.
func (o runsOptions) callsOf(r *history.Record, f history.Filter, all []history.Run) (rows []listedCall, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	f.From = all[len(all)-1].Start
	entries := map[string][]history.Entry{}
	for e, err := range r.Entries(f) {
		if err != nil {
			return nil, err
		}
		entries[e.Run] = append(entries[e.Run], e)
	}
	shown := timeline.Options{Hide: o.hide(), ToShow: "runs show ID --values"}
	for _, run := range all {
		t := timeline.New(run, entries[run.ID])
		for _, c := range t.Calls {
			if o.wants(c) {
				rows = append(rows, newListedCall(t, c, shown))
			}
		}
	}
	return rows, nil
}

// wants reports whether the flags let a call be listed.
func (o runsOptions) wants(c *timeline.Call) bool {
	return (!o.Writes || c.Writes) && (o.Server == "" || c.Server == o.Server) && (o.Tool == "" || c.Tool == o.Tool || c.Server+"."+c.Tool == o.Tool)
}

func newListedCall(t *timeline.Timeline, c *timeline.Call, o timeline.Options) listedCall {
	row := listedCall{
		Run: t.Run.ID, Client: timeline.From(t.Run), Call: c.Number, Line: c.Line, Time: c.At, Server: c.Server, Tool: c.Tool, Effect: c.Effect,
		Writes: c.Writes, Outcome: c.RecordedOutcome(), name: c.Name(), does: c.Does(), outcome: c.Outcome(), shown: t.ArgumentsOf(c, o, timeline.CodeWidth),
	}
	row.Allowed, row.Remark = t.WhoAllowed(c, o)
	row.Arguments = t.ArgumentsValue(c, o)
	if c.End != nil {
		row.Duration = c.End.Duration
	}
	return row
}
