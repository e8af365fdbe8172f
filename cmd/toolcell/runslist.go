package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
)

func runsList(_ context.Context, o runsOptions) error {
	now := time.Now()
	f, err := o.filter(now)
	if err != nil {
		return err
	}
	if o.Limit < 0 {
		return console.Usagef("-n takes a number of runs, got %d", o.Limit)
	}
	r := o.history()
	all, more, err := newest(r, f, o.Limit)
	if err != nil {
		return o.Settings.Dirs.Explain(err)
	}
	switch {
	case o.Calls:
		return o.listCalls(r, f, all, more)
	case o.JSON:
		return console.PrintJSON(o.Streams, all)
	}
	if len(all) == 0 {
		return o.printNoRuns()
	}
	rows, err := listedRuns(r, all, now, o.hide())
	if err != nil {
		return o.Settings.Dirs.Explain(err)
	}
	columns := []console.Column{
		{Name: "RUN", Keep: true}, {Name: "BEGAN"}, {Name: "CLIENT"}, {Name: "STATUS", Least: 1 + len(run.StatusCancelled)}, {Name: "CALLS", Right: true}, {Name: "WRITES", Right: true}, {Name: "TOOK", Right: true}, {Name: "CODE"},
	}
	if err := console.PrintTable(o.Out, columns, rows); err != nil {
		return err
	}
	o.noteLost(all)
	if more {
		o.hintMore()
	}
	return nil
}

// noteLost says of which runs entries could not be written.
func (o runsOptions) noteLost(all []history.Run) {
	var lost []string
	for _, r := range all {
		if r.Lost > 0 {
			lost = append(lost, console.Plain(shortRun(r.ID)))
		}
	}
	if len(lost) > 0 {
		const most = 10
		more := ""
		if len(lost) > most {
			lost, more = lost[:most], fmt.Sprintf(" and %d more", len(lost)-most)
		}
		console.Note(o.Err, "entries could not be written of "+strings.Join(lost, ", ")+more+": not all that these runs did is listed")
	}
}

// hintMore says how to see more runs than these.
func (o runsOptions) hintMore() {
	console.Hint(o.Err, fmt.Sprintf("there are more runs: -n %d, -n 0 for all, or --until and other filters", moreThan(o.Limit)))
}

// moreThan returns a round number of at least twice as many.
func moreThan(limit int) int {
	for round := 10; ; round *= 10 {
		for _, n := range []int{round, 2 * round, 5 * round} {
			if n >= 2*limit {
				return n
			}
		}
	}
}

// newest returns the newest runs that fit, and whether there are more. A limit of 0 is none.
func newest(r *history.Record, f history.Filter, limit int) (all []history.Run, more bool, err error) {
	for run, err := range r.Runs(f) {
		if err != nil {
			return nil, false, err
		}
		if limit > 0 && len(all) == limit {
			return all, true, nil
		}
		all = append(all, run)
	}
	return all, false, nil
}

// printNoRuns says that there is nothing to show, and what to type next.
func (o runsOptions) printNoRuns() error {
	if o.filtered() {
		return printNone(o.Streams, "no matching runs", "toolcell runs list -n 0 lists all of them")
	}
	if len(o.history().Newer()) > 0 {
		return printNone(o.Streams, "no runs that this version of toolcell can read are on record", "use the newer one")
	}
	return printNone(o.Streams, "no runs are on record yet", "toolcell exec -c 'print(1)' makes one")
}

// listedRuns returns the rows of a list.
func listedRuns(r *history.Record, all []history.Run, now time.Time, hide func(server string) bool) (rows [][]string, err error) {
	codes, err := r.Codes(all)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		took := ""
		if r.Duration > 0 {
			took = timeline.Took(r.Duration)
		}
		calls, writes := strconv.Itoa(r.Calls), strconv.Itoa(r.Writes)
		code := codeLine(r, codes[r.ID].Value)
		if hide != nil && (r.Private || slices.ContainsFunc(r.Servers, hide)) {
			code = "(not shown: runs show ID --values)"
		}
		rows = append(rows, []string{shortRun(r.ID), beganAt(r.Start, now), runFrom(r), runStatus(r), calls, writes, took, code})
	}
	return rows, nil
}

// runStatus is the status of a run, with what of it needs a look.
func runStatus(r history.Run) string {
	var parts []string
	if r.Plan {
		parts = append(parts, "dry run")
	}
	for _, p := range []struct {
		n    int
		what string
	}{{r.Unknown, "unknown"}, {r.Failed, "failed"}, {r.Refused, "refused"}} {
		if p.n > 0 {
			parts = append(parts, strconv.Itoa(p.n)+" "+p.what)
		}
	}
	if len(parts) == 0 {
		return r.Status
	}
	return r.Status + " (" + strings.Join(parts, ", ") + ")"
}

// beganAt writes a time as short as it can be told from others.
func beganAt(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format(time.TimeOnly)
	case t.Year() == now.Year():
		return t.Format("Jan _2 15:04")
	}
	return t.Format("2006-01-02 15:04")
}

// codeWidth bounds the beginning of the code in a list.
const codeWidth = 80

// codeLine is the first line of the code that says something, or else the session.
func codeLine(r history.Run, code string) string {
	first := ""
	for line := range strings.Lines(code) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "import ") && !strings.HasPrefix(line, "from "):
			return console.OneLine(line, codeWidth)
		case first == "":
			first = line
		}
	}
	if first == "" && r.Session != "" {
		first = "session " + r.Session
	}
	return cmp.Or(console.OneLine(first, codeWidth), "–")
}
