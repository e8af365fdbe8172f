package history

import (
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/record"
)

// ToolStats are the calls of one tool.
type ToolStats struct {
	Server  string `json:"server"`
	Tool    string `json:"tool,omitzero"`
	Calls   int    `json:"calls"` // that went out
	Writes  int    `json:"writes,omitzero"`
	Errors  int    `json:"errors,omitzero"`  // tool_error, protocol_error and timeout
	Unknown int    `json:"unknown,omitzero"` // of which no end is known
	Refused int    `json:"refused,omitzero"` // did not go out
	P95     int64  `json:"p95Us,omitzero"`   // microseconds that 95 % of the answered calls took at most
	Bytes   int64  `json:"bytes,omitzero"`   // of all answers
	Tokens  int64  `json:"tokens,omitzero"`  // about what these answers would have taken: a quarter of the bytes

	durations []int64
}

// Stats returns the calls of each tool in runs that fit, those of most calls first.
func (r *Record) Stats(f Filter) ([]ToolStats, error) {
	days, err := r.days()
	if err != nil {
		return nil, err
	}
	s := stats{filter: f, tools: map[string]*ToolStats{}, runs: map[string]map[int64]bool{}}
	if f.Status != "" || f.Writes { // what only the end of a run tells
		s.ids = map[string]bool{}
		for run, err := range r.Runs(f) {
			if err != nil {
				return nil, err
			}
			s.ids[run.ID] = true
		}
	}
	for _, day := range days {
		if !f.From.IsZero() && day < f.From.UTC().Format(record.Day) || !f.To.IsZero() && day > f.To.Add(longestRun).UTC().Format(record.Day) {
			continue
		}
		names, err := r.files(day)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := s.read(r, name); err != nil {
				return nil, err
			}
		}
	}
	return s.result(), nil
}

// stats add up calls, file by file.
type stats struct {
	filter Filter
	ids    map[string]bool           // of the runs that fit; nil if their starts tell
	tools  map[string]*ToolStats     // by server and tool
	runs   map[string]map[int64]bool // of the runs that fit: calls without an end, and whether they write
}

func (s *stats) read(r *Record, name string) error {
	f, err := os.Open(r.path(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	for lines := record.NewLines(f); ; {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if line.Long {
			r.skipped.Add(1)
		} else if e, ok := scan(line.Text); ok {
			s.take(&e)
		}
	}
}

func (s *stats) take(e *scanned) {
	if e.kind == record.KindRunStart {
		run := &Run{Start: e.time(), Client: record.Client{Name: string(e.text(`"client":{"name":"`))}, Command: string(e.text(`"command":"`))}
		wanted := Filter{From: s.filter.From, To: s.filter.To, Client: s.filter.Client}
		if wanted.fits(run) && (s.ids == nil || s.ids[string(e.run)]) {
			s.runs[string(e.run)] = map[int64]bool{}
		}
		return
	}
	calls := s.runs[string(e.run)]
	if calls == nil {
		return
	}
	switch e.kind {
	case record.KindCallStart:
		if t := s.tool(e); t != nil {
			writes := e.writes()
			t.start(writes)
			calls[e.number(`"call":`)] = writes
		}
	case record.KindCallEnd:
		call := e.number(`"call":`)
		if t := s.tool(e); t != nil {
			writes, started := calls[call]
			t.end(e, started, writes)
			delete(calls, call)
		}
	case record.KindRunEnd:
		delete(s.runs, string(e.run))
	}
}

// tool returns that of a call, nil if it is not wanted.
func (s *stats) tool(e *scanned) *ToolStats {
	server, tool := e.text(`"server":"`), e.text(`"tool":"`)
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

// start takes in a call that goes out. It is unknown until it ends.
func (t *ToolStats) start(writes bool) {
	t.Calls++
	t.Unknown++
	if writes {
		t.Writes++
	}
}

func (t *ToolStats) end(e *scanned, started, writes bool) {
	outcome := outcomeOf(e.text(`"outcome":"`))
	if started {
		t.Unknown--
	}
	switch outcome {
	case record.Refused:
		t.Refused++
		if started {
			t.Calls--
			if writes {
				t.Writes--
			}
		}
		return
	case record.ToolError, record.ProtocolError, record.Timeout:
		t.Errors++
	case record.Unknown:
		t.Unknown++
	}
	t.Bytes += e.number(`"answer":{"size":`)
	if outcome == record.OK || outcome == record.ToolError || outcome == record.ProtocolError {
		t.durations = append(t.durations, e.number(`"durationUs":`))
	}
}

func (s *stats) result() (all []ToolStats) {
	for _, t := range s.tools {
		slices.Sort(t.durations)
		if n := len(t.durations); n > 0 {
			t.P95 = t.durations[(n*95+99)/100-1]
		}
		t.durations = nil
		t.Tokens = (t.Bytes + 3) / 4
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b ToolStats) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Server, b.Server), strings.Compare(a.Tool, b.Tool))
	})
	return all
}
