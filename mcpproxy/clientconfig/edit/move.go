package edit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// A Move is a client's servers that go behind this program, and those that
// stay where they are.
type Move struct {
	Servers []Moving
	Stay    []config.Problem // by server, with the reason
}

// ByDir returns the names of the servers that go, by the directory that the client
// has them for; the empty one is everywhere.
func (m Move) ByDir() map[string][]string {
	all := map[string][]string{}
	for _, s := range m.Servers {
		all[s.Dir] = append(all[s.Dir], s.Name)
	}
	return all
}

// Moving is a server that goes.
type Moving struct {
	Name      string
	Dir       string // that the client has it for alone; empty is everywhere
	Disabled  bool
	Variables []string // of the environment that its entry names
}

// PlanMove finds the servers in a text that mean the same when they are moved:
// each is put into a file at the new place, read there, and compared with what
// it was. Values are those that the user set for inputs of the old file.
func (p Target) PlanMove(data []byte, values map[string]string) (m Move, err error) {
	c, err := p.read(data, values)
	if err != nil {
		return m, err
	}
	here, scopes, asked := clientconfig.Discover(withoutProject(p.options)), p.scopes(c, data, values), inputsOf(data)
	for _, scope := range scopes {
		for _, e := range scope.entries {
			if p.starts(e) {
				continue
			}
			moving, err := p.in(scope.dir).moving(c, asked, e, values, here)
			if off := scope.switchedOff(e.Name, scopes); off != "" {
				err = fmt.Errorf("it is switched off %s, which only %s knows of", off, p.Title)
			}
			if err != nil && scope.dir != "" {
				err = fmt.Errorf("in %s: %w", scope.dir, err)
			}
			if err != nil {
				m.Stay = append(m.Stay, config.Problem{Source: p.File, Server: e.Name, Reason: err.Error()})
				continue
			}
			moving.Dir = scope.dir
			m.Servers = append(m.Servers, moving)
		}
	}
	return m, nil
}

// switchedOff returns where a server of the scope is switched off outside of its entry, or
// nothing.
func (s scope) switchedOff(server string, all []scope) (where string) {
	for _, other := range all {
		switch off := slices.Contains(other.off, server); {
		case off && s.dir == "":
			where = "in " + other.dir
		case off && s.dir == other.dir:
			where = "there"
		}
	}
	return where
}

// moving tries the move of one entry, which it cuts.
func (p Target) moving(from *contents, asked inputs, before clientconfig.Entry, values map[string]string, here config.Config) (Moving, error) {
	m := Moving{Name: before.Name, Disabled: before.Disabled}
	to, err := newDocument(p.MovedFile(), nil)
	if err != nil {
		return m, err
	}
	if err := errors.Join(move(from, to, append(p.key(from), before.Name)), asked.copy(to, inputs{})); err != nil {
		return m, err
	}
	moved, err := p.open(p.MovedFile(), to.bytes(), values)
	if err != nil {
		return m, err
	}
	raw, ok := rawjson.Find(moved.Entries, before.Name)
	if !ok {
		return m, fmt.Errorf("%q %w", before.Name, errAbsent)
	}
	after := moved.Parse(rawjson.Member{Name: before.Name, Value: raw})
	for _, in := range before.Inputs {
		if !in.Asked && !slices.Contains(m.Variables, in.ID) {
			m.Variables = append(m.Variables, in.ID)
		}
	}
	switch {
	case before.Err != nil:
		return m, fmt.Errorf("it cannot be used from here: %w", before.Err)
	case after.Err != nil:
		return m, fmt.Errorf("it depends on where its file is: %w", after.Err)
	case before.Disabled != after.Disabled:
		return m, errors.New("it is switched off outside of its entry; switch it off in it, or take it out")
	case before.Disabled:
		return m, nil
	case before.Server.Fingerprint() != after.Server.Fingerprint():
		return m, errors.New("it depends on where its file is; write whole paths")
	}
	if err := before.Server.CheckPaths(); err != nil {
		return m, err
	}
	return m, p.shadowed(before.Server, here)
}

// shadowed refuses a server whose name is another's here: behind this program
// only one of them could be used.
func (p Target) shadowed(s config.Server, here config.Config) error {
	o := withoutProject(p.options)
	for _, other := range here.Servers {
		if other.Name == s.Name && o.Identity(other) != o.Identity(s) {
			return fmt.Errorf("another server has this name in %s; rename one of them", other.Source)
		}
	}
	return nil
}

// MoveOut takes servers out of the text of the client's file and puts them into that of
// the other. Their names are by the directory that the client has them for. Comments stay
// where they are.
func (p Target) MoveOut(data, moved []byte, byDir map[string][]string) (rest, to []byte, err error) {
	client, other, err := p.both(data, moved)
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		key := p.in(dir).key(client)
		for _, name := range byDir[dir] {
			if err := move(client, other, append(slices.Clone(key), name)); err != nil {
				return nil, nil, fmt.Errorf("moving %q: %w", name, err)
			}
		}
	}
	if err := inputsOf(data).copy(other, inputsOf(moved)); err != nil {
		return nil, nil, err
	}
	return client.bytes(), other.bytes(), nil
}

// MoveBack undoes MoveOut for these names. A server that the client's file has
// again stays as it is there.
func (p Target) MoveBack(data, moved []byte, byDir map[string][]string) (back, rest []byte, err error) {
	client, other, err := p.both(data, moved)
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		key := p.in(dir).key(other)
		for _, name := range byDir[dir] {
			path := append(slices.Clone(key), name)
			if client.has(path...) {
				_, err = other.cut(path...)
			} else {
				err = move(other, client, path)
			}
			if err != nil && !errors.Is(err, errAbsent) { // the user has removed it
				return nil, nil, fmt.Errorf("moving %q back: %w", name, err)
			}
		}
	}
	return client.bytes(), other.bytes(), nil
}

// Lost returns how many of these servers, which were moved, are in neither file any more.
func (p Target) Lost(data, moved []byte, byDir map[string][]string) (n int, err error) {
	client, other, err := p.both(data, moved)
	if err != nil {
		return 0, err
	}
	for dir, names := range byDir {
		key := p.in(dir).key(other)
		for _, name := range names {
			if path := append(slices.Clone(key), name); !client.has(path...) && !other.has(path...) {
				n++
			}
		}
	}
	return n, nil
}

// both reads the client's file and that of its moved servers.
func (p Target) both(data, moved []byte) (client, other document, err error) {
	if client, err = newDocument(p.File, data); err != nil {
		return nil, nil, err
	}
	if other, err = newDocument(p.MovedFile(), moved); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", p.MovedFile(), err)
	}
	return client, other, nil
}

// move moves a member to the same path of another document.
func move(from, to document, path []string) error {
	if to.has(path...) {
		return fmt.Errorf("%q is there already", path[len(path)-1])
	}
	value, err := from.cut(path...)
	if err != nil {
		return err
	}
	return to.set(value, path...)
}

// HasServers reports whether the text of a file of moved servers has any left.
func (p Target) HasServers(moved []byte) bool {
	p.File = p.MovedFile()
	c, err := p.read(moved, nil)
	return err != nil || slices.ContainsFunc(p.scopes(c, moved, nil), func(s scope) bool { return len(s.entries) > 0 })
}

// inputs are what VS Code asks its user for, in mcp.json and in settings.json.
type inputs struct {
	Inputs []json.RawMessage
	MCP    struct{ Inputs []json.RawMessage }
}

func inputsOf(data []byte) (in inputs) {
	decodeFile("", data, &in) // malformed ones are not there
	return in
}

// copy takes inputs along, as entries name them, to where some are already.
func (in inputs) copy(to document, there inputs) error {
	path, all := []string{"inputs"}, slices.Concat(there.Inputs, in.Inputs)
	if in.Inputs == nil {
		path, all = []string{"mcp", "inputs"}, slices.Concat(there.MCP.Inputs, in.MCP.Inputs)
	}
	if in.Inputs == nil && in.MCP.Inputs == nil {
		return nil
	}
	ids := map[string]bool{}
	all = slices.DeleteFunc(all, func(in json.RawMessage) bool {
		var named struct{ ID string }
		known := json.Unmarshal(in, &named) != nil || ids[named.ID]
		ids[named.ID] = true
		return known
	})
	list, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return to.set(list, path...)
}

// Secrets are values in a text that must not be shown: those of variables and
// headers.
func (p Target) Secrets(data []byte) (secrets []string) {
	file, err := p.open(p.File, data, nil)
	if err != nil {
		return nil
	}
	for _, scope := range p.scopes(&contents{file: file}, data, nil) {
		for _, e := range scope.file.Entries {
			server, _ := scope.file.AsWritten(e) // even where it is broken
			for _, table := range []map[string]string{server.Env, server.Headers} {
				for _, k := range slices.Sorted(maps.Keys(table)) {
					secrets = append(secrets, table[k])
				}
			}
			if server.OAuth != nil {
				secrets = append(secrets, server.OAuth.ClientSecret, server.OAuth.PrivateKey)
			}
		}
	}
	return slices.DeleteFunc(secrets, func(s string) bool { return len(s) < 8 }) // "1" and "true" are none
}

// withoutProject leaves the project out.
func withoutProject(o clientconfig.Options) clientconfig.Options {
	o.Dir = ""
	return o
}
