package installer

import (
	"strings"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig/edit"
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
	Backup   string       `json:"backup,omitempty"`
	Entry    string       `json:"entry,omitempty"` // that install --print shows
	Diff     string       `json:"diff,omitempty"`  // of a dry run, without secrets
	Note     string       `json:"note,omitempty"`  // what there is to do now
	Error    string       `json:"error,omitempty"`
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

// Failed returns the report of a client whose file could not be changed.
func Failed(client string, err error) *Report {
	return &Report{Client: client, Status: "failed", Error: err.Error()}
}

// newReport returns a report with what is known of the file.
func (i *Installer) newReport(status string) *Report {
	return &Report{Client: i.target.Client, Title: i.target.Title, File: i.target.File, Status: status, DryRun: i.DryRun}
}

// summary returns what report and show print.
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
		r.Note = c.target.Note()
	}
	if note := c.notNamed(); note != "" {
		r.Note = strings.TrimPrefix(r.Note+"; "+note, "; ")
	}
	if c.result.Did == edit.Updated && c.result.Was+" serve" == c.command {
		r.Was = ""
	}
	return r
}
