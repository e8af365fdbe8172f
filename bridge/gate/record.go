package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/mcpproxy"
)

// Bounds on what is kept of the calls that went out.
const (
	maxListedCalls  = 50
	maxArguments    = 120 // characters of a call's arguments
	maxArgument     = 48  // of one of them
	maxArgumentScan = 64 << 10
)

// An Outcome is what is known of a call that went out.
type Outcome string

// Outcomes of calls.
const (
	CallDone    Outcome = "done"    // the server answered
	CallUnknown Outcome = "unknown" // it did not, and may have done it
	callFailed  Outcome = "failed"  // it answered that it could not; never listed
	callNotSent Outcome = "not sent"
)

// A CallRecord is a call that a run sent to a server.
type CallRecord struct {
	Server    string  `json:"server"`
	Tool      string  `json:"tool"`
	Arguments string  `json:"arguments"` // shortened
	Outcome   Outcome `json:"outcome"`
}

// A CallLog says what the calls of a run may have changed, so that a retry after
// a failure does not repeat it.
type CallLog struct {
	Calls    []CallRecord // at most 50; those whose outcome is unknown come last, and before others if there is no room
	LeftOut  int          // more such calls
	ReadOnly int          // calls of read-only tools, which are not listed
}

// A callRecorder keeps what is known of the calls of a run.
type callRecorder struct {
	mu       sync.Mutex
	calls    []*entry        // that may have changed something, in the order in which they went out
	ended    map[Outcome]int // how many have ended
	total    int             // that went out, but for those that failed
	readOnly int
	failed   int
}

// An entry is a call on record. It is there before the call goes out: whatever ends the run
// then, the call is not forgotten.
type entry struct {
	CallRecord
	readOnly bool
	call     *mcpproxy.Prepared // nil counts as sent
}

// begin keeps a record of an effect that is about to be sent, nil if it is no call of a tool.
func (c *callRecorder) begin(e Effect, p *mcpproxy.Prepared) *entry {
	if e.Facts.Method != mcpproxy.CallTool {
		return nil
	}
	rec := &entry{CallRecord{Server: e.Facts.Server.Name, Tool: e.Facts.Name, Arguments: shortArguments(e.Bytes), Outcome: CallUnknown}, e.Facts.Tool.ReadsOnly, p}
	c.add(rec)
	return rec
}

func (c *callRecorder) add(rec *entry) {
	if rec.readOnly {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	c.calls = append(c.calls, rec)
}

// end notes the outcome of a call. Of the calls that have ended, no more are kept
// than will be listed.
func (c *callRecorder) end(rec *entry, how Outcome) {
	if rec == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	changedNothing := how == callFailed || how == callNotSent
	if how == callFailed {
		c.failed++
	}
	switch {
	case rec.readOnly && !changedNothing:
		c.readOnly++
		return
	case rec.readOnly:
		return
	case changedNothing:
		c.total--
	}
	rec.Outcome = how
	if c.ended[how]++; changedNothing || c.ended[how] > maxListedCalls {
		c.calls = slices.DeleteFunc(c.calls, func(other *entry) bool { return other == rec })
	}
}

// past returns how many calls have gone out, lines about those that may have changed
// something, and how many more of these there are.
func (c *callRecorder) past() (calls int, effects []string, more int) {
	log := c.log()
	for _, rec := range log.Calls {
		line := rec.Server + "." + rec.Tool + " " + rec.Arguments
		if rec.Outcome == CallUnknown {
			line += " (not answered yet)"
		}
		effects = append(effects, line)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(log.Calls) + log.LeftOut + log.ReadOnly + c.failed, effects, log.LeftOut
}

// outcomeOf says what the answer to a call means for its effect.
func outcomeOf(result mcpproxy.CallResult, err error, sent bool) Outcome {
	var refused *mcpproxy.RemoteError
	switch {
	case !sent:
		return callNotSent
	case errors.As(err, &refused):
		return callFailed
	case err != nil:
		return CallUnknown
	case result.IsError:
		return callFailed
	}
	return CallDone
}

// log returns what is known now.
func (c *callRecorder) log() CallLog {
	c.mu.Lock()
	defer c.mu.Unlock()
	var done, unknown []CallRecord
	waiting := 0 // they have not gone out
	for _, rec := range c.calls {
		switch {
		case rec.Outcome == CallDone:
			done = append(done, rec.CallRecord)
		case rec.call != nil && !rec.call.Sent():
			waiting++
		default:
			unknown = append(unknown, rec.CallRecord)
		}
	}
	unknown = unknown[:min(len(unknown), maxListedCalls)]
	done = done[:min(len(done), maxListedCalls-len(unknown))]
	log := CallLog{Calls: slices.Concat(done, unknown), ReadOnly: c.readOnly}
	log.LeftOut = c.total - waiting - len(log.Calls)
	return log
}

// shortArguments writes the arguments of a call on one short line. Each value is
// cut by itself, so that a long text does not hide what comes after it.
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
			b.WriteString(shorten(strings.TrimLeft(string(rest[:min(len(rest), 4*maxArgument)]), ": \t\r\n"), maxArgument) + ", …")
			break
		}
		b.WriteString(shorten(string(value), maxArgument))
		if b.Len() > 4*maxArguments {
			break
		}
	}
	b.WriteByte('}')
	return shorten(b.String(), maxArguments)
}

// shorten cuts text to n characters on one line.
func shorten(s string, n int) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// CallLog returns the calls that went out to servers and their outcomes.
func (g *Gate) CallLog() CallLog { return g.calls.log() }

// Past returns how many calls the run has made, and lines about those that may have
// changed something.
func (g *Gate) Past() (calls int, effects []string, more int) { return g.calls.past() }
