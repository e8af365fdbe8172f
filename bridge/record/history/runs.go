package history

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
)

// Statuses of runs beside those of results.
const (
	StatusRunning    = "running"    // its process lives
	StatusWaiting    = "waiting"    // it runs, and a question to the user has no answer
	StatusKilled     = "killed"     // it has no end, and its process has gone
	StatusIncomplete = "incomplete" // it has no end, and entries that came after its last one are lost
)

// A Run is what a list shows of one.
type Run struct {
	ID       string        `json:"run"`
	Parent   string        `json:"parent,omitzero"`
	Start    time.Time     `json:"start"`
	Duration int64         `json:"durationUs,omitzero"` // microseconds; 0 if it has no end
	Status   string        `json:"status"`              // of its result, or one of those above
	Command  string        `json:"command,omitzero"`
	Client   record.Client `json:"client,omitzero"`
	User     string        `json:"user,omitzero"`
	Host     string        `json:"host,omitzero"`
	Session  string        `json:"session,omitzero"`
	Plan     bool          `json:"plan,omitzero"`
	Private  bool          `json:"private,omitzero"` // it could use a server that was private then
	Servers  []string      `json:"servers,omitzero"` // that it called
	Tools    []string      `json:"tools,omitzero"`   // SERVER.TOOL
	Calls    int           `json:"calls,omitzero"`   // that went out
	Writes   int           `json:"writes,omitzero"`  // of them those that may have changed something
	Failed   int           `json:"failed,omitzero"`  // of them those that ended in an error
	Unknown  int           `json:"unknown,omitzero"` // of them those of which no end is known
	UnderWay int           `json:"-"`                // of these those that may still end: the run goes on
	Refused  int           `json:"refused,omitzero"` // calls that did not go out
	Asked    int           `json:"asked,omitzero"`   // questions to the user
	Lost     int           `json:"lost,omitzero"`    // entries that are not on record, at least; how the run ended tells of their calls
	File     string        `json:"file"`             // where it begins, with the folder of its day

	triedServers, triedTools []string // of calls that did not go out, also those of Servers and Tools
	granted                  []string // servers
}

// RunOf returns the run that some entries are of, at least one, as a list has it.
func (r *Record) RunOf(entries []Entry) (Run, error) {
	first := entries[0]
	for found, err := range r.Runs(Filter{From: first.Time, To: first.Time.Add(time.Nanosecond)}) {
		if err != nil {
			return Run{}, err
		}
		if found.ID == first.Run {
			return found, nil
		}
	}
	// Its beginning was removed with the day that it was on, or is torn.
	return Run{ID: first.Run, Start: first.Time, Status: StatusKilled, File: first.File}, nil
}

// Touches reports whether the run was granted, called or tried to call a server of a kind, or a server that
// was private then: its code, and what it printed, may have what is private.
func (r *Run) Touches(private func(server string) bool) bool {
	return r.Private || slices.ContainsFunc(slices.Concat(r.granted, r.Servers, r.triedServers), private)
}

// A Filter says which runs are wanted. The zero value wants all.
type Filter struct {
	From, To time.Time // of the start of a run; To is not included
	Status   string
	Client   string // a part of its name, in any case; of the command for a run without a client
	Server   string // that it called, or tried to
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
	case f.Server != "" && !slices.Contains(r.Servers, f.Server) && !slices.Contains(r.triedServers, f.Server):
	case f.Tool != "" && !slices.ContainsFunc(r.Tools, f.isTool) && !slices.ContainsFunc(r.triedTools, f.isTool):
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

// begin takes in the start of a run.
func (r *Run) begin(h record.Header, e record.RunStart) {
	r.ID, r.Parent, r.Start = h.Run, h.Parent, h.Time
	r.granted = e.Grants.Servers
	r.Command, r.Client, r.User, r.Host, r.Session, r.Plan, r.Private = e.Command, e.Client, e.User, e.Host, e.Session, e.Plan, e.Private
}
