package history

import (
	"encoding/json/v2"
	"iter"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
)

// longestRun is how much later than its start an entry of a run is looked for.
const longestRun = 48 * time.Hour

// Runs yields the runs that fit, the newest first, also those whose start is not on record. It reads
// no more than it is asked for, unless entries of a file are missing. An error ends it.
func (r *Record) Runs(f Filter) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		l := lister{record: r, filter: f, open: map[string]*partial{}, lossy: map[string]bool{}, torn: map[string]bool{}}
		n := newest[Run]{record: r, skip: l.skip, find: l.find, rest: l.withoutStart, ahead: l.ahead}
		n.each(yield)
	}
}

// A lister puts runs together from their entries, of which it gets the last ones first.
type lister struct {
	record *Record
	filter Filter
	open   map[string]*partial // runs whose starts were not seen yet
	lossy  map[string]bool     // files of which entries are missing
	torn   map[string]bool     // files with a Torn after what is read now
}

// skip reports whether a day has nothing of runs that are wanted, and whether the days before it have
// nothing either.
func (l *lister) skip(day string) (skip, end bool) {
	f := &l.filter
	end = !f.From.IsZero() && day < f.From.UTC().Format(record.Day)
	skip = !f.To.IsZero() && day > f.To.Add(longestRun).UTC().Format(record.Day)
	return skip, end
}

// ahead reports whether a file is read to its beginning before a run of it is yielded: runs whose
// start is missing are known then, and have their place among the others. A run in a later one of the
// files that commands share may have begun in an earlier one.
func (l *lister) ahead(name string) bool {
	return l.lossy[name] || record.IsShared(name) && !strings.HasSuffix(name, "-exec.jsonl")
}

// find takes in an entry of a run. The start, which comes last, completes it.
func (l *lister) find(name string, s *scanned) (run Run, when time.Time, ok bool) {
	if (s.kind == record.KindTorn || s.kind == record.KindRunEnd) && s.number(`"lost":`) > 0 {
		l.lossy[name] = true
		l.torn[name] = l.torn[name] || s.kind == record.KindTorn
	}
	if s.kind == record.KindTorn {
		return Run{}, time.Time{}, false
	}
	p := l.open[string(s.run)]
	if p == nil {
		p = &partial{torn: l.torn[name]}
		l.open[string(s.run)] = p
	}
	if s.kind != record.KindRunStart {
		p.take(name, s)
		return Run{}, time.Time{}, false
	}
	delete(l.open, string(s.run))
	if p.settle(); !l.filter.fitsCalls(&p.run) {
		return Run{}, time.Time{}, false // not worth decoding
	}
	var start struct {
		record.Header
		record.RunStart
	}
	if json.Unmarshal(s.line, &start) != nil {
		return Run{}, time.Time{}, false
	}
	p.run.begin(start.Header, start.RunStart)
	l.finish(p, name, start.PID)
	return p.run, p.run.Start, l.filter.fits(&p.run)
}

// finish sets what all entries of a run together tell. The PID is 0 if it is not known.
func (l *lister) finish(p *partial, name string, pid int) {
	p.run.File = name
	shared, goesOn := record.IsShared(name), StatusRunning
	if p.waits {
		goesOn = StatusWaiting
	}
	switch {
	case p.run.Status != "":
	case shared && processLives(&p.run, pid):
		p.run.Status = goesOn
	case p.torn:
		p.run.Status = StatusIncomplete
	case !shared && l.record.isOpen(name):
		p.run.Status = goesOn
	default:
		p.run.Status = StatusKilled
	}
	if p.run.Status != StatusRunning && p.run.Status != StatusWaiting {
		p.run.UnderWay = 0
	}
}

// withoutStart returns the runs whose first entries are in a file that was read to its beginning, and
// whose start is in no other file: it is missing.
func (l *lister) withoutStart(name string) (all []found[Run], err error) {
	open := map[string]*partial{}
	for id, p := range l.open {
		if p.file == name && p.shows {
			open[id] = p
		}
	}
	if len(open) == 0 {
		return nil, nil
	}
	if err := l.record.startsBefore(name, open); err != nil {
		return nil, err
	}
	for id, p := range open {
		delete(l.open, id)
		p.settle()
		p.run.ID, p.run.Lost = id, p.run.Lost+1
		p.run.Start, _ = time.Parse(time.RFC3339Nano, string(p.when))
		l.finish(p, name, 0)
		if l.filter.fits(&p.run) {
			all = append(all, found[Run]{p.run, p.run.Start})
		}
	}
	return all, nil
}

// startsBefore removes the runs whose start is in another file of the same process, as of a run that
// goes on after midnight.
func (r *Record) startsBefore(name string, runs map[string]*partial) error {
	return r.eachFile(func(other string) (more bool, err error) {
		day, last := filepath.Dir(other), filepath.Dir(name)
		if day > last || other == name || writerOf(other) != writerOf(name) {
			return true, nil
		}
		if daysBetween(day, last) > longestRun {
			return false, nil
		}
		err = grep(r.path(other), []byte(startOfRun), func(line []byte) bool {
			if s, ok := scan(line); ok && s.kind == record.KindRunStart {
				delete(runs, string(s.run))
			}
			return len(runs) > 0
		})
		return len(runs) > 0, err
	})
}

const startOfRun = `"kind":"run.start","run":"`

// writerOf is the part of a file's name that all files of one process have, or all that commands share.
func writerOf(name string) string {
	base := filepath.Base(name)
	if record.IsShared(name) {
		return base[:strings.LastIndex(base, "-exec")]
	}
	return base[:max(0, strings.LastIndexByte(base, '-'))]
}

// daysBetween is the time between the beginnings of two days.
func daysBetween(from, to string) time.Duration {
	a, _ := time.Parse(record.Day, from)
	b, _ := time.Parse(record.Day, to)
	return b.Sub(a)
}
