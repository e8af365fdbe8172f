package main

import (
	"context"
	"fmt"
	"strconv"
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
	if note := timeline.LostNote(all); note != "" {
		console.Note(o.Err, note)
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
		code := timeline.FirstLine(r, codes[r.ID].Value)
		if hide != nil && r.Touches(hide) {
			code = "(not shown: runs show ID --values)"
		}
		rows = append(rows, []string{timeline.ShortID(r.ID), timeline.Began(r.Start, now), timeline.From(r), timeline.StatusOf(r), calls, writes, took, code})
	}
	return rows, nil
}
