package clientconfig

import (
	"fmt"
	"slices"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// trusted asks whether a file of the project may start commands. If it may
// not, its entries are listed and have no other effect: they own no name and
// switch nothing off.
func (d *collector) trusted(f *File, all []found) bool {
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
	for _, e := range all {
		if e.Err != nil && !e.lacksValue() || e.Disabled || !d.o.AllowSelf && d.o.StartsSelf(e.Server) {
			d.leaveOut(f, e)
			continue
		}
		d.untrust(e, config.Problem{
			Source: f.Location.Path, Server: e.Name, Client: f.Dialect.Client, Transport: e.Server.Transport, Status: config.StatusUntrusted,
			Reason: fmt.Sprintf("%s; read it, then run: toolcell servers trust %s", why, text.ShellWord(f.Location.Path)),
		})
		p.Starts = append(p.Starts, config.Start{Server: e.Name, Command: e.shown})
	}
	if len(p.Starts) > 0 {
		d.config.Projects = append(d.config.Projects, p)
	}
	return false
}

func (d *collector) untrust(e found, p config.Problem) {
	if len(d.config.Problems) < maxProblems {
		if d.untrusted == nil {
			d.untrusted = map[int]string{}
		}
		d.untrusted[len(d.config.Problems)] = e.Name + "\x00" + d.entryIdentity(e.Server)
	}
	d.problem(p)
}

// dropTrusted drops the problems that turned out to need no trust: the user's own files have the
// very same server.
func (d *collector) dropTrusted() {
	index := -1
	d.config.Problems = slices.DeleteFunc(d.config.Problems, func(p config.Problem) bool {
		index++
		id, ok := d.untrusted[index]
		if !ok {
			return false
		}
		c, owned := d.owners[p.Server]
		if !owned || c.server < 0 || p.Server+"\x00"+c.identity != id {
			return false
		}
		s := &d.config.Servers[c.server]
		s.Also = append(s.Also, p.Source)
		return true
	})
}

// noteReplaced names the user's own servers whose names a file would take once it is
// trusted. Those that are the very same server are no longer among the problems.
func (d *collector) noteReplaced() {
	for _, p := range d.config.Problems {
		owner, owned := d.owners[p.Server]
		if p.Status != config.StatusUntrusted || !owned || owner.server < 0 || owner.rank <= rankProject {
			continue
		}
		for _, project := range d.config.Projects {
			for i, start := range project.Starts {
				if project.Path == p.Source && start.Server == p.Server {
					project.Starts[i].Replaces = owner.source
				}
			}
		}
	}
}
