package history

import (
	"cmp"
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
	Lost    int    `json:"lost,omitzero"`    // of the calls those without an entry: how their run ended tells of them
	P95     int64  `json:"p95Us,omitzero"`   // microseconds that 95 % of the answered calls took at most
	Bytes   int64  `json:"bytes,omitzero"`   // of all answers
	Tokens  int64  `json:"tokens,omitzero"`  // about what these answers would have taken: a quarter of the bytes

	durations []int64
}

// UnknownServer stands in a ToolStats for calls of which there is no entry, only their number.
const UnknownServer = "(not on record)"

// Stats returns the calls of each tool in runs that fit, those of most calls first. Filtered by
// Writes, it leaves out the calls that only read.
func (r *Record) Stats(f Filter) ([]ToolStats, error) {
	s, err := r.stats(f, f.Status != "" || f.Writes) // what only the end of a run tells
	if err == nil && s.stray {
		s, err = r.stats(f, true)
	}
	if err != nil {
		return nil, err
	}
	return s.result(), nil
}

// stats reads all files. Which runs fit their starts tell, or a list of them.
func (r *Record) stats(f Filter, listed bool) (*stats, error) {
	days, err := r.days()
	if err != nil {
		return nil, err
	}
	s := &stats{filter: f, tools: map[string]*ToolStats{}, runs: map[string]*runCalls{}, others: map[string]bool{}}
	if listed {
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
		for _, name := range slices.Backward(names) { // the first of those that commands share is the last
			if err := s.read(r, name); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
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
