// Package inbox lets the user see and answer the questions of `toolcell serve` from
// another process, which is `toolcell approvals` or `toolcell ui`, over a socket in the runtime
// folder. To the latter it also shows what goes on there.
//
// It promises that only processes of the same user or of root are answered, and that
// nothing is approved by a process without a terminal, or by one that a client of toolcell
// has started (see launchers), as far as can be seen. These are obstacles and no boundary: a
// program that runs as the user can do what the user can do (docs/security.md). No
// client of the socket can delay the server or make it hold more than a little memory.
package inbox

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
)

// A Question is one of the questions of a process, as it goes over the socket and as
// `toolcell approvals list --json` prints it.
type Question struct {
	ID  string `json:"id"`
	Run string `json:"run"`
	// Server, Tool and Arguments are of the call, if the question is about one. Tool and
	// Server are also there if all calls have the same.
	Server      string          `json:"server"`
	Tool        string          `json:"tool"`
	Arguments   json.RawMessage `json:"arguments"` // null if there are several calls, or more than maxListed bytes
	Reason      string          `json:"reason"`
	CallsBefore int             `json:"callsBefore"`
	AskedAt     time.Time       `json:"askedAt"`
	ExpiresAt   time.Time       `json:"expiresAt"`
	State       consent.State   `json:"state"`

	Calls   []Call           `json:"calls,omitempty"`   // if there are several
	Tools   []Tool           `json:"tools,omitempty"`   // of the calls, each once
	Subject string           `json:"subject,omitempty"` // what is asked, if not calls
	Message string           `json:"message,omitempty"` // of a server that asks for input
	Choices []consent.Choice `json:"choices,omitempty"` // that may be given
	Choice  consent.Choice   `json:"choice,omitempty"`  // that was given, once it is decided
	By      string           `json:"by,omitempty"`      // how it was given
	Remark  string           `json:"remark,omitempty"`  // why that is not clearly a person's
	Holds   bool             `json:"holds,omitempty"`   // it still allows more than its calls, until it is revoked
	Allowed []int            `json:"allowed,omitempty"` // numbers of the calls that were allowed, from 1 on, if others were denied
	Because string           `json:"because,omitempty"` // what the user says to what is denied

	Text string `json:"text,omitempty"` // the whole question, as the user reads it
}

// A Call is one of several calls of a question.
type Call struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	SHA256    string          `json:"sha256"`
	Reason    string          `json:"reason,omitempty"` // if other calls have others
}

// A Tool is what is known of a tool that is called.
type Tool struct {
	Server      string `json:"server"`
	Tool        string `json:"tool"`
	Writes      bool   `json:"writes"`                // it may change something
	Effect      string `json:"effect,omitempty"`      // that in words, and by whose word
	Description string `json:"description,omitempty"` // the beginning of what the server says of it
}

// maxListed bounds the arguments of one question that are sent with it, in bytes. Its
// text has them whole.
const maxListed = 256 << 10

// row writes a question for the socket.
func row(q consent.Question) Question {
	r := Question{
		ID: q.ID, Run: q.Run, CallsBefore: q.CallsBefore, AskedAt: q.AskedAt, ExpiresAt: q.ExpiresAt,
		State: q.State, Subject: q.Subject, Choice: q.Answer.Choice, By: q.Answer.By, Remark: q.Answer.Remark, Holds: q.Holds,
		Allowed: q.Answer.Calls, Because: q.Answer.Because,
	}
	if q.State == consent.Pending {
		r.Choices = q.Choices()
	}
	reasons := q.Reasons
	size := 0
	for i, c := range q.Calls {
		reasons = appendNew(reasons, c.Reasons)
		size += len(c.Arguments)
		if i == 0 {
			r.Server, r.Tool = c.Server, c.Tool
		}
		if c.Server != r.Server {
			r.Server = ""
		}
		if c.Server != r.Server || c.Tool != r.Tool {
			r.Tool = ""
		}
	}
	for _, t := range q.Tools() {
		r.Tools = append(r.Tools, Tool{t.Server, t.Tool, t.Writes, t.Effect, t.Description})
	}
	r.Reason = strings.Join(reasons, "; ")
	switch {
	case q.Form != nil:
		r.Server, r.Tool, r.Message = q.Form.Server, q.Form.Tool, q.Form.Message
	case len(q.Calls) == 1 && size <= maxListed:
		r.Arguments = q.Calls[0].Arguments
	case len(q.Calls) > 1:
		for _, c := range q.Calls {
			listed := Call{Server: c.Server, Tool: c.Tool, SHA256: c.Digest()}
			if len(reasons) > 1 && !slices.Equal(c.Reasons, reasons) { // of all calls
				listed.Reason = strings.Join(c.Reasons, "; ")
			}
			if size <= maxListed {
				listed.Arguments = c.Arguments
			}
			r.Calls = append(r.Calls, listed)
		}
	}
	return r
}

// appendNew appends the lines that are not there yet.
func appendNew(all, more []string) []string {
	seen := map[string]bool{}
	for _, line := range all {
		seen[line] = true
	}
	all = slices.Clip(all) // not the question's own array
	for _, line := range more {
		if !seen[line] {
			all, seen[line] = append(all, line), true
		}
	}
	return all
}

// The protocol: lines of JSON. A client sends requests, and gets for each any number of
// replies with a question, and then one with End or an error.

// An operation is what a request asks for.
type operation string

const (
	opList      operation = "list"
	opShow      operation = "show"
	opChallenge operation = "challenge" // begins an approval: the reply has a code
	opApprove   operation = "approve"   // with that code, on the same connection
	opDeny      operation = "deny"
	opStop      operation = "stop"
	opRevoke    operation = "revoke"

	// Of an Activity.
	opRunning   operation = "running"
	opEnd       operation = "end" // a run
	opServerLog operation = "serverLog"
	opSandboxes operation = "sandboxes" // the reply is one for each kind
)

type request struct {
	Op   operation      `json:"op"`
	ID   string         `json:"id,omitempty"`
	For  consent.Choice `json:"for,omitempty"`  // of a challenge
	Code string         `json:"code,omitempty"` // of an approval

	Calls   string `json:"calls,omitempty"`   // of a challenge: numbers, as they were typed; all if empty
	Because string `json:"because,omitempty"` // of a denial or a stop
	Page    bool   `json:"page,omitempty"`    // it was answered on the page of toolcell ui
}

type reply struct {
	Question  *Question  `json:"question,omitempty"`
	Running   *Running   `json:"running,omitempty"`
	ServerLog *ServerLog `json:"serverLog,omitempty"`
	Sandboxes *Sandboxes `json:"sandboxes,omitempty"`

	Code   string    `json:"code,omitempty"`
	Calls  []int     `json:"calls,omitempty"`  // of a challenge: numbers of those that it allows, if some were named
	Remark string    `json:"remark,omitempty"` // of a challenge: why it is not clearly a person's
	Error  string    `json:"error,omitempty"`
	Kind   errorKind `json:"kind,omitempty"` // of the error
	End    bool      `json:"end,omitempty"`
}

// An errorKind tells a client which error it is.
type errorKind string

const (
	kindUnknown errorKind = "unknown"
	kindDecided errorKind = "decided"
	kindCode    errorKind = "code"
)

// kindOf returns the kind of an error, or "".
func kindOf(err error) errorKind {
	switch {
	case errors.Is(err, consent.ErrUnknown), errors.Is(err, errNotHere):
		return kindUnknown
	case errors.Is(err, consent.ErrDecided):
		return kindDecided
	case errors.Is(err, ErrCode):
		return kindCode
	}
	return ""
}

// ErrCode is the error of an approval with a wrong code.
var ErrCode = errors.New("this is not the code, so nothing was approved")

// A refusal is an error that came over the socket. It is consent.ErrUnknown, consent.ErrDecided or ErrCode
// if it was so in the server.
type refusal struct {
	text string
	kind errorKind
}

func (r *refusal) Error() string { return r.text }

func (r *refusal) Is(target error) bool {
	return r.kind == kindUnknown && target == consent.ErrUnknown || r.kind == kindDecided && target == consent.ErrDecided || r.kind == kindCode && target == ErrCode
}
