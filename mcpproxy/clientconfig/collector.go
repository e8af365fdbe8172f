package clientconfig

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// A collector is the state of one Discover.
type collector struct {
	o      Options
	owners map[string]nameOwner // by name
	same   map[string]int       // identity → index of the server
	config config.Config

	userDir        string // where the user's own servers start
	projectTrusted bool   // a file of the project is trusted, as it is now

	problems []problem
}

// A problem is a Problem; of an entry that waits for trust it has the identity.
type problem struct {
	config.Problem
	identity string // of the entry, wherever it starts
}

// readFolder reads every config file in it, in the order of their names.
func (d *collector) readFolder(p Location) {
	entries, err := os.ReadDir(p.Path) // by name
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			d.problem(config.Problem{Source: p.Path, Reason: "reading the folder: " + state.Reason(err)})
		}
		return
	}
	var names []string
	named := d.o.named() // it has been read
	for _, e := range entries {
		if n := e.Name(); p.takes(n) && filepath.Join(p.Path, n) != named {
			names = append(names, n)
		}
	}
	if len(names) > maxConfigFiles {
		d.problem(config.Problem{Source: p.Path, Reason: fmt.Sprintf("holds more than %d files; the rest is left out", maxConfigFiles)})
		names = names[:maxConfigFiles]
	}
	dir := p.Path
	for _, n := range names {
		p.Path = filepath.Join(dir, n)
		d.readFile(p)
	}
}

// readFile reads one config file and adds its entries in the order they stand in.
func (d *collector) readFile(p Location) {
	f, err := Open(p, d.o)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) || p.required {
			d.problem(config.Problem{Source: p.Path, Client: p.Dialect.Client, Reason: state.Reason(err)})
		}
		return
	}
	all := make([]Entry, len(f.Entries))
	for i, e := range f.Entries {
		all[i] = d.parse(f, e, i < f.Local)
	}
	d.config.Reads = append(d.config.Reads, slices.Sorted(maps.Keys(f.Reads))...)
	if p.rank == rankProject && !d.trusted(f, all) {
		return
	}
	for _, e := range all {
		d.add(f, e)
	}
}

// parse reads one entry. A local one is the user's own for this project alone.
func (d *collector) parse(f *File, e rawjson.Member, local bool) Entry {
	p := f.Parse(e)
	p.Server.Project = f.Location.rank == rankProject
	d.place(&p, f.Location.rank == rankProject || local && d.projectTrusted)
	d.config.Inputs = append(d.config.Inputs, p.Inputs[:min(len(p.Inputs), maxProblems-len(d.config.Inputs))]...)
	return p
}

// problem records a problem.
func (d *collector) problem(p config.Problem) { d.keep(problem{Problem: p}) }

// keep records a problem, unless there are too many.
func (d *collector) keep(p problem) {
	p.Status = cmp.Or(p.Status, config.StatusSkipped)
	if len(d.problems) == maxProblems {
		p = problem{
			Source: p.Source, Status: config.StatusSkipped, Reason: fmt.Sprintf("more than %d entries cannot be used; the rest is not reported", maxProblems),
		}
	}
	if len(d.problems) <= maxProblems {
		d.problems = append(d.problems, p)
	}
}

// leaveOut reports an entry that gives no server.
func (d *collector) leaveOut(f *File, e Entry) {
	p := config.Problem{Source: f.Location.Path, Server: e.Name, Client: f.Dialect.Client, Transport: e.Server.Transport}
	var part ClientPart
	switch {
	case e.Disabled:
		p.Status, p.Reason, p.Skipped = config.StatusDisabled, "disabled", true
	case errors.As(e.Err, &part):
		p.Reason, p.Skipped = e.Err.Error(), true
	case e.lacksValue():
		p.Status, p.Reason = config.StatusNeedsValue, e.Err.Error()
	case e.Err != nil:
		p.Server, p.Reason = text.Printable(e.Name, 64), e.Err.Error()
	default:
		p.Reason, p.Skipped = "this program itself", true
	}
	d.problem(p)
}
