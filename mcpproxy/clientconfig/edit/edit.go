// Package edit changes the config files of MCP clients: it adds this program to one,
// moves the client's other servers behind it, and undoes both. It changes texts, and
// writes no file.
package edit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/plainjson"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// An Entry is how this program is to be started by a client.
type Entry struct {
	Name    string // of a new entry; empty is "toolcell"
	Command string // an absolute path
	Env     map[string]string
	// OldNames are other names of variables in Env, by these: programs take either, but not both
	// with different values.
	OldNames map[string]string
}

// What Install did.
const (
	Added     = "added"
	Updated   = "updated"
	Unchanged = "already there"
)

// Result is what became of an entry for this program.
type Result struct {
	Name string
	Did  string
	Was  string // what an entry that was updated started before
	Off  bool   // the file has it switched off
	// NotNamed is the name that was asked for, if an entry that was there has another.
	NotNamed string
}

// Install puts an entry for this program into the text of the file. One that is
// there, under whatever name, is brought up to date: its command, and what Env has; the
// rest of it is the user's. A second one would have the client offer the tool twice.
func (p Target) Install(data []byte, self Entry) ([]byte, Result, error) {
	c, err := p.read(data, nil)
	if err != nil {
		return nil, Result{}, err
	}
	put := Result{Name: cmp.Or(self.Name, clientconfig.ProgramName), Did: Added}
	i := p.indexOf(c.entries, self.Name, put.Name)
	if i < 0 {
		if err := config.CheckName(put.Name); err != nil {
			return nil, put, fmt.Errorf("naming it %q: %w", put.Name, err)
		}
		if err := c.set(p.entry(self.Command, []string{"serve"}, self.Env), c.path(put.Name)...); err != nil {
			return nil, put, err
		}
		after, err := p.open(p.File, c.bytes(), nil)
		put.Off = err == nil && slices.ContainsFunc(parsed(after), func(e clientconfig.Entry) bool {
			return e.Name == put.Name && e.Disabled // by a list elsewhere in the file
		})
		return c.bytes(), put, err
	}
	e := c.entries[i]
	put.Name, put.Off = e.Name, e.Disabled
	if self.Name != "" && self.Name != e.Name {
		put.NotNamed = self.Name
	}
	if e.Disabled {
		return nil, put, fmt.Errorf("has a server %q that is switched off: switch it on there, or choose another name with --name", e.Name)
	}
	if !p.starts(e) {
		return nil, put, fmt.Errorf("has a server %q that starts something else (%s); choose another name with --name", e.Name, cmp.Or(e.Server.Launch(), "unreadable"))
	}
	was, err := c.file.AsWritten(c.file.Entries[i]) // the values of the client's variables are never written
	if err == nil {
		err = p.update(c, e.Name, was, self)
	}
	if err != nil {
		return nil, put, err
	}
	if put.Did = Unchanged; !bytes.Equal(c.bytes(), data) {
		put.Did, put.Was = Updated, e.Server.Command
	}
	return c.bytes(), put, nil
}

// indexOf finds the entry to bring up to date: the one that was asked for, if it is for
// this program, else another that is, else what has the name of a new one. It returns -1
// if there is none. Beside an entry that is switched off, the user may want a second.
func (p Target) indexOf(all []clientconfig.Entry, asked, name string) int {
	for _, is := range []func(clientconfig.Entry) bool{
		func(e clientconfig.Entry) bool { return e.Name == asked && p.starts(e) },
		func(e clientconfig.Entry) bool { return p.starts(e) && (asked == "" || !e.Disabled) },
		func(e clientconfig.Entry) bool { return e.Name == name },
	} {
		if i := slices.IndexFunc(all, is); i >= 0 {
			return i
		}
	}
	return -1
}

// update corrects the command of an entry, if that is a path to this program
// and not a launcher's, and sets variables.
func (p Target) update(c *contents, name string, was config.Server, self Entry) error {
	set := func(value any, within ...string) error {
		raw, err := json.Marshal(value)
		return errors.Join(err, c.set(raw, c.path(append([]string{name}, within...)...)...))
	}
	f := p.dialect.Fields
	direct := filepath.Base(was.Command) == clientconfig.ProgramName || filepath.Base(was.Command) == filepath.Base(self.Command)
	if direct && !sameProgram(was.Command, self.Command) {
		args := was.Args
		if len(args) == 0 {
			args = []string{"serve"}
		}
		var value any = self.Command
		if f.CommandList {
			value = append([]string{self.Command}, args...)
		} else if len(was.Args) == 0 {
			if err := set(args, "args"); err != nil {
				return err
			}
		}
		if err := set(value, preferred(f.Command, "command")); err != nil {
			return err
		}
	}
	env := preferred(f.Env, "env")
	for _, k := range slices.Sorted(maps.Keys(self.Env)) {
		want, old := self.Env[k], self.OldNames[k]
		v, there := was.Env[k]
		oldValue, oldThere := was.Env[old]
		if (there || oldThere) && (!there || v == want) && (!oldThere || oldValue == want) {
			continue
		}
		var err error
		if oldThere {
			_, err = c.cut(c.path(name, env, old)...)
		}
		if err != nil || set(want, env, k) != nil {
			// A form that has no place for one more: the whole of them is written.
			all := map[string]string{}
			maps.Copy(all, was.Env)
			maps.Copy(all, self.Env)
			maps.DeleteFunc(all, func(name, _ string) bool { return slices.Contains(slices.Collect(maps.Values(self.OldNames)), name) })
			return set(all, env)
		}
	}
	return nil
}

func preferred(names []string, usual string) string {
	return append(slices.Clone(names), usual)[0]
}

// sameProgram reports whether a command is the path of this program: another
// name of the same file is as good, and a bare name may not be found.
func sameProgram(command, want string) bool {
	return command == want || filepath.IsAbs(command) && state.SameFile(command, want)
}

// Uninstall takes the entry for this program out: the one with the name, or
// with any name if it is empty. The key goes too if it is empty then and
// withKey is set.
func (p Target) Uninstall(data []byte, name string, withKey bool) ([]byte, string, error) {
	c, err := p.read(data, nil)
	if err != nil {
		return nil, "", err
	}
	i := slices.IndexFunc(c.entries, func(e clientconfig.Entry) bool { return p.starts(e) && (name == "" || e.Name == name) })
	if i < 0 {
		return data, "", nil
	}
	name = c.entries[i].Name
	_, err = c.cut(c.path(name)...)
	if withKey && len(c.entries) == 1 && err == nil && c.has(c.key...) {
		_, err = c.cut(c.key...)
	}
	if err != nil {
		return nil, "", err
	}
	return c.bytes(), name, nil
}

// HasKey reports whether the file has a place for servers already.
func (p Target) HasKey(data []byte) bool {
	text, err := newDocument(p.File, data)
	return err == nil && text.has(p.key(text)...)
}

// Others counts the servers in a file that are not this program, and finds the
// entry that is.
func (p Target) Others(data []byte) (self string, others int, err error) {
	c, err := p.read(data, nil)
	if err != nil {
		return "", 0, err
	}
	for _, scope := range p.scopes(c, data, nil) {
		for _, e := range scope.entries {
			if starts := p.starts(e); starts && scope.dir == "" {
				self = e.Name
			} else if !starts && !e.Disabled && !slices.Contains(scope.off, e.Name) {
				others++
			}
		}
	}
	return self, others, nil
}

// A SelfEntry is an entry in a client's file that starts this program, itself and not
// through a launcher or a shell.
type SelfEntry struct {
	Name    string
	Command string // as the file has it
	Path    string // the program that is found there, "" if there is none
	Dir     string // the state folder that it names, "" if it names none
}

// SelfEntries returns the entries for this program that are switched on, wherever the
// program was when they were written.
func (p Target) SelfEntries(data []byte) (found []SelfEntry, err error) {
	c, err := p.read(data, nil)
	if err != nil {
		return nil, err
	}
	for _, e := range c.entries {
		direct := filepath.Base(e.Server.Command) == clientconfig.ProgramName || filepath.Base(e.Server.Command) == filepath.Base(p.options.Self)
		if direct && !e.Disabled && p.starts(e) {
			dir := cmp.Or(e.Server.Env["TOOLCELL_STATE_DIR"], e.Server.Env["MCP_BRIDGE_STATE_DIR"])
			found = append(found, SelfEntry{e.Name, e.Server.Command, e.Server.LookPath(p.options.Dir, e.Server.Command), dir})
		}
	}
	return found, nil
}

// contents are the text of a file and the servers in it.
type contents struct {
	document
	key     []string             // where the servers are
	file    *clientconfig.File   // nil if there is no such place
	entries []clientconfig.Entry // in the order of the file
}

// path is where something of a server is.
func (c *contents) path(within ...string) []string { return slices.Concat(c.key, within) }

// read parses a text. Values are those that the user set for inputs of the file.
func (p Target) read(data []byte, values map[string]string) (*contents, error) {
	if len(data) > clientconfig.MaxSize {
		return nil, fmt.Errorf("is larger than %d MiB", clientconfig.MaxSize>>20)
	}
	if plain := bytes.Clone(bytes.TrimPrefix(data, byteOrderMark)); !blank(plain) {
		if _, err := plainjson.Convert(p.File, plain); err != nil { // bounds how deep it is nested
			return nil, err
		}
	}
	doc, err := newDocument(p.File, data)
	if err != nil {
		return nil, err
	}
	c := &contents{document: doc, key: p.key(doc)}
	if doc.has(c.key...) {
		if c.file, err = p.open(p.File, data, values); err == nil {
			c.entries = parsed(c.file)
		}
	}
	return c, err
}

func parsed(f *clientconfig.File) (all []clientconfig.Entry) {
	for _, e := range f.Entries {
		all = append(all, f.Parse(e))
	}
	return all
}

// open finds the entries of a text, which is not empty, as if it were the file
// at path.
func (p Target) open(path string, data []byte, values map[string]string) (*clientconfig.File, error) {
	o := p.options
	o.Values = func(string) map[string]string { return values }
	text := string(bytes.TrimPrefix(data, byteOrderMark))
	at := clientconfig.Location{Path: path, Dialect: p.dialect, Text: text}
	if p.Project {
		at = at.OfProject()
	}
	return clientconfig.Open(at, o)
}

// starts reports whether an entry is for this program, wherever that was when
// the entry was written.
func (p Target) starts(e clientconfig.Entry) bool {
	var part clientconfig.ClientPart
	if errors.As(e.Err, &part) || e.Server.Command == "" {
		return false
	}
	return filepath.Base(e.Server.Command) == clientconfig.ProgramName || p.options.StartsSelf(e.Server) && !clientconfig.StartsOriginal(e.Server)
}
