// Package rules says what the rules of the user's policy did, and would do: which of them decides each
// call on record, and what a further rule would change. It writes nothing, asks nobody and counts no
// call.
//
// A call is judged by what the record has of it: its tool, whether it may have changed something, and
// its arguments if they are kept whole. Limits, changed definitions of tools and what was read from
// private servers earlier are not looked at. What runs and servers wrote is bounded and hostile here:
// it comes into a proposed line quoted, and the line is proposed only if the policy then says just that.
package rules

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// A File is the user's policy as it is now.
type File struct {
	Path    string // where it is, or can be; "" if there is no place for it
	There   bool   // there is a file
	Text    []byte // of the file, if it was understood
	Policy  *policy.Policy
	Remarks []Remark // on what matches no server or tool
	// Refusing are processes that had read a file that is gone: they refuse every call. They are those
	// that are known; there may be others.
	Refusing []string
	// Named returns what policies know of a server and its tool, which may be gone by now.
	Named func(server, tool string) (policy.Server, policy.Tool)
}

// A Remark is on the whole file.
type Remark struct {
	Text  string
	Wrong bool // it is probably a mistake
}

// A Decision is what a policy says of a call.
type Decision string

// The decisions.
const (
	Allowed Decision = "allowed"
	Asked   Decision = "asked"
	Denied  Decision = "denied"
	Unknown Decision = "unknown" // it goes by arguments that are not there
)

// A Judgement is a decision with the rules that lead to it.
type Judgement struct {
	Decision Decision
	Reasons  []string // as policies name rules; none if the call is allowed since no rule is about it
}

// A judge decides on calls by a policy as it was at the beginning.
type judge struct {
	enforcer    *policy.Enforcer
	named       func(server, tool string) (policy.Server, policy.Tool)
	byArguments []policy.Rule
}

func newJudge(p *policy.Policy, named func(server, tool string) (policy.Server, policy.Tool)) *judge {
	j := &judge{enforcer: p.NewEnforcer(), named: named}
	for _, sec := range p.Sections() {
		for _, r := range sec.Rules {
			if r.ByArguments() {
				j.byArguments = append(j.byArguments, r)
			}
		}
	}
	return j
}

// call returns a call as policies see it.
func (j *judge) call(c *Call) policy.Call {
	server, tool := j.named(c.Server, c.Tool)
	if !c.OfTool() {
		return policy.Call{Server: server}
	}
	tool.ReadOnly = !c.Writes
	return policy.Call{Server: server, Tool: tool, Arguments: c.Arguments}
}

// looksAtArguments reports whether what becomes of a call may depend on its arguments.
func (j *judge) looksAtArguments(c *Call) bool {
	call := j.call(c)
	return c.OfTool() && j.enforcer.ByArguments(call.Server, call.Tool)
}

// of decides on a call.
func (j *judge) of(ctx context.Context, c *Call) Judgement {
	if c.Partial {
		return Judgement{Decision: Unknown}
	}
	call := j.call(c)
	ask, err := j.enforcer.Check(ctx, call)
	if denied, ok := errors.AsType[*policy.DeniedError](err); ok {
		return Judgement{Denied, []string{denied.Error()}}
	} else if err != nil {
		return Judgement{Decision: Unknown}
	}
	if ask == nil {
		if by := j.enforcer.AllowedBy(call.Server, call.Tool); by != "" {
			return Judgement{Allowed, []string{by}}
		}
		return Judgement{Decision: Allowed}
	}
	reasons := ask.Reasons
	if c.Arguments == nil { // conditions ask whenever they see none
		reasons = slices.DeleteFunc(slices.Clone(reasons), func(reason string) bool {
			return slices.ContainsFunc(j.byArguments, func(r policy.Rule) bool { return r.Gives(reason) })
		})
		if len(reasons) == 0 {
			return Judgement{Decision: Unknown}
		}
	}
	return Judgement{Asked, reasons}
}

// noArguments are those of a call that was made without any.
var noArguments = json.RawMessage("{}")
