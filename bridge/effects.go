package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/bridge/toon"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// Bounds on what a result says of the calls that went out.
const (
	maxListedCalls  = 50
	maxArguments    = 120 // characters of a call's arguments
	maxArgument     = 48  // of one of them
	maxArgumentScan = 64 << 10
)

// What is known of a call that went out.
const (
	callDone    = "done"    // the server answered
	callUnknown = "unknown" // it did not, and may have done it
	callFailed  = "failed"  // it answered that it could not; never listed
)

// A CallRecord is a call that a run sent to a server before it ended badly.
type CallRecord struct {
	Server    string `json:"server"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"` // shortened
	Outcome   string `json:"outcome"`   // done or unknown
}

// effects are the calls of one run that may have changed something, so that
// whoever makes it again after a failure knows what not to repeat.
type effects struct {
	mu       sync.Mutex
	calls    []*CallRecord  // in the order in which they went out
	over     map[string]int // how many have ended, by outcome
	total    int            // that went out, but for those that failed
	readOnly int
}

// call makes a call and keeps a record of it, which begins before the call
// goes out: whatever ends the run then, the call is not forgotten.
func (e *effects) call(ctx context.Context, up Upstreams, r mcpproxy.CallRequest) (json.RawMessage, error) {
	var rec *CallRecord
	readOnly := false
	r.Sent = func(t catalog.Tool) {
		if rec != nil {
			return // it goes out once more
		}
		rec = &CallRecord{Server: r.Server, Tool: t.Name, Arguments: shortArguments(r.Arguments), Outcome: callUnknown}
		if readOnly = t.ReadOnly(); !readOnly {
			e.begin(rec)
		}
	}
	result, err := up.Call(ctx, r)
	switch how := outcomeOf(result, err); {
	case rec == nil: // it never went out
	case !readOnly:
		e.end(rec, how)
	case how != callFailed:
		e.mu.Lock()
		e.readOnly++
		e.mu.Unlock()
	}
	return result.JSON, err
}

func (e *effects) begin(rec *CallRecord) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.total++
	e.calls = append(e.calls, rec)
}

// end notes how a call went. Of those that have ended, no more are kept than
// will be listed.
func (e *effects) end(rec *CallRecord, how string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over == nil {
		e.over = map[string]int{}
	}
	e.over[how]++
	rec.Outcome = how
	if how == callFailed {
		e.total--
	}
	if how == callFailed || e.over[how] > maxListedCalls {
		e.calls = slices.DeleteFunc(e.calls, func(c *CallRecord) bool { return c == rec })
	}
}

// outcomeOf says what the answer to a call means for its effect.
func outcomeOf(result mcpproxy.CallResult, err error) string {
	var refused *mcpproxy.RemoteError
	switch {
	case errors.As(err, &refused):
		return callFailed
	case err != nil:
		return callUnknown
	case result.IsError:
		return callFailed
	}
	return callDone
}

// tell puts the calls into the result of a run that ended badly. Where there
// is no room for all, those whose outcome is unknown go first.
func (e *effects) tell(r *Result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var done, unknown []CallRecord
	for _, c := range e.calls {
		if c.Outcome == callDone {
			done = append(done, *c)
		} else {
			unknown = append(unknown, *c)
		}
	}
	unknown = unknown[:min(len(unknown), maxListedCalls)]
	done = done[:min(len(done), maxListedCalls-len(unknown))]
	r.Calls = slices.Concat(done, unknown)
	r.CallsLeftOut = e.total - len(r.Calls)
	r.ReadOnlyCalls = e.readOnly
}

// CallLines says for a reader what the calls of a failed run have done, one
// line each and none if there were no calls.
func (r *Result) CallLines() []string {
	var out []string
	for _, kind := range []struct{ outcome, head string }{
		{callDone, "calls that have taken effect; a retry should not repeat what they changed:"},
		{callUnknown, "calls without an answer, which may have taken effect:"},
	} {
		head := kind.head
		for _, c := range r.Calls {
			if c.Outcome != kind.outcome {
				continue
			}
			if head != "" {
				out, head = append(out, head), ""
			}
			out = append(out, "  "+c.Server+"."+c.Tool+" "+c.Arguments)
		}
	}
	if r.CallsLeftOut > 0 {
		out = append(out, fmt.Sprintf("and %d more such calls", r.CallsLeftOut))
	}
	if r.ReadOnlyCalls > 0 {
		out = append(out, fmt.Sprintf("besides, %s of read-only tools", text.Plural(r.ReadOnlyCalls, "call")))
	}
	return out
}

// callRows are the calls with their columns in the order in which one reads them.
func (r *Result) callRows() []any {
	rows := make([]any, len(r.Calls))
	for i, c := range r.Calls {
		rows[i] = toon.Object{{Key: "server", Value: c.Server}, {Key: "tool", Value: c.Tool}, {Key: "arguments", Value: c.Arguments}, {Key: "outcome", Value: c.Outcome}}
	}
	return rows
}

// shortArguments writes the arguments of a call on one short line. Each value
// is cut by itself, so that a long text does not hide what comes after it.
func shortArguments(raw json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(raw[:min(len(raw), maxArgumentScan)]))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return "{}"
	}
	var b strings.Builder
	b.WriteByte('{')
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			break
		}
		if b.Len() > 1 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q: ", key)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil { // more than is looked at
			rest := raw[min(int(dec.InputOffset()), len(raw)):]
			b.WriteString(cut(strings.TrimLeft(string(rest[:min(len(rest), 4*maxArgument)]), ": \t\r\n"), maxArgument) + ", …")
			break
		}
		b.WriteString(cut(string(value), maxArgument))
		if b.Len() > 4*maxArguments {
			break
		}
	}
	b.WriteByte('}')
	return cut(b.String(), maxArguments)
}

// cut shortens text to n characters on one line.
func cut(s string, n int) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
