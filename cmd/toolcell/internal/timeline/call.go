package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// A Call is a request to a server, or one that the policy refused.
type Call struct {
	Number               int
	Line                 int // of the code, 0 if it is not known
	Server, Tool, Effect string
	Writes               bool // it is none that only reads
	At                   time.Time
	Verdict              *record.Verdict   // nil if the policy plainly allowed it
	Start                *record.CallStart // nil if it did not go out
	End                  *record.CallEnd   // nil if no end is known
	Question             *Question         // that the user was asked about it, or answered before it
	before               bool              // the question was of an earlier call
	over                 bool              // so is the run: no answer will come

	verdict, start, end *history.Entry
}

// describe notes what an entry says of the call. The first one counts.
func (c *Call) describe(server, tool, effect string, line int, writes bool) {
	c.Server, c.Tool, c.Effect = cmp.Or(c.Server, server), cmp.Or(c.Tool, tool), cmp.Or(c.Effect, effect)
	c.Line = cmp.Or(c.Line, line)
	c.Writes = c.Writes || writes
}

// What a call was that has no outcome.
const (
	Planned    = "planned"    // of a dry run: nothing was sent
	Waiting    = "waiting"    // for the user
	Unanswered = "unanswered" // the run has ended without an answer of the user
	UnderWay   = "under way"  // it was sent, and the run goes on
)

// Outcome says how the call ended. One that went out and has no end is under way while the run goes on,
// and then unknown.
func (c *Call) Outcome() string {
	switch {
	case c.End != nil:
		return string(c.End.Outcome)
	case c.Start != nil && !c.over:
		return UnderWay
	case c.Start != nil:
		return string(record.Unknown)
	case c.Verdict != nil && c.Verdict.Decision == "plan":
		return Planned
	case c.Question != nil && c.Question.Last == nil && c.over:
		return Unanswered
	case c.Question != nil && c.Question.Last == nil:
		return Waiting
	}
	return string(record.Refused)
}

// RecordedOutcome is Outcome as JSON and CSV have it, where a call under way is unknown: no end of it is
// on record.
func (c *Call) RecordedOutcome() string {
	if outcome := c.Outcome(); outcome != UnderWay {
		return outcome
	}
	return string(record.Unknown)
}

// MayHaveChanged reports whether the call was sent, and may have changed something.
func (c *Call) MayHaveChanged() bool {
	switch c.Outcome() {
	case string(record.Refused), Planned, Waiting, Unanswered:
		return false
	}
	return c.Writes
}

// Does says whether the call reads or writes, "" if it was refused before that was looked at.
func (c *Call) Does() string {
	switch {
	case c.Writes:
		return "writes"
	case c.Start == nil && c.Verdict == nil:
		return ""
	}
	return "reads"
}

// Name is SERVER.TOOL, or what else was asked of the server.
func (c *Call) Name() string { return CallName(c.Server, c.Effect, c.Tool) }

// CallName is the name of a call with an effect, such as tools/call.
func CallName(server, effect, tool string) string {
	switch {
	case effect != "" && effect != "tools/call":
		return strings.TrimSpace(server + " " + effect + " " + tool)
	case tool == "":
		return server
	}
	return server + "." + tool
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

// WhoAllowed says whose word let a call out, or kept it back: that of the user, of the policy, or of
// toolcell itself. The remark is what makes an answer of the user doubtful, "" if nothing does.
func (t *Timeline) WhoAllowed(c *Call, o Options) (said, remark string) {
	switch {
	case c.Question != nil && c.before && strings.HasPrefix(c.Question.scope, "connection"):
		return "allowed for the connection: " + c.Question.Answer(), c.Question.remark()
	case c.Question != nil && c.before:
		return "allowed for the rest of the run: " + c.Question.Answer(), c.Question.remark()
	case c.Question != nil:
		said = c.Question.answerTo(c.Number)
		if words := t.words(c, o); words != "" {
			said += ": " + words
		}
		return said, c.Question.remark()
	case c.wasAsked():
		return "allowed for the connection: by the user in another run (" + c.Start.Question + ")", ""
	case c.denied():
		return "refused by the policy: " + strings.Join(c.Verdict.Reasons, "; "), ""
	case c.refused():
		s := t.shownText(&o, c.end, "error", &c.End.Error)
		return "refused: " + console.OneLine(cmp.Or(s.full(), s.note, "the record does not say why"), maxReason), ""
	case c.Start == nil:
		return "", ""
	case t.HasPolicy():
		return "allowed by the policy", ""
	}
	return "no policy: not asked", ""
}

// words returns what the user says to a call that was denied, or why it is not there; "" if that is
// nothing, or the call was allowed.
func (t *Timeline) words(c *Call, o Options) string {
	q := c.Question
	if q == nil || q.Last == nil || slices.Contains(q.Last.Allowed, c.Number) {
		return ""
	}
	return t.Because(q, o)
}

// Because returns what the user says to what a question's answer denies, or why it is not there; "" if
// that is nothing.
func (t *Timeline) Because(q *Question, o Options) string {
	if q.Last == nil {
		return ""
	}
	s := t.shownText(&o, q.answered, "because", &q.Last.Because)
	if s.none && s.note != "" {
		return "(" + s.note + ")"
	}
	return console.OneLine(s.full(), maxReason)
}

// maxReason bounds why a call was refused, in columns.
const maxReason = 1 << 10

// denied reports whether the policy refused the call.
func (c *Call) denied() bool { return c.Verdict != nil && c.Verdict.Decision == "deny" }

// refused reports whether toolcell refused the call and says why in its error, such as that there is no
// such tool, or that nobody can be asked.
func (c *Call) refused() bool {
	return c.Question == nil && !c.denied() && c.End != nil && c.End.Outcome == record.Refused
}

// wasAsked reports whether the user was asked about the call, or answered earlier, even in another run.
func (c *Call) wasAsked() bool { return c.Question != nil || c.Start != nil && c.Start.Question != "" }

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

	scope    string         // of the approval, which may have been revoked since
	tools    []string       // of its calls
	entry    *history.Entry // in which it is asked
	answered *history.Entry // that of Last
}

// shown is the text that the user was shown.
func (q *Question) shown() *record.Text {
	if ask, ok := q.entry.Body.(*record.Ask); ok {
		return &ask.Shown
	}
	return nil
}

// maxNumbering bounds the parts of Numbering.
const maxNumbering = 20

// Numbering says which calls of the run the numbers in the text of a question about several calls are, such
// as "1-3 are #4-#6, 4 is #9"; "" if it is about one.
func (q *Question) Numbering() string {
	if len(q.Calls) < 2 || slices.Contains(q.Calls, 0) {
		return ""
	}
	var parts []string
	for i := 0; i < len(q.Calls); i++ {
		from := i
		for i+1 < len(q.Calls) && q.Calls[i+1] == q.Calls[i]+1 {
			i++
		}
		if len(parts) == maxNumbering {
			return strings.Join(parts, ", ") + " and so on"
		}
		if from == i {
			parts = append(parts, fmt.Sprintf("%d is #%d", i+1, q.Calls[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d are #%d-#%d", from+1, i+1, q.Calls[from], q.Calls[i]))
		}
	}
	return strings.Join(parts, ", ")
}

// place says which number a call of the run has in the text of the question, "" if it has none there.
func (q *Question) place(call int) string {
	at := slices.Index(q.Calls, call)
	if len(q.Calls) < 2 || call == 0 || at < 0 {
		return ""
	}
	return fmt.Sprintf(", call %d of %d", at+1, len(q.Calls))
}

// Answer says in words what became of the question, and how.
func (q *Question) Answer() string { return q.answerTo(0) }

// answerTo is Answer for one of its calls.
func (q *Question) answerTo(call int) string {
	a := q.Last
	if a == nil {
		return "the user was asked, and there is no answer (" + q.ID + q.place(call) + ")"
	}
	said := map[string]string{
		"approved": "allowed by the user", "denied": "denied by the user", "stopped": "denied by the user, who stopped the run",
		"expired": "no answer came in time", "ended": "the run ended before an answer", "answered": "answered by the user",
		"revoked": "allowed by the user, and taken back later",
	}[a.State]
	said = cmp.Or(said, a.State)
	others := ""
	if call > 0 && len(a.Allowed) > 0 && !slices.Contains(a.Allowed, call) {
		said, others = "denied by the user", ", who allowed other calls"
	}
	if how := HowAnswered(a); how != "" {
		said += " " + how
	}
	said += others + scopes[a.Scope]
	if a.Waited > 0 {
		said += ", after " + Took(a.Waited)
	}
	return said + " (" + q.ID + q.place(call) + ")"
}

// scopes say how far approvals go, by consent.Choice.
var scopes = map[string]string{
	"run": ", until the run ends", "reads": ", and the tool counts as only reading",
	"connection": ", until the client disconnects", "connection-same": ", with these arguments until the client disconnects",
	"connection-reads": ", with all that only reads and has the same reasons until the client disconnects",
}

// remark says why the answer is not clearly a person's, "" if it is.
func (q *Question) remark() string {
	if q.Last == nil {
		return ""
	}
	return q.Last.Remark
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
