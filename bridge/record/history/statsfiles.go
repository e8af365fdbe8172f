package history

import (
	"errors"
	"io"
	"os"

	"github.com/toolcell/toolcell/bridge/record"
)

// stats add up calls, file by file.
type stats struct {
	filter Filter
	ids    map[string]bool       // of the runs that fit; nil if their starts tell
	tools  map[string]*ToolStats // by server and tool
	runs   map[string]*runCalls  // of the runs that fit
	others map[string]bool       // runs that do not fit
	stray  bool                  // there are calls of a run whose start was not seen
}

func (s *stats) read(r *Record, name string) error {
	f, err := r.open(name)
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
		} else {
			r.passOver(name, line.Text)
		}
	}
}

func (s *stats) take(e *scanned) {
	if e.kind == record.KindRunStart {
		s.takeStart(e)
	}
	run := s.runOf(e)
	if run == nil {
		return
	}
	switch e.kind {
	case record.KindCallStart:
		writes := e.writes()
		run.calls[e.number(`"call":`)] = callSeen{writes: writes}
		run.count(1, writes)
		if t := s.tool(e.text(`"server":"`), e.text(`"tool":"`), writes); t != nil {
			t.count(1, writes)
			t.Unknown++ // until it ends
		}
	case record.KindCallEnd:
		s.takeEnd(e, run)
	case record.KindRunEnd:
		s.settle(e, run)
		delete(s.runs, string(e.run))
		delete(s.ids, string(e.run))
	}
}

// takeStart looks whether a run is wanted.
func (s *stats) takeStart(e *scanned) {
	run := &Run{Start: e.time(), Client: record.Client{Name: string(e.text(`"client":{"name":"`))}, Command: string(e.text(`"command":"`))}
	wanted := Filter{From: s.filter.From, To: s.filter.To, Client: s.filter.Client}
	switch id := string(e.run); {
	case !wanted.fits(run) || s.ids != nil && !s.ids[id]:
		s.others[id] = true
	default:
		s.runs[id] = &runCalls{calls: map[int64]callSeen{}}
	}
}

// runOf returns what was seen of the run of a call or an end, nil if it is not wanted.
func (s *stats) runOf(e *scanned) *runCalls {
	if e.kind != record.KindCallStart && e.kind != record.KindCallEnd && e.kind != record.KindRunEnd {
		return nil
	}
	run := s.runs[string(e.run)]
	switch {
	case run != nil:
	case s.ids[string(e.run)]: // its start is missing
		run = &runCalls{calls: map[int64]callSeen{}}
		s.runs[string(e.run)] = run
	case s.others[string(e.run)]:
		if e.kind == record.KindRunEnd {
			delete(s.others, string(e.run))
		}
	case len(e.run) > 0:
		s.stray = true
	}
	return run
}
