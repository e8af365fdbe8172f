package history

import (
	"cmp"
	"encoding/json/v2"
	"errors"
	"iter"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
)

// Statuses of runs beside those of results.
const (
	StatusRunning = "running" // its process lives
	StatusKilled  = "killed"  // it has no end, and its process has gone
)

// A Run is what a list shows of one.
type Run struct {
	ID       string        `json:"run"`
	Parent   string        `json:"parent,omitzero"`
	Start    time.Time     `json:"start"`
	Duration int64         `json:"durationUs,omitzero"` // microseconds; 0 if it has no end
	Status   string        `json:"status"`              // of its result, running or killed
	Command  string        `json:"command,omitzero"`
	Client   record.Client `json:"client,omitzero"`
	User     string        `json:"user,omitzero"`
	Host     string        `json:"host,omitzero"`
	Session  string        `json:"session,omitzero"`
	Plan     bool          `json:"plan,omitzero"`
	Servers  []string      `json:"servers,omitzero"` // that it called
	Tools    []string      `json:"tools,omitzero"`   // SERVER.TOOL
	Calls    int           `json:"calls,omitzero"`   // that went out
	Writes   int           `json:"writes,omitzero"`  // of them those that may have changed something
	Failed   int           `json:"failed,omitzero"`  // of them those that ended in an error
	Unknown  int           `json:"unknown,omitzero"` // of them those of which no end is known
	Refused  int           `json:"refused,omitzero"` // calls that did not go out
	Asked    int           `json:"asked,omitzero"`   // questions to the user
	Lost     int           `json:"lost,omitzero"`    // entries that could not be written
	File     string        `json:"file"`             // where it begins, with the folder of its day
}

// A Filter says which runs are wanted. The zero value wants all.
type Filter struct {
	From, To time.Time // of the start of a run; To is not included
	Status   string
	Client   string // a part of its name, in any case; of the command for a run without a client
	Server   string // that it called
	Tool     string // the same, or SERVER.TOOL
	Writes   bool   // only runs with calls that may have changed something
}

// fits reports whether a run is wanted.
func (f *Filter) fits(r *Run) bool {
	switch {
	case !f.fitsTime(r.Start):
	case f.Status != "" && r.Status != f.Status:
	case !strings.Contains(strings.ToLower(cmp.Or(r.Client.Name, r.Command)), strings.ToLower(f.Client)):
	default:
		return f.fitsCalls(r)
	}
	return false
}

// fitsTime reports whether a run is wanted that began at this time.
func (f *Filter) fitsTime(t time.Time) bool {
	return (f.From.IsZero() || !t.Before(f.From)) && (f.To.IsZero() || t.Before(f.To))
}

// fitsCalls reports whether a run with these calls may be wanted.
func (f *Filter) fitsCalls(r *Run) bool {
	switch {
	case f.Server != "" && !slices.Contains(r.Servers, f.Server):
	case f.Tool != "" && !slices.ContainsFunc(r.Tools, f.isTool):
	case f.Writes && r.Writes == 0:
	default:
		return true
	}
	return false
}

// isTool reports whether SERVER.TOOL is the tool that is wanted.
func (f *Filter) isTool(full string) bool {
	return full == f.Tool || strings.HasSuffix(full, "."+f.Tool)
}

// longestRun is how much later than its start an entry of a run is looked for.
const longestRun = 48 * time.Hour

// Runs yields the runs that fit, the newest first. It reads no more than it is asked for. An error
// ends it.
func (r *Record) Runs(f Filter) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		l := lister{record: r, filter: f, open: map[string]*partial{}}
		n := newest[Run]{record: r, skip: l.skip, find: l.find}
		n.each(yield)
	}
}

// A lister puts runs together from their entries, of which it gets the last ones first.
type lister struct {
	record *Record
	filter Filter
	open   map[string]*partial // runs whose starts were not seen yet
}

// skip reports whether a day has nothing of runs that are wanted, and whether the days before it have
// nothing either.
func (l *lister) skip(day string) (skip, end bool) {
	f := &l.filter
	end = !f.From.IsZero() && day < f.From.UTC().Format(record.Day)
	skip = !f.To.IsZero() && day > f.To.Add(longestRun).UTC().Format(record.Day)
	return skip, end
}

// find takes in an entry of a run. The start, which comes last, completes it.
func (l *lister) find(name string, s *scanned) (run Run, when time.Time, ok bool) {
	p := l.open[string(s.run)]
	if p == nil {
		p = &partial{}
		l.open[string(s.run)] = p
	}
	if s.kind != record.KindRunStart {
		p.take(s)
		return Run{}, time.Time{}, false
	}
	delete(l.open, string(s.run))
	if !l.filter.fitsCalls(&p.run) {
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
	p.run.File = name
	if p.run.Status == "" {
		p.run.Status = StatusKilled
		if l.record.lives(name, start.PID) {
			p.run.Status = StatusRunning
		}
	}
	return p.run, p.run.Start, l.filter.fits(&p.run)
}

// lives reports whether the process that writes a file lives. That of a file that is shared has no
// lock between its entries.
func (r *Record) lives(name string, pid int) bool {
	if !isShared(name) {
		return r.isOpen(name)
	}
	return pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// begin takes in the start of a run.
func (r *Run) begin(h record.Header, e record.RunStart) {
	r.ID, r.Parent, r.Start = h.Run, h.Parent, h.Time
	r.Command, r.Client, r.User, r.Host, r.Session, r.Plan = e.Command, e.Client, e.User, e.Host, e.Session, e.Plan
	slices.Sort(r.Servers)
	slices.Sort(r.Tools)
}

// A partial is a run of which some entries were read, the last ones first.
type partial struct {
	run   Run
	ended map[int64]record.Outcome // of calls
}

func (p *partial) take(s *scanned) {
	switch s.kind {
	case record.KindCallStart:
		p.takeStart(s)
	case record.KindCallEnd:
		p.takeEnd(s)
	case record.KindAsk:
		if string(s.text(`"state":"`)) == "asked" {
			p.run.Asked++
		}
	case record.KindRunEnd:
		p.run.Status = string(s.text(`"status":"`))
		p.run.Duration = s.number(`"durationUs":`)
		p.run.Lost = int(s.number(`"lost":`))
	}
}

func (p *partial) takeStart(s *scanned) {
	outcome, ended := p.ended[s.number(`"call":`)]
	if outcome == record.Refused {
		return // nothing was sent after all
	}
	server, tool := s.text(`"server":"`), s.text(`"tool":"`)
	p.run.Servers = addTo(p.run.Servers, "", server)
	if len(tool) > 0 {
		p.run.Tools = addTo(p.run.Tools, string(server)+".", tool)
	}
	p.run.Calls++
	if s.writes() {
		p.run.Writes++
	}
	if !ended {
		p.run.Unknown++
	}
}

func (p *partial) takeEnd(s *scanned) {
	outcome := outcomeOf(s.text(`"outcome":"`))
	if p.ended == nil {
		p.ended = map[int64]record.Outcome{}
	}
	p.ended[s.number(`"call":`)] = outcome
	switch outcome {
	case record.OK:
	case record.Refused:
		p.run.Refused++
	case record.Unknown:
		p.run.Unknown++
	default:
		p.run.Failed++
	}
}

// outcomeOf makes no new string of the most frequent outcome.
func outcomeOf(b []byte) record.Outcome {
	if string(b) == string(record.OK) {
		return record.OK
	}
	return record.Outcome(b)
}

// addTo adds a name to those that are there, unless it is among them.
func addTo(all []string, before string, name []byte) []string {
	for _, known := range all {
		if len(known) == len(before)+len(name) && known[:len(before)] == before && known[len(before):] == string(name) {
			return all
		}
	}
	return append(all, before+string(name))
}
