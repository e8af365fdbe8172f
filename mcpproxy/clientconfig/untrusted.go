package clientconfig

import (
	"fmt"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// trusted asks whether a file of the project may start commands. If it may
// not, its entries are listed and have no other effect: they own no name and
// switch nothing off.
func (d *collector) trusted(f *File, all []Entry) bool {
	sum := f.Sum()
	state := Untrusted
	if d.o.Trusted != nil {
		state = d.o.Trusted(f.Location.Path, sum)
	}
	if state == Trusted {
		d.projectTrusted = true
		return true
	}
	why := "this project's file may not start commands yet"
	if state == Changed {
		why = "this project's file has changed since it was trusted"
	}
	p := config.Project{Path: f.Location.Path, Client: f.Dialect.Client, Sum: sum, Changed: state == Changed, Declined: state == Declined}
	for i, e := range all {
		if e.Err != nil && !e.lacksValue() || e.Disabled || !d.o.AllowSelf && d.o.StartsSelf(e.Server) {
			d.leaveOut(f, e)
			continue
		}
		d.keep(problem{config.Problem{
			Source: f.Location.Path, Server: e.Name, Client: f.Dialect.Client, Transport: e.Server.Transport, Status: config.StatusUntrusted,
			Reason: fmt.Sprintf("%s; read it, then run: toolcell servers trust %s", why, text.ShellWord(f.Location.Path)),
		}, d.entryIdentity(e.Server)})
		raw, _ := f.AsWritten(f.Entries[i]) // it was read before
		p.Starts = append(p.Starts, config.Start{Server: e.Name, Command: raw.Launch()})
	}
	if len(p.Starts) > 0 {
		d.config.Projects = append(d.config.Projects, p)
	}
	return false
}

// reportProblems reports what could not be used. An entry that waits for trust is not
// reported if a file of the user has the very same server; if it has another of that name,
// the project says which file it is that its entry would replace.
func (d *collector) reportProblems() {
	for _, p := range d.problems {
		owner, owned := d.owners[p.Server]
		switch {
		case p.Status != config.StatusUntrusted || !owned || owner.server < 0:
		case owner.identity == p.identity:
			d.addSource(owner.server, p.Source)
			continue
		case owner.rank > rankProject:
			for _, project := range d.config.Projects {
				for i, start := range project.Starts {
					if project.Path == p.Source && start.Server == p.Server {
						project.Starts[i].Replaces = owner.source
					}
				}
			}
		}
		d.config.Problems = append(d.config.Problems, p.Problem)
	}
}
