package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
	"github.com/toolcell/toolcell/internal/text"
)

// A forgottenRun is a row of runs forget.
type forgottenRun struct {
	Run     string   `json:"run"`
	DryRun  bool     `json:"dryRun"`
	Values  int      `json:"values"` // that were removed, or would be
	Bytes   int64    `json:"bytes"`
	Fields  []string `json:"fields"` // what they are
	Running bool     `json:"running,omitempty"`
	Error   string   `json:"error,omitempty"`
}

func runsForget(ctx context.Context, o runsOptions) error {
	rows, err := o.toForget()
	if err != nil {
		return err
	}
	values := 0
	for _, row := range rows {
		values += row.Values
	}
	switch {
	case o.DryRun && o.JSON:
		return console.PrintJSON(o.Streams, rows)
	case o.DryRun || values == 0 && !o.JSON:
		return nil // it is described
	case !o.Yes:
		question := map[bool]string{true: "Remove this value for good?", false: fmt.Sprintf("Remove these %d values for good?", values)}[values == 1]
		if err := confirm(ctx, o.Options, question, "nothing was removed"); err != nil {
			return err
		}
	}
	return o.forget(rows)
}

// toForget finds what there is of the runs, and describes it.
func (o runsOptions) toForget() (rows []forgottenRun, err error) {
	r := o.history()
	for _, id := range o.Args {
		found, err := o.resolve(r, id)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(rows, func(f forgottenRun) bool { return f.Run == found.ID }) {
			continue
		}
		entries, err := r.Show(found.ID)
		if err != nil {
			return nil, o.Settings.Dirs.Explain(err)
		}
		row := forgottenRun{Run: found.ID, DryRun: o.DryRun, Running: found.Status == history.StatusRunning || found.Status == history.StatusWaiting, Fields: []string{}}
		row.count(entries)
		rows = append(rows, row)
		if o.JSON {
			continue
		}
		fmt.Fprintf(o.Stdout(), "run %s of %s, %s: %s\n", console.Plain(found.ID), found.Start.Local().Format(time.DateTime), console.Plain(timeline.From(found)), row.describe())
		if row.Running {
			console.Note(o.Err, "run "+found.ID+" goes on, and will write more values")
		}
	}
	return rows, nil
}

// count counts the values.
func (f *forgottenRun) count(entries []history.Entry) {
	for _, e := range entries {
		for field, v := range e.Values {
			f.Values++
			f.Bytes += int64(len(v.Value.Value) + len(v.Tail))
			if !slices.Contains(f.Fields, field) {
				f.Fields = append(f.Fields, field)
			}
		}
	}
	slices.Sort(f.Fields)
}

func (f *forgottenRun) describe() string {
	if f.Values == 0 {
		return "no values of it are kept"
	}
	return fmt.Sprintf("%s, %s: %s", text.Plural(f.Values, "value"), text.Size(f.Bytes), strings.Join(f.Fields, ", "))
}

// forget removes the values of all runs. One that fails does not keep it from the others.
func (o runsOptions) forget(rows []forgottenRun) error {
	var failures []error
	removed := 0
	for i := range rows {
		n, err := record.Forget(recordDir(o.Settings), rows[i].Run)
		rows[i].Values = n
		removed += n
		if err != nil {
			rows[i].Error = err.Error()
			failures = append(failures, fmt.Errorf("run %s: %w; run it again", rows[i].Run, o.Settings.Dirs.Explain(err)))
		}
	}
	if o.JSON {
		return errors.Join(append(failures, console.PrintJSON(o.Streams, rows))...)
	}
	if removed == 0 && len(failures) > 0 {
		return errors.Join(failures...)
	}
	fmt.Fprintf(o.Stdout(), "removed %s\n", text.Plural(removed, "value"))
	fmt.Fprintln(o.Stdout(), "What stays: who ran something, when, and with which client; the tools it called, how each call ended and why\n"+
		"one was refused; what you were asked about and how you answered; the names of hosts, packages, files, folders and\n"+
		"sessions; sizes; and digests, which say nothing without the salt that went with the values. toolcell runs\n"+
		"verify still holds.")
	return errors.Join(failures...)
}
