// Package edit changes the config files of MCP clients: it adds this program to one,
// moves the client's other servers behind it, and undoes both. It changes texts, and
// writes no file.
package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/plainjson"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// An Entry is how this program is to be started by a client.
type Entry struct {
	Name    string // of a new entry; empty is "toolcell"
	Command string // an absolute path
	Env     map[string]string
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
	text, key, all, err := p.read(data)
	if err != nil {
		return nil, Result{}, err
	}
	put := Result{Name: self.Name, Did: Added}
	if put.Name == "" {
		put.Name = clientconfig.ProgramName
	}
	i := p.indexOf(all, self.Name, put.Name)
	if i < 0 {
		if err := config.CheckName(put.Name); err != nil {
			return nil, put, fmt.Errorf("naming it %q: %w", put.Name, err)
		}
		if err := text.Set(p.entry(self.Command, []string{"serve"}, self.Env), append(key, put.Name)...); err != nil {
			return nil, put, err
		}
		after, err := p.entries(p.File, bytes.TrimPrefix(text.Bytes(), []byte("\xef\xbb\xbf")))
		put.Off = slices.ContainsFunc(after, func(e clientconfig.Entry) bool { return e.Name == put.Name && e.Disabled }) // by a list elsewhere in the file
		return text.Bytes(), put, err
	}
	e := all[i]
	put.Name, put.Off = e.Name, e.Disabled
	if self.Name != "" && self.Name != e.Name {
		put.NotNamed = self.Name
	}
	if e.Disabled {
		return nil, put, fmt.Errorf("has a server %q that is switched off: switch it on there, or choose another name with --name", e.Name)
	}
	if !p.starts(e) {
		return nil, put, fmt.Errorf("has a server %q that starts something else (%s); choose another name with --name", e.Name, oneOf(e.Server.Launch(), "unreadable"))
	}
	was, err := p.written(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), e.Name)
	if err == nil {
		err = p.update(text, append(key, e.Name), was, self)
	}
	if err != nil {
		return nil, put, err
	}
	if put.Did = Unchanged; !bytes.Equal(text.Bytes(), data) {
		put.Did, put.Was = Updated, e.Server.Command
	}
	return text.Bytes(), put, nil
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

func oneOf(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// update corrects the command of an entry, if that is a path to this program
// and not a launcher's, and sets variables.
func (p Target) update(text *document, at []string, s config.Server, self Entry) error {
	f := p.dialect.Fields
	direct := filepath.Base(s.Command) == clientconfig.ProgramName || filepath.Base(s.Command) == filepath.Base(self.Command)
	if direct && !sameProgram(s.Command, self.Command) {
		args := s.Args
		if len(args) == 0 {
			args = []string{"serve"}
		}
		command := preferred(f.Command, "command")
		var value any = self.Command
		if f.CommandList {
			value = append([]string{self.Command}, args...)
		} else if len(s.Args) == 0 {
			if err := setValue(text, args, append(at, "args")); err != nil {
				return err
			}
		}
		if err := setValue(text, value, append(at, command)); err != nil {
			return err
		}
	}
	env := preferred(f.Env, "env")
	for _, k := range slices.Sorted(maps.Keys(self.Env)) {
		if v, ok := s.Env[k]; ok && v == self.Env[k] {
			continue
		}
		if err := setValue(text, self.Env[k], append(at, env, k)); err != nil {
			// A form that has no place for one more: the whole of them is written.
			all := map[string]string{}
			maps.Copy(all, s.Env)
			maps.Copy(all, self.Env)
			return setValue(text, all, append(at, env))
		}
	}
	return nil
}

// setValue sets the value at path. It passes on a copy of path, since callers
// build several paths by appending to the same slice.
func setValue(text *document, value any, path []string) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return text.Set(raw, slices.Clone(path)...)
}

func preferred(names []string, usual string) string {
	if len(names) > 0 {
		return names[0]
	}
	return usual
}

// sameProgram reports whether a command is the path of this program: another
// name of the same file is as good, and a bare name may not be found.
func sameProgram(command, want string) bool {
	if command == want {
		return true
	}
	a, err := os.Stat(command)
	if err != nil || !filepath.IsAbs(command) {
		return false
	}
	b, err := os.Stat(want)
	return err == nil && os.SameFile(a, b)
}

// Uninstall takes the entry for this program out: the one with the name, or
// with any name if it is empty. The key goes too if it is empty then and
// withKey is set.
func (p Target) Uninstall(data []byte, name string, withKey bool) ([]byte, string, error) {
	text, key, all, err := p.read(data)
	if err != nil {
		return nil, "", err
	}
	i := slices.IndexFunc(all, func(e clientconfig.Entry) bool { return p.starts(e) && (name == "" || e.Name == name) })
	if i < 0 {
		return data, "", nil
	}
	if _, err := text.Cut(append(key, all[i].Name)...); err != nil {
		return nil, "", err
	}
	if withKey && len(all) == 1 && text.Has(key...) {
		if _, err := text.Cut(key...); err != nil {
			return nil, "", err
		}
	}
	return text.Bytes(), all[i].Name, nil
}

// HasKey reports whether the file has a place for servers already.
func (p Target) HasKey(data []byte) bool {
	text, err := newDocument(p.File, data)
	return err == nil && text.Has(p.key(text.Has)...)
}

// Others counts the servers in a file that are not this program, and finds the
// entry that is.
func (p Target) Others(data []byte) (self string, others int, err error) {
	_, _, all, err := p.read(data)
	for _, e := range all {
		if p.starts(e) {
			self = e.Name
		} else if !e.Disabled {
			others++
		}
	}
	for _, scope := range p.localScopes(data) {
		for _, e := range scope.entries(p) {
			if !e.Disabled && !slices.Contains(scope.off, e.Name) && !p.starts(e) {
				others++
			}
		}
	}
	return self, others, err
}

// Example is what a file with nothing but the entry says.
func (p Target) Example(self Entry) (string, error) {
	out, _, err := p.Install(nil, self)
	return string(out), err
}

// read parses a text and the entries in it, which are in the order of the file.
func (p Target) read(data []byte) (text *document, key []string, all []clientconfig.Entry, err error) {
	if len(data) > clientconfig.MaxSize {
		return nil, nil, nil, fmt.Errorf("is larger than %d MiB", clientconfig.MaxSize>>20)
	}
	plain := bytes.Clone(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))) // parsing blanks comments out in place
	if len(bytes.TrimSpace(plain)) > 0 {
		if _, err := plainjson.Convert(p.File, plain); err != nil { // bounds how deep it is nested
			return nil, nil, nil, err
		}
	}
	if text, err = newDocument(p.File, data); err != nil {
		return nil, nil, nil, err
	}
	if key = p.key(text.Has); !text.Has(key...) {
		return text, key, nil, nil
	}
	all, err = p.entries(p.File, plain)
	return text, key, all, err
}

// entries parses those of a text as if it were the file at path.
func (p Target) entries(path string, text []byte) ([]clientconfig.Entry, error) {
	f, err := p.open(path, text, nil)
	if err != nil {
		return nil, err
	}
	var all []clientconfig.Entry
	for _, e := range f.Entries {
		all = append(all, f.Parse(e))
	}
	return all, nil
}

// open finds the entries of a text, which is not empty, as if it were the file
// at path.
func (p Target) open(path string, text []byte, values map[string]string) (*clientconfig.File, error) {
	o := p.options.Files()
	o.Values = func(string) map[string]string { return values }
	return clientconfig.Open(clientconfig.Location{Path: path, Dialect: p.dialect, Text: string(text)}, o)
}

// written is an entry of this program as its file writes it: variables of the
// client are its own, and their values are never written.
func (p Target) written(data []byte, name string) (config.Server, error) {
	f, err := p.open(p.File, bytes.Clone(data), nil)
	if err != nil {
		return config.Server{}, err
	}
	raw, _ := rawjson.Find(f.Entries, name)
	return f.AsWritten(rawjson.Member{Name: name, Value: raw})
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
