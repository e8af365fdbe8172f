package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
	"github.com/toolcell/toolcell/internal/text"
)

// followEvery is the interval between two looks at the record.
const followEvery = 200 * time.Millisecond

// noRun stands in place of the ID of a run for what a command did that is none.
const noRun = "–       "

// runsFollow prints what runs do until it is interrupted.
func runsFollow(ctx context.Context, o runsOptions) error {
	o.JSONPrinted = o.JSON // lines, and maybe none
	for e, err := range o.history().Follow(ctx, followEvery) {
		if err != nil {
			return o.Settings.Dirs.Explain(err)
		}
		switch line := followedLine(e); {
		case o.JSON:
			err = console.PrintJSONLine(o.Streams, e.Raw)
		case line != "":
			_, err = fmt.Fprintf(o.Out, "%s  %s  %s\n", e.Time.Local().Format(time.TimeOnly), console.Plain(cmp.Or(shortRun(e.Run), noRun)), console.Plain(line))
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// followedLine tells of an entry, "" if a person need not read of it.
func followedLine(e history.Entry) string {
	switch b := e.Body.(type) {
	case *record.RunStart:
		line := "begins  " + strings.TrimSpace(cmp.Or(b.Client.Name, b.Command)+" "+b.Client.Version)
		if b.Session != "" {
			line += ", session " + b.Session
		}
		if len(b.Grants.Servers) > 0 {
			line += ", servers " + strings.Join(b.Grants.Servers, ", ")
		}
		return line
	case *record.CallEnd:
		effect := "reads"
		if b.Writes {
			effect = "writes"
		}
		return fmt.Sprintf("call    %s.%s  %s  %s  %s", b.Server, b.Tool, effect, b.Outcome, timeline.Took(b.Duration))
	case *record.Ask:
		about := strings.TrimSuffix(b.Server+"."+b.Tool, ".")
		if len(b.Calls) > 0 {
			about = text.Plural(len(b.Calls), "call")
		}
		return strings.TrimSpace(fmt.Sprintf("asked   %s  %s  %s %s", b.Question, b.State, about, timeline.HowAnswered(b)))
	case *record.Pin:
		return "pin     " + timeline.PinLine(b)
	case *record.Limit:
		return strings.TrimSpace(fmt.Sprintf("limit   %s %s", b.Name, b.Effect))
	case *record.RunEnd:
		return fmt.Sprintf("ends    %s after %s", b.Status, timeline.Took(b.Duration))
	}
	return ""
}
