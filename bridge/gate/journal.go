package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// A journaled is a request on its way through the gate, as the record has it. An entry that cannot be
// written is counted (record.Run.Lost); the request goes on.
type journaled struct {
	run     *record.Run
	number  int // of the call
	line    int // of the code
	method  string
	server  string
	tool    string
	writes  bool
	keep    record.Keep
	private bool
	known   bool // the server is one

	question string // by which the user allowed it earlier

	started time.Time // zero until it is about to leave
	ended   bool
}

// journal begins with a request.
func (g *Gate) journal(r Request) *journaled {
	return &journaled{run: g.o.Record, number: g.o.Record.NextCall(), line: max(0, r.Line), method: r.Method, server: r.Server, tool: r.Name}
}

// maxRecorded bounds what Recorded returns, as entries bound their lists.
const maxRecorded = 100

// Recorded returns the calls on record that may have changed something, and how many calls left.
func (g *Gate) Recorded() (writes []record.Done, calls int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.recorded), g.sentOut
}

// found notes the server that a request is for, and what may be kept of the values.
func (g *Gate) found(j *journaled, s config.Server) {
	if g.o.Record == nil {
		return
	}
	j.server, j.known, j.keep = s.Name, true, record.Keep(g.o.Policy.Record(policyServer(s)))
	j.private, _ = g.o.Policy.Flow(policyServer(s))
	if k := g.Keeping(); k.Keep != "" {
		j.private, j.keep = k.Private, k.Keep
	}
}

// A Keeping says whether texts may have something of private servers, and what the record may keep of
// them: nothing, or what it keeps by default ("").
type Keeping struct {
	Private bool
	Keep    record.Keep
}

// And is what may be kept of texts that may have something of both.
func (k Keeping) And(other Keeping) Keeping {
	return Keeping{k.Private || other.Private, cmp.Or(k.Keep, other.Keep)}
}

// PrivateGrant returns what the record may keep of a run that may use these servers: nothing, neither code
// nor arguments nor output, if some are private, since code carries values from one server to another. The
// sections of all private ones may let it be kept.
func PrivateGrant(up *mcpproxy.Proxy, rules *policy.Enforcer, servers iter.Seq[string]) (k Keeping) {
	for name := range servers {
		s, err := up.Lookup(name)
		if err != nil {
			continue
		}
		if private, _ := rules.Flow(policyServer(s)); private {
			k.Private = true
			if rules.Record(policyServer(s)) == policy.RecordNone {
				k.Keep = record.KeepNone
			}
		}
	}
	return k
}

// keepingOf is what the record may keep of what was read from a private server. Of one that may be used
// PrivateGrant has told it.
func (g *Gate) keepingOf(read string) Keeping {
	if strings.HasPrefix(read, "/") {
		return Keeping{} // the client's folder is the user's own, and the client sees it anyway
	}
	for name := range g.o.Granted {
		if strings.HasPrefix(read, name+".") {
			return Keeping{Private: true}
		}
	}
	return Keeping{Private: true, Keep: record.KeepNone}
}

// Keeping returns what the record may keep of the run's texts. The code may have something of private
// servers from them, from its session, and from tools that earlier runs saved.
func (g *Gate) Keeping() Keeping {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.keeping
}

// again begins anew with a request that has not left.
func (j *journaled) again() {
	j.number, j.started, j.ended = j.run.NextCall(), time.Time{}, false
}

// decided records a verdict that does not simply allow.
func (j *journaled) decided(e Effect, v Verdict) {
	j.tool, j.writes, j.question = e.Facts.Name, e.Facts.Writes(), v.question
	line := record.Verdict{Call: j.number, Effect: j.method, Server: j.server, Tool: j.tool, Line: j.line, Writes: j.writes, Private: j.private, Keep: j.keep}
	switch {
	case v.Ask != nil:
		line.Decision, line.Reasons, line.Arguments = "ask", v.Ask.Reasons, record.TextOf(e.Args)
	case v.Planned:
		line.Decision, line.Arguments = "plan", record.TextOf(e.Args)
	case !v.Allowed:
		line.Decision, line.Arguments = "deny", record.TextOf(e.Args)
		line.Reasons = []string{consent.WithoutWords(v.why()).Error()}
	default:
		return
	}
	_ = j.run.Append(line)
}

// start records that a request is about to leave, and once whether its tool has changed. The error is
// one of a record without which nothing may leave.
func (g *Gate) start(j *journaled, e Effect) error {
	if j.run == nil {
		j.started = time.Now()
		return nil
	}
	if e.Facts.Method == mcpproxy.CallTool && e.Facts.Tool.Changed() != "" && g.notePin("changed", j.server, j.tool) {
		_ = j.run.Append(record.Pin{Server: j.server, Tool: j.tool, Change: "changed", Now: e.Facts.Tool.Digest})
	}
	err := j.run.Append(record.CallStart{
		Call: j.number, Effect: j.method, Server: j.server, Where: e.Facts.Unusual(), Tool: j.tool, Line: j.line, Entry: e.Facts.Entry, Definition: e.Facts.Tool.Digest,
		Arguments: record.TextOf(e.Args), Writes: j.writes, Private: j.private, By: string(e.word()), Question: j.question, Keep: j.keep,
	})
	if err != nil && g.o.RecordRequired {
		return fmt.Errorf("nothing is called without a record, and this call cannot be recorded: %w", err)
	}
	j.started = time.Now()
	return nil
}

// notePin reports whether it is called with a change and its tool for the first time.
func (g *Gate) notePin(what ...string) bool {
	pin := strings.Join(what, "\x00")
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.Contains(g.pins, pin) {
		return false
	}
	g.pins = append(g.pins, pin)
	return true
}

// end records what became of a request that may have left.
func (g *Gate) end(j *journaled, result mcpproxy.CallResult, err error, sent bool) {
	if j.ended || j.run == nil {
		return
	}
	j.ended = true
	outcome := recordedOutcome(result, err, sent)
	g.mu.Lock()
	if sent {
		g.sentOut++
	}
	if sent && j.writes && len(g.recorded) < maxRecorded {
		g.recorded = append(g.recorded, record.Done{Call: j.number, Server: j.server, Tool: j.tool, Outcome: outcome})
	}
	g.mu.Unlock()
	line := record.CallEnd{
		Call: j.number, Line: j.line, Server: j.server, Tool: j.tool, Writes: j.writes, Duration: time.Since(j.started).Microseconds(),
		Outcome: outcome, Answer: record.TextOf(result.JSON), Private: j.private, Keep: j.keep,
	}
	if err != nil {
		line.Error, line.Said = record.TextOf(err.Error()), mcpproxy.SaidByServer(err)
	}
	if remote, ok := errors.AsType[*mcpproxy.RemoteError](err); ok {
		line.Code = int(remote.Code)
	}
	_ = j.run.Append(line)
}

// close records a request that ends without leaving, by an error.
func (g *Gate) close(j *journaled, err error) {
	if err == nil || j.ended || j.run == nil {
		return
	}
	if !j.started.IsZero() { // it has panicked
		g.end(j, mcpproxy.CallResult{}, err, true)
		return
	}
	_ = j.run.Append(record.CallEnd{
		Call: j.number, Line: j.line, Server: j.server, Tool: j.tool, Writes: j.writes, Outcome: record.Refused,
		Error: record.TextOf(err.Error()), Private: j.private, Keep: j.keep, NoServer: !j.known,
	})
}

// recordedOutcome says how a request ended. One that was sent and was not answered may have taken
// effect; that the time was up or the run was cancelled says why there is no answer.
func recordedOutcome(result mcpproxy.CallResult, err error, sent bool) record.Outcome {
	remote, answered := errors.AsType[*mcpproxy.RemoteError](err)
	switch {
	case !sent:
		return record.Refused
	case answered && remote != nil:
		return record.ProtocolError
	case errors.Is(err, context.DeadlineExceeded):
		return record.Timeout
	case errors.Is(err, context.Canceled):
		return record.Cancelled
	case err != nil:
		return record.Unknown
	case result.IsError:
		return record.ToolError
	}
	return record.OK
}

// journalGrant records what is decided of something that is to be there before code starts.
func (g *Gate) journalGrant(subject string, reasons []string, err error) {
	line := record.Verdict{Effect: "grant", Tool: subject, Decision: "allow", Reasons: reasons}
	if err != nil {
		line.Decision, line.Reasons = "deny", []string{consent.WithoutWords(err).Error()}
	}
	_ = g.o.Record.Append(line)
}

// RecordAsk records a question to the user: when it is asked, and when it is decided.
func (g *Gate) RecordAsk(q consent.Question) error {
	if g.o.Record == nil {
		return nil
	}
	line := askEntry(q)
	line.Keep = g.Keeping().Keep
	servers := []string{line.Server}
	for _, c := range q.Calls {
		servers = append(servers, c.Server)
	}
	for _, name := range servers {
		if s, err := g.o.Upstreams.Lookup(name); err == nil && g.o.Policy.Record(policyServer(s)) == policy.RecordNone {
			line.Keep = record.KeepNone
		}
	}
	return g.o.Record.Append(line)
}

// RecordRevoked records that an approval was taken back after its run had ended. The entry has nothing
// of the run that the policy could want to be left out.
func RecordRevoked(on *record.Run, q consent.Question) error { return on.Append(askEntry(q)) }

// askEntry is a question as the record has it.
func askEntry(q consent.Question) record.Ask {
	pid, terminal := q.From()
	line := record.Ask{Question: q.ID, State: string(q.State), About: "call"}
	for _, c := range q.Calls {
		line.Calls = append(line.Calls, c.Recorded)
	}
	switch {
	case q.Form != nil:
		line.About, line.Server, line.Tool = "input", q.Form.Server, q.Form.Tool
	case len(q.Calls) == 0:
		line.About = "before"
	}
	if q.State == consent.Pending {
		line.State, line.Shown = "asked", record.TextOf(q.Text())
		return line
	}
	line.By, line.Client, line.Terminal, line.Remark = q.Answer.By, q.Client, terminal, q.Answer.Remark
	line.Waited = q.DecidedAt.Sub(q.AskedAt).Microseconds()
	if q.Answer.By != "" {
		line.PID = pid
	}
	if q.State == consent.Approved || q.State == consent.Answered {
		line.Scope = string(q.Answer.Choice) + q.Answer.Action
	}
	for _, n := range q.Answer.Calls {
		line.Allowed = append(line.Allowed, q.Calls[n-1].Recorded)
	}
	line.Because = record.TextOf(q.Answer.Because)
	return line
}
