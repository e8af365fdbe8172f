package main

import (
	"cmp"

	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// history returns the record that a command reads, which knows afterwards what it passed over.
func (o runsOptions) history() *history.Record { return cmp.Or(o.record, o.Options.history()) }

// noteNewer says once of each file that lines of a newer toolcell were passed over.
func (o runsOptions) noteNewer() {
	for _, f := range o.history().Newer() {
		console.Note(o.Err, f.String())
	}
}
