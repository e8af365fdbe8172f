package clientconfig

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// A nameOwner is the entry that has a name.
type nameOwner struct {
	server   int    // its index; -1 for one that is disabled
	identity string // of the entry, wherever it starts
	source   string
	clients  []string // that have it so
	rank     rank
}

// add takes one entry of a file that may be used.
func (d *collector) add(f *File, e Entry) {
	broken := e.Err != nil
	if old, ok := d.owners[e.Name]; ok && (e.Disabled || d.keeps(f, old)) {
		switch {
		case broken:
		case !e.Disabled:
			d.recordDuplicate(f, e, old)
		case old.server < 0: // off in this client too
			old.clients = append(old.clients, f.Dialect.Client)
			d.owners[e.Name] = old
		}
		return
	}
	switch {
	case !broken && e.Disabled:
		d.owners[e.Name] = nameOwner{server: -1, source: f.Location.Path, clients: []string{f.Dialect.Client}, rank: f.Location.rank}
		fallthrough
	case broken, !d.o.AllowSelf && d.o.StartsSelf(e.Server):
		d.leaveOut(f, e)
		return
	}
	id := d.o.Identity(e.Server)
	if i, ok := d.same[id]; ok && d.config.Servers[i].Source != f.Location.Path {
		d.recordAlias(f, e, i)
		return
	}
	if len(d.config.Servers) == maxServers {
		d.problem(config.Problem{Source: f.Location.Path, Server: e.Name, Reason: fmt.Sprintf("left out: there are more than %d servers", maxServers)})
		return
	}
	d.owners[e.Name] = nameOwner{len(d.config.Servers), d.entryIdentity(e.Server), f.Location.Path, []string{f.Dialect.Client}, f.Location.rank}
	if _, ok := d.same[id]; !ok {
		d.same[id] = len(d.config.Servers)
	}
	d.config.Servers = append(d.config.Servers, e.Server)
}

// keeps reports whether a name stays with the entry that has it. A server that
// is switched off in one of the user's clients is not switched off in another.
func (d *collector) keeps(f *File, old nameOwner) bool {
	return old.server >= 0 || old.rank != rankUser || slices.Contains(old.clients, f.Dialect.Client)
}

// recordDuplicate records an entry whose name another one has.
func (d *collector) recordDuplicate(f *File, e Entry, old nameOwner) {
	p := config.Problem{Source: f.Location.Path, Server: e.Name, Client: f.Dialect.Client, Transport: e.Server.Transport, Skipped: true}
	switch {
	case old.server < 0:
		p.Reason = "switched off by " + old.source
	case old.identity == d.entryIdentity(e.Server):
		d.addSource(old.server, f.Location.Path)
		return
	default:
		p.Reason = "shadowed by another server of this name in " + old.source
	}
	d.problem(p)
}

// recordAlias records an entry that is a server under another name.
func (d *collector) recordAlias(f *File, e Entry, i int) {
	d.addSource(i, f.Location.Path)
	d.problem(config.Problem{
		Source: f.Location.Path, Server: e.Name, Client: f.Dialect.Client, Transport: e.Server.Transport, Status: config.StatusSame, Skipped: true,
		Reason: fmt.Sprintf("it is the same as %q of %s, so use that name", d.config.Servers[i].Name, d.config.Servers[i].Source),
	})
}

func (d *collector) addSource(i int, source string) {
	s := &d.config.Servers[i]
	if s.Source != source && !slices.Contains(s.Also, source) {
		s.Also = append(s.Also, source)
	}
}

// entryIdentity tells whether two entries of one name are written alike. Whether
// they are in a file of the project or in one of the user, and so start in
// different directories, does not count.
func (d *collector) entryIdentity(s config.Server) string {
	s.DefaultDir = d.userDir
	return d.o.Identity(s)
}

// Identity tells whether two entries, of whatever names and clients, start or
// reach the same thing.
func (o Options) Identity(s config.Server) string {
	args := slices.DeleteFunc(slices.Clone(s.Args), func(a string) bool {
		return filepath.Base(s.Command) == "npx" && (a == "-y" || a == "--yes") // only means: do not ask
	})
	bare := config.Server{Command: s.Command, Args: append([]string{}, args...), Env: map[string]string{}, Headers: map[string]string{}, URL: strings.TrimSuffix(s.URL, "/")}
	if s.URL == "" {
		if bare.Dir = s.StartDir(); bare.Dir == "" { // of an entry that was not discovered
			bare.Dir = o.userDir()
		}
	}
	maps.Copy(bare.Env, s.Env)
	for k, v := range s.Headers {
		bare.Headers[strings.ToLower(k)] = v
	}
	return bare.Fingerprint()
}
