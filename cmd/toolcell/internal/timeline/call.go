package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
)

// A Call is a request to a server, or one that the policy refused.
type Call struct {
	Number               int
	Line                 int // of the code, 0 if it is not known
	Server, Tool, Effect string
	Writes               bool // it may have changed something
	Private              bool // the server was private
	At                   time.Time
	Verdict              *record.Verdict   // nil if the policy plainly allowed it
	Start                *record.CallStart // nil if it did not go out
	End                  *record.CallEnd   // nil if no end is known
	Question             *Question         // that the user was asked about it, or answered before it
	before               bool              // the question was of an earlier call

	verdict, start, end *history.Entry
}

// describe notes what an entry says of the call. The first one counts.
func (c *Call) describe(server, tool, effect string, line int, writes, private bool) {
	c.Server, c.Tool, c.Effect = cmp.Or(c.Server, server), cmp.Or(c.Tool, tool), cmp.Or(c.Effect, effect)
	c.Line = cmp.Or(c.Line, line)
	c.Writes, c.Private = c.Writes || writes, c.Private || private
}

// What a call was that has no outcome.
const (
	Planned = "planned" // of a dry run: nothing was sent
	Waiting = "waiting" // for the user
)

// Outcome says how the call ended. One that went out and has no end is unknown: it may have taken
// effect.
func (c *Call) Outcome() string {
	switch {
	case c.End != nil:
		return string(c.End.Outcome)
	case c.Start != nil:
		return string(record.Unknown)
	case c.Verdict != nil && c.Verdict.Decision == "plan":
		return Planned
	case c.Question != nil && c.Question.Last == nil:
		return Waiting
	}
	return string(record.Refused)
}

// Name is SERVER.TOOL, or what else was asked of the server.
func (c *Call) Name() string {
	if c.Effect == "" || c.Effect == "tools/call" {
		return c.Server + "." + c.Tool
	}
	return strings.TrimSpace(c.Server + " " + c.Effect + " " + c.Tool)
}

// arguments returns the entry that has the arguments.
func (c *Call) arguments() (*history.Entry, *record.Text) {
	if c.Start != nil {
		return c.start, &c.Start.Arguments
	}
	if c.Verdict != nil {
		return c.verdict, &c.Verdict.Arguments
	}
	return nil, nil
}

// allowed looks for the question that the call is about, or an earlier one whose answer covers it.
func (c *Call) allowed(questions []*Question) {
	for _, q := range questions {
		switch {
		case slices.Contains(q.Calls, c.Number):
			c.Question, c.before = q, false
			return
		case c.Start != nil && c.Start.Question == q.ID:
			c.Question, c.before = q, true
		}
	}
}

// WhoAllowed says whose word let the call out, or kept it back: that of the user, or of the policy.
// policy is false for a run without a policy.
func (c *Call) WhoAllowed(policy bool) string {
	switch {
	case c.Question != nil && c.before:
		return "allowed for the rest of the run: " + c.Question.Answer()
	case c.Question != nil:
		return c.Question.Answer()
	case c.Verdict != nil && c.Verdict.Decision == "deny":
		return "refused by the policy: " + strings.Join(c.Verdict.Reasons, "; ")
	case c.Start == nil:
		return ""
	case policy:
		return "allowed by the policy"
	}
	return "no policy: not asked"
}

// asked is the state of a question that waits.
const asked = "asked"

// A Question is one to the user.
type Question struct {
	ID     string
	About  string // call, input or before
	Server string // that asks for input
	Tool   string
	Calls  []int
	Asked  time.Time
	Last   *record.Ask // what became of it; nil while it waits, or if its process was killed

	tools []string       // of its calls
	entry *history.Entry // in which it is asked
}

// Answer says in words what became of the question, and how.
func (q *Question) Answer() string {
	a := q.Last
	if a == nil {
		return "the user was asked, and there is no answer (" + q.ID + ")"
	}
	said := map[string]string{
		"approved": "allowed by the user", "denied": "denied by the user", "stopped": "denied by the user, who stopped the run",
		"expired": "no answer came in time", "ended": "the run ended before an answer", "answered": "answered by the user",
		"revoked": "allowed by the user, and taken back later",
	}[a.State]
	said = cmp.Or(said, a.State)
	if how := HowAnswered(a); how != "" {
		said += " " + how
	}
	said += map[string]string{"run": ", until the run ends", "reads": ", and the tool counts as only reading"}[a.Scope]
	if a.Waited > 0 {
		said += ", after " + Took(a.Waited)
	}
	if a.Remark != "" {
		said += "; " + a.Remark
	}
	return said + " (" + q.ID + ")"
}

// HowAnswered says by what means an answer came, "" if none did.
func HowAnswered(a *record.Ask) string {
	var how string
	switch a.By {
	case "":
		return ""
	case "form":
		how = "in a form"
	case "terminal":
		how = "at the terminal"
	default:
		how = "with " + a.By
	}
	if a.Terminal != "" {
		how += " on " + a.Terminal
	}
	if a.Client != "" && a.By == "form" {
		how += " of " + a.Client
	}
	return how
}

// numbers writes numbers of calls as ranges: #1, #3-7.
func numbers(all []int) string {
	var parts []string
	for i := 0; i < len(all); {
		j := i
		for j+1 < len(all) && all[j+1] == all[j]+1 {
			j++
		}
		if j == i {
			parts = append(parts, fmt.Sprint(all[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", all[i], all[j]))
		}
		i = j + 1
	}
	const most = 3
	if len(parts) > most {
		parts = append(parts[:most-1], "…"+parts[len(parts)-1])
	}
	return "#" + strings.Join(parts, ",")
}
