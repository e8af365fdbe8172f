package main

import (
	"context"
	"strconv"
	"time"

	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
	"github.com/toolcell/toolcell/internal/text"
)

func runsStats(_ context.Context, o runsOptions) error {
	f, err := o.filter(time.Now())
	if err != nil {
		return err
	}
	all, err := o.history().Stats(f)
	if err != nil {
		return o.Settings.Dirs.Explain(err)
	}
	columns := []console.Column{
		{Name: "SERVER"},
		{Name: "TOOL"},
		{Name: "CALLS", Right: true},
		{Name: "WRITES", Right: true},
		{Name: "ERRORS", Right: true},
		{Name: "UNKNOWN", Right: true},
		{Name: "REFUSED", Right: true},
		{Name: "P95", Right: true},
		{Name: "ANSWERED", Right: true},
		{Name: "TOKENS", Right: true},
	}
	none, next := "no calls are on record", "toolcell runs list shows the runs"
	if o.filtered() {
		none = "no matching calls"
	}
	return printRows(o.Options, all, none, next, columns, func(s history.ToolStats) []string {
		p95 := ""
		if s.P95 > 0 {
			p95 = timeline.Took(s.P95)
		}
		return []string{
			s.Server, s.Tool, strconv.Itoa(s.Calls), strconv.Itoa(s.Writes), strconv.Itoa(s.Errors),
			strconv.Itoa(s.Unknown), strconv.Itoa(s.Refused), p95, text.Size(s.Bytes), text.Grouped(s.Tokens),
		}
	})
}
