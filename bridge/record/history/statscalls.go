package history

import (
	"bytes"

	"github.com/toolcell/toolcell/bridge/record"
)

// runCalls are the calls of a run that were seen.
type runCalls struct {
	calls  map[int64]callSeen
	out    int // that went out
	writes int // of them
}

type callSeen struct{ writes, ended bool }

func (s *stats) takeEnd(e *scanned, run *runCalls) {
	call := e.number(`"call":`)
	seen, started := run.calls[call]
	if seen.ended {
		return
	}
	refused := string(e.text(`"outcome":"`)) == string(record.Refused)
	writes := e.writes()
	if started {
		writes = seen.writes
	}
	run.calls[call] = callSeen{writes: writes, ended: true}
	t := s.tool(e.text(`"server":"`), e.text(`"tool":"`), writes)
	if n := change(started, refused); n != 0 {
		run.count(n, writes)
		t.count(n, writes)
	}
	if t == nil {
		return
	}
	if started {
		t.Unknown--
	}
	t.end(outcomeOf(e.text(`"outcome":"`)), e)
}

// change returns how an end changes the number of calls: nothing was sent after all of one that was
// refused, and one whose start is missing was not counted.
func change(started, refused bool) int {
	switch {
	case started && refused:
		return -1
	case !started && !refused:
		return 1
	}
	return 0
}

// settle adds the calls that are only known from how a run ended.
func (s *stats) settle(e *scanned, run *runCalls) {
	effects := effectsIn(e)
	if bytes.Count(effects, []byte(`{"call":`)) > run.writes {
		for _, done := range decodeEffects(effects) {
			if _, seen := run.calls[int64(done.Call)]; seen {
				continue
			}
			run.calls[int64(done.Call)] = callSeen{ended: true}
			run.count(1, true)
			if t := s.tool([]byte(done.Server), []byte(done.Tool), true); t != nil {
				t.count(1, true)
				t.end(done.Outcome, nil)
				t.Lost++
			}
		}
	}
	if missing := int(e.number(`"calls":`)) - run.out; missing > 0 {
		if t := s.tool([]byte(UnknownServer), nil, false); t != nil {
			t.count(missing, false)
			t.Lost = min(t.Lost+missing, record.MaxNumber)
		}
	}
}

// tool returns that of a call, nil if it is not wanted.
func (s *stats) tool(server, tool []byte, writes bool) *ToolStats {
	if s.filter.Writes && !writes {
		return nil
	}
	key := string(server) + "." + string(tool)
	if t := s.tools[key]; t != nil {
		return t
	}
	if s.filter.Server != "" && string(server) != s.filter.Server || s.filter.Tool != "" && !s.filter.isTool(key) {
		return nil
	}
	t := &ToolStats{Server: string(server), Tool: string(tool)}
	s.tools[key] = t
	return t
}

func (r *runCalls) count(n int, writes bool) {
	r.out += n
	if writes {
		r.writes += n
	}
}

// count adds calls that went out. A nil ToolStats is one that is not wanted.
func (t *ToolStats) count(n int, writes bool) {
	if t == nil {
		return
	}
	t.Calls = min(t.Calls+n, record.MaxNumber)
	if writes {
		t.Writes = min(t.Writes+n, record.MaxNumber)
	}
}

// end takes in how a call ended. The entry is nil if it is missing.
func (t *ToolStats) end(outcome record.Outcome, e *scanned) {
	switch outcome {
	case record.Refused:
		t.Refused++
		return
	case record.ToolError, record.ProtocolError, record.Timeout:
		t.Errors++
	case record.Unknown:
		t.Unknown++
	}
	if e == nil {
		return
	}
	t.Bytes = min(t.Bytes+e.number(`"answer":{"size":`), record.MaxNumber)
	if outcome == record.OK || outcome == record.ToolError || outcome == record.ProtocolError {
		t.durations = append(t.durations, e.number(`"durationUs":`))
	}
}
