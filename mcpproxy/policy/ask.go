package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/mcpproxy/policy/condition"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

// An Ask is the error of something that may be done only if the user allows it.
type Ask struct {
	Server, Alias string          // of the server
	Tool          string          // its name; without one it is something else of the server
	Reasons       []string        // each one line, which names the rule
	Arguments     json.RawMessage // of the call, exactly as they will be sent
	Once          bool            // only this one call can be allowed, not the tool for the rest of the run
	Unpinned      bool            // a reason is that the tool's definition is not the one that is pinned
	ReadsOnly     bool            // it is known to only read
	Identity      string          // that of Call: another entry or definition is another thing to ask
	// Hint is the Digest of a tool's definition that says it only reads, which the user may
	// accept in the same answer; empty if there is nothing to accept.
	Hint string
}

// Same reports whether two are about the same call, for the same reasons.
func (a *Ask) Same(b *Ask) bool {
	return a.Server == b.Server && a.Tool == b.Tool && a.Once == b.Once && a.Unpinned == b.Unpinned && a.Identity == b.Identity &&
		slices.Equal(a.Reasons, b.Reasons) && bytes.Equal(a.Arguments, b.Arguments)
}

func (a *Ask) Error() string {
	what := fmt.Sprintf("using server %q", a.Server)
	if a.Tool != "" {
		what = fmt.Sprintf("calling %q of server %q", a.Tool, a.Server)
	}
	return fmt.Sprintf("%s needs the user's consent: %s", what, strings.Join(a.Reasons, "; "))
}

// A RecordMode says what the record of runs keeps of the values of a server.
type RecordMode string

// The modes.
const (
	RecordNone      RecordMode = "none"
	RecordArguments RecordMode = "arguments" // what code sends, and not what the server answers
	RecordAll       RecordMode = "all"
)

// A PinMode says what happens when a server changes the definition of a tool.
type PinMode string

// Modes of pins.
const (
	PinsWarn   PinMode = "warn" // the default
	PinsAsk    PinMode = "ask"
	PinsRefuse PinMode = "refuse"
)

// An askRule says which tools of a section's servers the user is asked about.
type askRule struct {
	writes bool        // all that their server does not mark as reading only
	tools  []rule.Glob // else these
}

// rule returns the rule that asks about a tool, as the file has it. Resources and prompts are
// asked about if all tools are.
func (a askRule) rule(t Tool) (text string, ok bool) {
	var g rule.Glob
	switch {
	case a.writes:
		return `ask = "writes"`, t.Name != "" && !t.ReadOnly
	case t.Name != "":
		g, ok = firstMatch(a.tools, t)
	default:
		if i := slices.IndexFunc(a.tools, rule.Glob.IsEverything); i >= 0 {
			g, ok = a.tools[i], true
		}
	}
	return fmt.Sprintf("ask = %q", g), ok
}

// ask returns what the user has to be asked before a call goes out, or nil. Rules add
// up over all sections, as those of deny do.
func (r *rules) ask(ctx context.Context, c Call) *Ask {
	once := len(c.Reasons) > 0
	var why rule.Reasons
	for _, reason := range c.Reasons {
		why.Add(reason)
	}
	unpinned := false
	if sec, mode := r.pins(c.Server); c.Changed != "" && mode == PinsAsk {
		unpinned = true
		why.Add(r.rule(sec, `pins = "ask"`) + ": " + c.Changed)
	}
	hint := ""
	for _, sec := range r.sectionsFor(c.Server) {
		if rule, ok := sec.Ask.rule(c.Tool); ok {
			reason := r.rule(sec.name, rule)
			if sec.Ask.writes && c.Tool.Unaccepted != "" {
				unpinned = true
				reason += ": " + c.Tool.Unaccepted
				if c.Tool.Acceptable {
					hint = c.Tool.Digest
				}
			}
			why.Add(reason)
		}
		for _, ts := range sec.tools {
			if !c.Tool.isMeantBy(ts.tools) {
				continue
			}
			for _, reason := range ts.reasons(ctx, c.Arguments) {
				once = true
				why.Add(r.rule(ts.whenName(), reason))
			}
		}
	}
	if len(why) == 0 {
		return nil
	}
	return &Ask{
		Server: c.Server.Name, Alias: c.Server.Alias, Tool: c.Tool.Name, Reasons: why, Arguments: c.Arguments, Once: once, Unpinned: unpinned,
		Identity: c.Identity, Hint: hint,
	}
}

// reasons returns the reasons to ask about a call with these arguments, by the conditions of a
// tool. Some may be missing if ctx has ended.
func (ts toolSection) reasons(ctx context.Context, arguments json.RawMessage) (all []string) {
	if len(ts.When) == 0 {
		return nil
	}
	// The forms of a text take much memory, but only of a short one.
	release, err := memory.Take(ctx, min(len(arguments), condition.MaxWritten), memory.Conditions)
	if err != nil {
		return nil
	}
	defer release()
	for _, w := range ts.When {
		if reason, asks := w.Check(ctx, arguments); asks {
			all = append(all, reason)
		}
	}
	return all
}

// allowedUnasked decides by the section that says most about the server.
func (r *rules) allowedUnasked(s Server, t Tool) bool {
	listed := false
	for _, sec := range r.sections {
		if !sec.about(s) && (s.Name != "" || !sec.isDefault()) {
			continue
		}
		if sec.UnaskedAllow != nil && !listed {
			if _, ok := firstMatch(sec.UnaskedAllow, t); ok {
				return true
			}
			listed = true
		}
		if sec.Unasked != "" {
			return sec.Unasked == "allow"
		}
	}
	return false
}

// asks reports whether some rule can lead to a question.
func (r *rules) asks() bool {
	private, open := false, false
	for _, sec := range r.sections {
		if sec.asks() || sec.Pins == PinsAsk {
			return true
		}
		private = private || sec.Private != nil && *sec.Private
		open = open || sec.Open != nil && *sec.Open
	}
	return private && open || r.network.Asks() || r.packages.Asks()
}

// asks reports whether the user may be asked about tools of the section's servers.
func (sec *section) asks() bool {
	return sec.Ask.writes || len(sec.Ask.tools) > 0 || slices.ContainsFunc(sec.tools, func(ts toolSection) bool { return len(ts.When) > 0 })
}

// flow decides each by the section that says most about the server.
func (r *rules) flow(s Server) (private, open bool) {
	if sec := r.first(s, func(sec *section) bool { return sec.Private != nil }); sec != nil {
		private = *sec.Private
	}
	if sec := r.first(s, func(sec *section) bool { return sec.Open != nil }); sec != nil {
		open = *sec.Open
	}
	return private, open
}

// record is decided by the section that says most about the server. Of a private one nothing is kept
// unless a section says so that is not about all servers.
func (r *rules) record(s Server) RecordMode {
	private, _ := r.flow(s)
	says := func(sec *section) bool { return sec.Record != "" && !(private && sec.servers.IsEverything()) }
	if sec := r.first(s, says); sec != nil {
		return sec.Record
	}
	if private {
		return RecordNone
	}
	return ""
}

// goesByDefinitions is Run.GoesByDefinitions. Each rule that leads to a question counts, since the
// user allows a call of a tool as it is defined.
func (r *rules) goesByDefinitions(s Server) bool {
	for _, sec := range r.sectionsFor(s) {
		if sec.asks() || sec.ReadOnly != nil && *sec.ReadOnly {
			return true
		}
	}
	private, open := r.flow(s)
	_, mode := r.pins(s)
	return private || open || mode != PinsWarn
}

// pins is decided by the section that says most about the server.
func (r *rules) pins(s Server) (name string, mode PinMode) {
	if sec := r.first(s, func(sec *section) bool { return sec.Pins != "" }); sec != nil {
		return sec.name, sec.Pins
	}
	return "", PinsWarn
}

// checkPin refuses a call of a tool whose definition is not the one that is pinned, if
// the section about its server says so.
func (r *rules) checkPin(c Call) error {
	if c.Changed == "" {
		return nil
	}
	if sec, mode := r.pins(c.Server); mode == PinsRefuse {
		return r.refuse(sec, `pins = "refuse"`, "calling %q of server %q is not allowed: %s", c.Tool.Name, c.Server.Name, c.Changed)
	}
	return nil
}
