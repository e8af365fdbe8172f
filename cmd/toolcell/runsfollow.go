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
)

// followEvery is the interval between two looks at the record.
const followEvery = 200 * time.Millisecond

// noRun stands in place of the ID of a run for what a command did that is none.
const noRun = "–       "

// runsFollow prints what runs do until it is interrupted.
func runsFollow(ctx context.Context, o runsOptions) error {
	o.JSONPrinted = o.JSON // lines, and maybe none
	f := follower{calls: map[string]map[int]followedCall{}}
	for e, err := range o.history().Follow(ctx, followEvery) {
		if err != nil {
			return o.Settings.Dirs.Explain(err)
		}
		if o.JSON {
			err = console.PrintJSONLine(o.Streams, e.Raw)
		} else if what := f.tell(e); what != "" {
			_, err = fmt.Fprintf(o.Out, "%s  %s  %s\n", e.Time.Local().Format(time.TimeOnly), console.Plain(cmp.Or(timeline.ShortID(e.Run), noRun)), console.Plain(what))
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// A follower knows the calls of the runs that go on: entries that follow only have their numbers.
type follower struct {
	calls map[string]map[int]followedCall // by run and number
}

type followedCall struct{ name, does string }

// mostFollowed bounds the runs whose calls are known. Those that are killed have no end.
const mostFollowed = 1000

// tell says what an entry is about, "" if a person need not read of it.
func (f *follower) tell(e history.Entry) string {
	switch b := e.Body.(type) {
	case *record.RunStart:
		return "begins  " + beginning(b)
	case *record.Verdict:
		if b.Call > 0 {
			f.note(e.Run, b.Call, timeline.CallName(b.Server, b.Effect, b.Tool), b.Writes)
		}
	case *record.CallStart:
		return followedCallLine(b.Call, f.note(e.Run, b.Call, timeline.CallName(b.Server, b.Effect, b.Tool), b.Writes), "sent")
	case *record.CallEnd:
		c, known := f.calls[e.Run][b.Call]
		if !known { // it was refused before anything else was looked at, or left before we followed
			c.name = timeline.CallName(b.Server, "", b.Tool)
		}
		became := string(b.Outcome)
		if b.Outcome != record.Refused {
			became += "  " + timeline.Took(b.Duration)
		}
		return followedCallLine(b.Call, c, became)
	case *record.Ask:
		return f.asked(e.Run, b)
	case *record.Pin:
		return "pin     " + timeline.PinLine(b)
	case *record.Limit:
		return strings.TrimSpace(fmt.Sprintf("limit   %s %s", b.Name, b.Effect))
	case *record.RunEnd:
		delete(f.calls, e.Run)
		return fmt.Sprintf("ends    %s after %s", b.Status, timeline.Took(b.Duration))
	}
	return ""
}

func beginning(b *record.RunStart) string {
	line := strings.TrimSpace(cmp.Or(b.Client.Name, b.Command) + " " + b.Client.Version)
	if b.Session != "" {
		line += ", session " + b.Session
	}
	if len(b.Grants.Servers) > 0 {
		line += ", servers " + strings.Join(b.Grants.Servers, ", ")
	}
	return line
}

// note keeps what a call is.
func (f *follower) note(run string, call int, name string, writes bool) followedCall {
	c := followedCall{name, "reads"}
	if writes {
		c.does = "writes"
	}
	if f.calls[run] == nil {
		if len(f.calls) == mostFollowed {
			clear(f.calls)
		}
		f.calls[run] = map[int]followedCall{}
	}
	f.calls[run][call] = c
	return c
}

// followedCallLine is printed twice for a call that is sent: then, and when it ends.
func followedCallLine(number int, c followedCall, became string) string {
	return fmt.Sprintf("call    #%-3d %s  %s", number, strings.TrimSpace(c.name+"  "+c.does), became)
}

// asked tells of a question, and of what became of it.
func (f *follower) asked(run string, b *record.Ask) string {
	q := recordedAnswer{State: b.State, Scope: b.Scope, By: b.By, Client: b.Client, Terminal: b.Terminal, About: b.About, Allowed: allowedCalls(b)}
	for _, call := range b.Calls {
		q.Calls = append(q.Calls, cmp.Or(f.calls[run][call].name, fmt.Sprintf("#%d", call)))
	}
	if b.Server != "" {
		q.Calls = []string{timeline.CallName(b.Server, "", b.Tool)}
	}
	if b.State == "asked" {
		return fmt.Sprintf("asked   %s  %s", b.Question, q.about())
	}
	return fmt.Sprintf("decided %s  %s  %s", b.Question, q.about(), strings.TrimSpace(q.stateText()+" "+q.how()))
}
