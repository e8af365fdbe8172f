package bridge

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy/text"
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
}

// maxApprovalArguments bounds the arguments in a result, in bytes. The model wrote
// them: it needs no more than to know which call it is.
const maxApprovalArguments = 2000

// approvalNeeded is the result of a run that waits.
func approvalNeeded(q *consent.Question) *Result {
	a := &Approval{ID: q.ID, Reason: approvalReason(q), ExpiresAt: q.ExpiresAt.UTC().Truncate(time.Second)}
	about := q.Subject
	switch {
	case q.Form != nil:
		a.Server, a.Tool = q.Form.Server, q.Form.Tool
		about = fmt.Sprintf("what server %q asks during %s.%s", q.Form.Server, q.Form.Server, text.Printable(q.Form.Tool, 80))
	case len(q.Calls) > 0:
		c := q.Calls[0]
		a.Server, a.Tool, a.MoreCalls = c.Server, c.Tool, len(q.Calls)-1
		if len(c.Arguments) <= maxApprovalArguments {
			a.Arguments = c.Arguments
		}
		about = fmt.Sprintf("%s.%s", c.Server, text.Printable(c.Tool, 80))
		if a.MoreCalls > 0 {
			about += fmt.Sprintf(" and %s", text.Plural(a.MoreCalls, "more call"))
		}
	}
	r := &Result{Status: StatusApproval, Approval: a}
	r.Summary = fmt.Sprintf("the user has to decide about %s, and the run stands still: tell the user to run `toolcell approvals` in a terminal, then call run_python with code=\"\" and session=%q", about, q.ID)
	return r
}

// approvalReason says in a line why it is asked.
func approvalReason(q *consent.Question) string {
	reasons := q.Reasons
	switch {
	case q.Form != nil:
		return "the server asks for input"
	case len(q.Calls) > 0:
		reasons = q.Calls[0].Reasons
	}
	return text.Bound(strings.Join(reasons, "; "), 500)
}

// lines writes an approval for a reader.
func (a *Approval) lines() (lines []string) {
	if a.Reason != "" {
		lines = append(lines, "reason: "+a.Reason)
	}
	if len(a.Arguments) > 0 {
		lines = append(lines, "arguments: "+text.Bound(string(a.Arguments), 500))
	}
	return append(lines, "expires: "+a.ExpiresAt.Format(time.RFC3339))
}
