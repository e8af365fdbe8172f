package mcpproxy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// discovery is the state of one Discover.
type discovery struct {
	o       DiscoverOptions
	claims  map[string]claim // by name
	same    map[string]int   // identity → index of the server
	aliases map[string]bool
	config  Config

	// untrusted are the identities of entries that wait for trust, by their
	// place in config.Problems: one that a trusted file has too needs none.
	untrusted map[int]string
}

// A claim is the hold that an entry has on its name.
type claim struct {
	server   int // its index; -1 for one that is disabled
	identity string
	source   string
	client   string
	rank     rank
}

// found is an entry of a file, parsed.
type found struct {
	name     string
	server   Server
	disabled bool
	err      error
	shown    string // what it starts, as the file writes it
}

// folder reads every config file in it, in the order of their names.
func (d *discovery) folder(p place) {
	entries, err := os.ReadDir(p.path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			d.problem(Problem{Source: p.path, Reason: "reading the folder: " + reason(err)})
		}
		return
	}
	var names []string
	for _, e := range entries {
		if n := e.Name(); isConfigName(n) {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	if len(names) > maxConfigFiles {
		d.problem(Problem{Source: p.path, Reason: fmt.Sprintf("holds more than %d files; the rest is left out", maxConfigFiles)})
		names = names[:maxConfigFiles]
	}
	dir := p.path
	p.folder = false
	for _, n := range names {
		p.path = filepath.Join(dir, n)
		d.file(p)
	}
}

// file reads one config file and adds its entries in the order they stand in.
func (d *discovery) file(p place) {
	f, err := d.open(p)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) || p.required {
			d.problem(Problem{Source: p.path, Client: p.dialect.client, Reason: reason(err)})
		}
		return
	}
	all := make([]found, 0, len(f.entries))
	for _, e := range f.entries {
		all = append(all, d.parse(f, e))
	}
	d.config.reads = append(d.config.reads, sortedKeys(f.reads)...)
	if p.rank == rankProject && !d.trusted(f, all) {
		return
	}
	for _, e := range all {
		d.add(f, e)
	}
}

// parse reads one entry, whatever is in it.
func (d *discovery) parse(f *configFile, e member) (r found) {
	r.name = e.name
	if r.err = checkName(e.name); r.err != nil {
		return r
	}
	if f.off[e.name] {
		r.disabled = true
		return r
	}
	x := f.expander(d.o)
	r.server, r.disabled, r.err = parseEntry(f, e, x)
	if x.names != nil {
		d.note(f, e.name, x)
	}
	if len(x.missing) > 0 && r.err == nil && !r.disabled {
		r.err = needs(e.name, x.missing)
	}
	if f.place.rank == rankProject && !r.disabled {
		raw, _, _ := parseEntry(f, e, &expander{raw: true})
		r.shown = raw.launch()
	}
	r.server.Name, r.server.Source, r.server.Client = e.name, f.place.path, f.dialect.client
	return r
}

// note keeps the inputs that an entry names.
func (d *discovery) note(f *configFile, server string, x *expander) {
	for _, in := range x.names {
		in.Source, in.Server = f.place.path, server
		if len(d.config.Inputs) < maxProblems {
			d.config.Inputs = append(d.config.Inputs, in)
		}
	}
}

// trusted asks whether a file of the project may start commands. If it may
// not, its entries are listed and have no other effect: they claim no name and
// switch nothing off.
func (d *discovery) trusted(f *configFile, all []found) bool {
	sum := f.sum()
	state := Untrusted
	if d.o.Trusted != nil {
		state = d.o.Trusted(f.place.path, sum)
	}
	if state == Trusted {
		return true
	}
	why := "this project's file may not start commands yet"
	if state == Changed {
		why = "this project's file has changed since it was trusted"
	}
	p := Project{Path: f.place.path, Client: f.dialect.client, Sum: sum, Changed: state == Changed, Declined: state == Declined}
	for _, e := range all {
		if e.err != nil && !isNeed(e.err) || e.disabled || !d.o.AllowSelf && d.startsSelf(e.server) {
			d.leaveOut(f, e)
			continue
		}
		d.untrust(e, Problem{
			Source: f.place.path, Server: e.name, Client: f.dialect.client, Transport: e.server.Transport, Status: StatusUntrusted,
			Reason: fmt.Sprintf("%s; read it, then run: runcell servers trust %s", why, shellWord(f.place.path)),
		})
		p.Starts = append(p.Starts, Start{Server: e.name, Command: e.shown})
	}
	if len(p.Starts) > 0 {
		d.config.Projects = append(d.config.Projects, p)
	}
	return false
}

func (d *discovery) untrust(e found, p Problem) {
	if len(d.config.Problems) < maxProblems {
		if d.untrusted == nil {
			d.untrusted = map[int]string{}
		}
		d.untrusted[len(d.config.Problems)] = e.name + "\x00" + d.identity(e.server)
	}
	d.problem(p)
}

// settle drops what turned out to need no trust: the user's own files have the
// very same server.
func (d *discovery) settle() {
	index := -1
	d.config.Problems = slices.DeleteFunc(d.config.Problems, func(p Problem) bool {
		index++
		id, ok := d.untrusted[index]
		if !ok {
			return false
		}
		c, claimed := d.claims[p.Server]
		if !claimed || c.server < 0 || p.Server+"\x00"+c.identity != id {
			return false
		}
		s := &d.config.Servers[c.server]
		s.Also = append(s.Also, p.Source)
		return true
	})
}

// problem keeps one, as long as there are not too many.
func (d *discovery) problem(p Problem) {
	if p.Status == "" {
		p.Status = StatusSkipped
	}
	switch n := len(d.config.Problems); {
	case n < maxProblems:
		d.config.Problems = append(d.config.Problems, p)
	case n == maxProblems:
		d.config.Problems = append(d.config.Problems, Problem{
			Source: p.Source, Status: StatusSkipped, Reason: fmt.Sprintf("more than %d entries cannot be used; the rest is not reported", maxProblems),
		})
	}
}

// leaveOut reports an entry that gives no server.
func (d *discovery) leaveOut(f *configFile, e found) {
	p := Problem{Source: f.place.path, Server: e.name, Client: f.dialect.client, Transport: e.server.Transport}
	var part partOf
	switch {
	case e.disabled:
		p.Status, p.Reason, p.Skipped = StatusDisabled, "disabled", true
	case errors.As(e.err, &part):
		p.Reason, p.Skipped = e.err.Error(), true
	case isNeed(e.err):
		p.Status, p.Reason = StatusNeedsValue, e.err.Error()
	case e.err != nil:
		p.Server, p.Reason = printable(e.name, 64), e.err.Error()
	default:
		p.Reason, p.Skipped = "skipped: this program itself", true
	}
	d.problem(p)
}

// add takes one entry of a file that may be used.
func (d *discovery) add(f *configFile, e found) {
	broken := e.err != nil
	if old, ok := d.claims[e.name]; ok && (broken || e.disabled || d.keeps(f, old, e)) {
		if !broken && !e.disabled {
			d.again(f, e, old)
		}
		return
	}
	switch {
	case !broken && e.disabled:
		d.claims[e.name] = claim{server: -1, source: f.place.path, client: f.dialect.client, rank: f.place.rank}
		fallthrough
	case broken, !d.o.AllowSelf && d.startsSelf(e.server):
		d.leaveOut(f, e)
		return
	}
	id := d.identity(e.server)
	if i, ok := d.same[id]; ok && d.config.Servers[i].Source != f.place.path {
		d.alias(f, e, i)
		return
	}
	if len(d.config.Servers) == maxServers {
		d.problem(Problem{Source: f.place.path, Server: e.name, Reason: fmt.Sprintf("left out: there are more than %d servers", maxServers)})
		return
	}
	e.server.Alias = serverAlias(e.name, d.aliases)
	d.claims[e.name] = claim{len(d.config.Servers), id, f.place.path, f.dialect.client, f.place.rank}
	if _, ok := d.same[id]; !ok {
		d.same[id] = len(d.config.Servers)
	}
	d.config.Servers = append(d.config.Servers, e.server)
}

// keeps reports whether a name stays with the entry that has it. A server that
// is switched off in one of the user's clients is not switched off in another.
func (d *discovery) keeps(f *configFile, old claim, e found) bool {
	return old.server >= 0 || old.rank != rankUser || old.client == f.dialect.client
}

// again takes an entry whose name is another's.
func (d *discovery) again(f *configFile, e found, old claim) {
	p := Problem{Source: f.place.path, Server: e.name, Client: f.dialect.client, Transport: e.server.Transport, Skipped: true}
	switch {
	case old.server < 0:
		p.Reason = "switched off by " + old.source
	case old.identity == d.identity(e.server):
		d.also(old.server, f.place.path)
		return
	default:
		p.Reason = "shadowed by another server of this name in " + old.source
	}
	d.problem(p)
}

// alias takes an entry that is a server under another name.
func (d *discovery) alias(f *configFile, e found, i int) {
	d.also(i, f.place.path)
	d.problem(Problem{
		Source: f.place.path, Server: e.name, Client: f.dialect.client, Transport: e.server.Transport, Status: statusSame, Skipped: true,
		Reason: fmt.Sprintf("it is the same as %q of %s, so use that name", d.config.Servers[i].Name, d.config.Servers[i].Source),
	})
}

func (d *discovery) also(i int, source string) {
	s := &d.config.Servers[i]
	if s.Source != source && !slices.Contains(s.Also, source) {
		s.Also = append(s.Also, source)
	}
}

// identity tells whether two entries, of whatever names and clients, start or
// reach the same thing.
func (d *discovery) identity(s Server) string {
	args := slices.DeleteFunc(slices.Clone(s.Args), func(a string) bool {
		return filepath.Base(s.Command) == "npx" && (a == "-y" || a == "--yes") // only says that nobody is there to ask
	})
	if s.Dir == "" {
		s.Dir = d.o.Dir
	}
	bare := Server{Command: s.Command, Args: append([]string{}, args...), Env: map[string]string{}, Headers: map[string]string{}, URL: strings.TrimSuffix(s.URL, "/")}
	if s.URL == "" {
		bare.Dir = s.Dir
	}
	for k, v := range s.Env {
		bare.Env[k] = v
	}
	for k, v := range s.Headers {
		bare.Headers[strings.ToLower(k)] = v
	}
	return bare.fingerprint()
}
