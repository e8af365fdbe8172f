package run

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/internal/text"
)

// An Approval is what a run waits for.
type Approval struct {
	ID        string          `json:"id"` // to come back with, as session
	Server    string          `json:"server,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	MoreCalls int             `json:"moreCalls,omitempty"` // that are asked together with this one
	Reason    string          `json:"reason"`
	ExpiresAt time.Time       `json:"expiresAt"`

	about string // what the user has to decide about
	waits string // what waits for that
	tell  string // what the user can do
}

// maxApprovalArguments bounds the arguments in a result, in bytes. The model wrote
// them: it needs no more than to know which call it is.
const maxApprovalArguments = 2000

func newApproval(q *consent.Question) *Approval {
	a := &Approval{ID: q.ID, ExpiresAt: q.ExpiresAt.UTC().Truncate(time.Second), waits: "the run is paused"}
	a.tell = "to run `toolcell approvals` in a terminal"
	reasons := q.Reasons
	switch {
	case q.Form != nil:
		a.Server, a.Tool = q.Form.Server, q.Form.Tool
		a.about = fmt.Sprintf("what server %q asks during %s.%s", q.Form.Server, q.Form.Server, text.Printable(q.Form.Tool, 80))
		reasons = []string{"the server asks for input"}
		a.tell = "that its form may be shown again, and that `toolcell approvals` in a terminal can refuse it"
	case len(q.Calls) > 0:
		c := q.Calls[0]
		reasons = c.Reasons
		a.Server, a.Tool, a.MoreCalls = c.Server, c.Tool, len(q.Calls)-1
		if len(c.Arguments) <= maxApprovalArguments {
			a.Arguments = c.Arguments
		}
		a.about = fmt.Sprintf("%s.%s", c.Server, text.Printable(c.Tool, 80))
		if a.MoreCalls > 0 {
			a.about += fmt.Sprintf(" and %s", text.Plural(a.MoreCalls, "more call"))
		}
	default: // packages and hosts
		a.about, a.waits = q.Subject, "the code has not started"
	}
	a.Reason = text.Bound(strings.Join(reasons, "; "), 500)
	return a
}

// Summary tells a model what to do.
func (a *Approval) Summary() string {
	return fmt.Sprintf("the user has to decide about %s, and %s: tell the user %s, then call run_python with code=\"\" and session=%q", a.about, a.waits, a.tell, a.ID)
}

// Lines writes an approval for a reader.
func (a *Approval) Lines() (lines []string) {
	if a.Reason != "" {
		lines = append(lines, "reason: "+a.Reason)
	}
	if len(a.Arguments) > 0 {
		lines = append(lines, "arguments: "+text.Bound(string(a.Arguments), 500))
	}
	return append(lines, "expires: "+a.ExpiresAt.Format(time.RFC3339))
}
