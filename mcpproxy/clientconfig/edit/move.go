package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/plainjson"
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
func (p Target) PlanMove(data []byte, values map[string]string) (Move, error) {
	var m Move
	text, key, all, err := p.read(data)
	if err != nil {
		return m, err
	}
	beside := []string{key[0], "inputs", "mcp"} // Gemini's switches are in mcp
	slices.Sort(beside)
	part, err := text.Only(slices.Compact(beside)...)
	if err != nil {
		return m, err
	}
	here, off := clientconfig.Discover(withoutProject(p.options)), p.offSomewhere(data)
	for _, e := range all {
		if p.starts(e) {
			continue
		}
		if dir := off[e.Name]; dir != "" {
			m.Stay = append(m.Stay, config.Problem{Source: p.File, Server: e.Name, Reason: "it is switched off in " + dir + ", which only " + p.Title + " knows of"})
			continue
		}
		moving, err := p.moving(part.Bytes(), e, values, here)
		if err != nil {
			m.Stay = append(m.Stay, config.Problem{Source: p.File, Server: e.Name, Reason: err.Error()})
			continue
		}
		m.Servers = append(m.Servers, moving)
	}
	local := p.planLocal(data, values, here)
	return Move{append(m.Servers, local.Servers...), append(m.Stay, local.Stay...)}, nil
}

// offSomewhere finds servers that Claude Code has switched off in single
// directories, by name.
func (p Target) offSomewhere(data []byte) map[string]string {
	var top struct {
		Projects map[string]struct{ DisabledMcpServers []string }
	}
	off := map[string]string{}
	if text, err := plainjson.Convert(p.File, bytes.Clone(data)); p.dialect.Client != "claude" || err != nil || json.Unmarshal(text, &top) != nil {
		return off
	}
	for _, dir := range slices.Sorted(maps.Keys(top.Projects)) {
		for _, name := range top.Projects[dir].DisabledMcpServers {
			off[name] = dir
		}
	}
	return off
}

// moving tries the move of one entry.
func (p Target) moving(data []byte, e clientconfig.Entry, values map[string]string, here config.Config) (Moving, error) {
	to := Moving{Name: e.Name}
	_, moved, err := p.MoveOut(data, nil, []string{e.Name})
	if err != nil {
		return to, err
	}
	before, err := p.one(p.File, data, values, e.Name)
	if err != nil {
		return to, err
	}
	after, err := p.one(p.MovedFile(), moved, values, e.Name)
	if err != nil {
		return to, err
	}
	to.Disabled = before.Disabled
	for _, in := range before.Inputs {
		if !in.Asked && !slices.Contains(to.Variables, in.ID) {
			to.Variables = append(to.Variables, in.ID)
		}
	}
	switch {
	case before.Err != nil:
		return to, fmt.Errorf("it cannot be used from here: %w", before.Err)
	case after.Err != nil:
		return to, fmt.Errorf("it depends on where its file is: %w", after.Err)
	case before.Disabled != after.Disabled:
		return to, errors.New("it is switched off outside of its entry; switch it off in it, or take it out")
	case before.Disabled:
		return to, nil
	case before.Server.Fingerprint() != after.Server.Fingerprint():
		return to, errors.New("it depends on where its file is; write whole paths")
	}
	if err := before.Server.CheckPaths(); err != nil {
		return to, err
	}
	return to, p.shadowed(before.Server, here)
}

// one reads a single entry of a text.
func (p Target) one(path string, text []byte, values map[string]string, name string) (clientconfig.Entry, error) {
	f, err := p.open(path, text, values)
	if err != nil {
		return clientconfig.Entry{}, err
	}
	for _, e := range f.Entries {
		if e.Name == name {
			return f.Parse(e), nil
		}
	}
	return clientconfig.Entry{}, fmt.Errorf("%q %w", name, errAbsent)
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

// MoveOut takes servers out of the text of the client's file and puts them into
// that of the other, as they are written.
func (p Target) MoveOut(data, moved []byte, names []string) (rest, to []byte, err error) {
	from, err := newDocument(p.File, data)
	if err != nil {
		return nil, nil, err
	}
	target, err := newDocument(p.MovedFile(), moved)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", p.MovedFile(), err)
	}
	key := p.key(from.Has)
	part, err := from.Only(key[0])
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		piece, err := part.Cut(append(slices.Clone(key), name)...)
		if err == nil {
			err = target.Paste(piece)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("moving %q: %w", name, err)
		}
	}
	if err := errors.Join(from.Graft(part, key[0]), copyInputs(from, target, data, moved)); err != nil {
		return nil, nil, err
	}
	return from.Bytes(), target.Bytes(), nil
}

// MoveBack undoes MoveOut for these names. A server that the client's file has
// again stays as it is there.
func (p Target) MoveBack(data, moved []byte, names []string) (client, rest []byte, err error) {
	to, err := newDocument(p.File, data)
	if err != nil {
		return nil, nil, err
	}
	from, err := newDocument(p.MovedFile(), moved)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", p.MovedFile(), err)
	}
	key := p.key(from.Has)
	part, err := to.Only(key[0])
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		piece, err := from.Cut(append(slices.Clone(key), name)...)
		if errors.Is(err, errAbsent) {
			continue // the user has removed it
		}
		if err == nil && !part.Has(append(slices.Clone(key), name)...) {
			err = part.Paste(piece)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("moving %q back: %w", name, err)
		}
	}
	if err := to.Graft(part, key[0]); err != nil {
		return nil, nil, err
	}
	return to.Bytes(), from.Bytes(), nil
}

// HasServers reports whether the text of a file of moved servers has any left.
func (p Target) HasServers(moved []byte) bool {
	if len(p.localScopes(moved)) > 0 {
		return true
	}
	if text, err := newDocument(p.MovedFile(), moved); err != nil || !text.Has(p.key(text.Has)...) {
		return err != nil
	}
	all, err := p.entries(p.MovedFile(), moved)
	return err != nil || len(all) > 0
}

// copyInputs takes along what VS Code asks its user for: entries name it.
func copyInputs(from, to *document, data, moved []byte) error {
	at := []string{"inputs"}
	if !from.Has(at...) {
		at = []string{"mcp", "inputs"} // of settings.json
	}
	if !from.Has(at...) {
		return nil
	}
	var all []json.RawMessage
	ids := map[string]bool{}
	for _, text := range [][]byte{moved, data} {
		for _, in := range inputsOf(text, at) {
			var named struct{ ID string }
			if json.Unmarshal(in, &named) == nil && !ids[named.ID] {
				ids[named.ID] = true
				all = append(all, in)
			}
		}
	}
	list, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return to.Set(list, at...)
}

// inputsOf returns the inputs in a text; malformed ones are not there.
func inputsOf(text []byte, at []string) (inputs []json.RawMessage) {
	value, err := plainjson.FromJSONC(bytes.Clone(text))
	for _, name := range at {
		members, _ := rawjson.Members(value)
		value, _ = rawjson.Find(members, name)
	}
	if err == nil {
		_ = json.Unmarshal(value, &inputs)
	}
	return inputs
}

// Secrets are values in a text that must not be shown: those of variables and
// headers.
func (p Target) Secrets(data []byte) []string {
	f, err := p.open(p.File, bytes.Clone(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))), nil)
	if err != nil {
		return nil
	}
	var secrets []string
	servers := []config.Server{}
	for _, e := range f.Entries {
		server, _ := f.AsWritten(e) // even where it is broken
		servers = append(servers, server)
	}
	for _, scope := range p.localScopes(data) {
		if local, err := p.In(scope.dir).open(p.File, scope.text(), nil); err == nil {
			for _, e := range local.Entries {
				server, _ := local.AsWritten(e)
				servers = append(servers, server)
			}
		}
	}
	for _, server := range servers {
		for _, table := range []map[string]string{server.Env, server.Headers} {
			for _, k := range slices.Sorted(maps.Keys(table)) {
				secrets = append(secrets, table[k])
			}
		}
		if server.OAuth != nil {
			secrets = append(secrets, server.OAuth.ClientSecret)
		}
	}
	return slices.DeleteFunc(secrets, func(s string) bool { return len(s) < 8 }) // "1" and "true" are none
}

// withoutProject leaves the project out.
func withoutProject(o clientconfig.Options) clientconfig.Options {
	o.Dir = ""
	return o
}
