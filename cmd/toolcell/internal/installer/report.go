package installer

import (
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/edit"
)

// Statuses of reports, beside those of package edit.
const (
	removed        = "removed"  // the file was not there before
	restored       = "restored" // to the byte
	takenOut       = "taken out"
	notInstalled   = "not installed"
	serversMoved   = "servers moved"
	serversPutBack = "servers put back"
)

// A Report is what install or uninstall did to the file of one client, or would
// do in a dry run. Without an error, Status is added, updated, already there,
// restored (to the byte), removed (the file was not there before), taken out,
// printed, or not installed; servers moved and servers put back are of a file that
// toolcell does not go into.
type Report struct {
	Client   string       `json:"client"`
	Title    string       `json:"title,omitempty"`
	File     string       `json:"file,omitempty"`
	Name     string       `json:"name,omitempty"` // of the entry
	Status   string       `json:"status"`
	DryRun   bool         `json:"dryRun,omitempty"`
	Disabled bool         `json:"disabled,omitempty"` // the file has the entry switched off
	Command  string       `json:"command,omitempty"`
	Was      string       `json:"was,omitempty"` // what the entry started before
	Moved    []server     `json:"moved,omitempty"`
	MovedTo  string       `json:"movedTo,omitempty"`
	Stay     []server     `json:"stay,omitempty"`
	Tokens   *savedTokens `json:"tokens,omitempty"` // in each request
	PutBack  int          `json:"putBack,omitempty"`
	Lost     int          `json:"lost,omitempty"` // moved servers that are in neither file any more
	Backup   string       `json:"backup,omitempty"`
	Entry    string       `json:"entry,omitempty"` // that install --print shows
	Diff     string       `json:"diff,omitempty"`  // of a dry run, without secrets
	Note     string       `json:"note,omitempty"`  // what there is to do now
	Error    string       `json:"error,omitempty"`

	notNamed string // why the entry does not have the name that was asked for
	undo     string // the command
	others   int    // servers that could be moved
}

type server struct {
	Server string `json:"server"`
	Dir    string `json:"dir,omitempty"` // that the client has it for alone
	Reason string `json:"reason,omitempty"`
}

type savedTokens struct {
	Before int `json:"before"` // of the servers that could be asked
	After  int `json:"after"`
}

// newReport returns a report about the file.
func (i *Installer) newReport(status string) *Report {
	return &Report{Client: i.target.Client, Title: i.target.Title, File: i.target.File, Status: status, DryRun: i.DryRun}
}

// summary returns the report of the change, made or not.
func (c *change) summary() *Report {
	r := c.newReport(c.result.Did)
	r.Name, r.Was, r.Disabled, r.Command, r.Backup = c.result.Name, c.result.Was, c.result.Off, c.command, c.backup
	if c.moved != nil {
		r.MovedTo = c.moved.path
	}
	for _, m := range c.move.Servers {
		r.Moved = append(r.Moved, server{Server: m.Name, Dir: m.Dir})
	}
	for _, stay := range c.move.Stay {
		r.Stay = append(r.Stay, server{Server: stay.Server, Reason: stay.Reason})
	}
	if c.cost != nil {
		r.Tokens = &savedTokens{c.cost.total, c.cost.own}
	}
	if c.DryRun {
		r.Diff = c.diff()
	} else if c.file.changed() {
		r.Note, r.undo = c.target.Note, "toolcell install "+c.target.Client+" --undo"
		if c.target.Project {
			r.undo = "toolcell install " + c.target.Client + " --project --undo"
		}
	}
	if r.notNamed = c.notNamed(); r.notNamed != "" {
		r.Note = strings.TrimPrefix(r.Note+"; "+r.notNamed, "; ")
	}
	if !c.MoveServers && !c.target.Project && !c.JSON {
		_, r.others, _ = othersOf(c.target, c.file.after) // a file that cannot be read has none to move
	}
	if c.result.Did == edit.Updated && c.result.Was+" serve" == c.command {
		r.Was = ""
	}
	return r
}

// print prints what was done, and how to undo it, unless the caller prints JSON.
func (i *Installer) print(r *Report) {
	if i.JSON {
		return
	}
	say := func(format string, args ...any) { fmt.Fprintf(i.Streams.Stdout(), format+"\n", args...) }
	from, into := "", ""
	if i.older {
		from, into = " from "+r.File, " into "+r.File
	}
	switch r.Status {
	case edit.Added:
		say("added to %s as %q: %s\n  starts: %s", r.Title, r.Name, r.File, r.Command)
	case edit.Updated:
		say("updated in %s, %q: %s\n  starts: %s", r.Title, r.Name, r.File, r.Command)
	case edit.Unchanged:
		say("already there: %q in %s", r.Name, r.File)
	case removed:
		say("removed: %s, which was not there before", r.File)
	case restored:
		say("restored as it was before: %s", r.File)
	case takenOut:
		say("taken out of %s; the rest of it is as it is now", r.File)
	case notInstalled:
		say("nothing to do: toolcell is not in %s", r.File)
	}
	if r.Was != "" {
		say("  was: %s", r.Was)
	}
	if r.notNamed != "" {
		say("  %s", r.notNamed)
	}
	if r.Disabled {
		say("  it is switched off in that file: switch it on there")
	}
	if len(r.Moved) > 0 {
		var names []string
		for _, m := range r.Moved {
			names = append(names, rowName(m.Server, m.Dir))
		}
		say("moved %s%s to %s", strings.Join(names, ", "), from, r.MovedTo)
	}
	if r.Backup != "" {
		say("  before: %s", r.Backup)
	}
	if r.PutBack > 0 {
		say("put back%s: %s", into, text.Plural(r.PutBack, "server"))
	}
	if r.Lost > 0 {
		say("not put back: %s, which the file that they were moved to does not have any more", text.Plural(r.Lost, "server"))
	}
	if r.undo != "" {
		say("  undo: %s", r.undo)
		if note := i.target.Note; note != "" {
			say("  %s: %s", r.Title, note)
		}
	}
	if r.others > 0 {
		cost := "cost"
		if r.others == 1 {
			cost = "costs"
		}
		say("  its %s %s tokens in every request: toolcell install %s --move-servers --dry-run", text.Plural(r.others, "other server"), cost, r.Client)
	}
}
