package mcpproxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// maxConfigSize bounds one file. ~/.claude.json also holds Claude's history
// and can be several MB.
const maxConfigSize = 16 << 20

// A configFile is one file, read: its entries are still as it writes them.
type configFile struct {
	place   place
	dialect *dialect // as the place says, or as was guessed
	base    string   // what relative paths in it are relative to
	data    []byte
	entries []member
	inputs  map[string]Input
	values  map[string]string // of inputs, as the user set them
	off     map[string]bool   // servers that the file switches off elsewhere than in their entries

	reads map[string][]byte // what entries named and was read: path → digest of its text
}

// open reads a file and finds its entries.
func (d *discovery) open(p place) (*configFile, error) {
	f := &configFile{place: p, dialect: p.dialect, base: d.o.Dir, reads: map[string][]byte{}}
	if p.rank != rankProject && p.text == "" {
		f.base = filepath.Dir(p.path)
	}
	f.data = []byte(p.text)
	if p.text == "" {
		var err error
		if f.data, err = readRegular(p.path, maxConfigSize); err != nil {
			return nil, err
		}
	}
	text, err := toJSON(p.path, f.data)
	if err != nil {
		return nil, err
	}
	top, err := members(text)
	if err != nil {
		return nil, err
	}
	found := f.dialect.settings
	if f.dialect.projects {
		if err := f.claudeProject(d.o.Dir, top); err != nil {
			return nil, err
		}
	}
	for _, key := range f.dialect.keys {
		ok, err := f.take(top, key)
		if err != nil {
			return nil, err
		}
		if ok && strings.Contains(key, ".") {
			found = true
			break // mcp.servers is within mcp, which older versions have
		}
		found = found || ok
	}
	if !found && f.dialect.guess {
		found, err = f.guess(top)
	}
	if err != nil {
		return nil, err
	}
	if !found && p.bare && isEntry(top) {
		name := strings.TrimSuffix(filepath.Base(p.path), filepath.Ext(p.path))
		f.entries, found = []member{{name, text}}, true
	}
	if !found {
		return nil, fmt.Errorf("has no %q", f.dialect.keys[0])
	}
	if d.o.Values != nil {
		f.values = d.o.Values(p.path)
	}
	f.readInputs(top)
	f.readSwitches(top)
	return f, nil
}

// isEntry reports whether an object is a server itself.
func isEntry(top []member) bool {
	for _, key := range []string{"command", "cmd", "url", "httpUrl", "serverUrl", "uri"} {
		if _, ok := find(top, key); ok {
			return true
		}
	}
	return false
}

// guess takes the servers under a key that tells whose dialect it is.
func (f *configFile) guess(top []member) (bool, error) {
	for _, g := range guessed {
		if ok, err := f.take(top, g.key); ok || err != nil {
			f.dialect = dialectOf(g.client)
			return ok, err
		}
	}
	return false, nil
}

// take adds the entries under a key, a.b being within an object.
func (f *configFile) take(top []member, key string) (bool, error) {
	first, rest, nested := strings.Cut(key, ".")
	raw, ok := find(top, first)
	if !ok || isNull(raw) {
		return ok && !nested, nil
	}
	if nested {
		inner, err := members(raw)
		if err != nil {
			return false, nil
		}
		// A server may be called "servers": then it has a type or a command.
		if raw, ok := find(inner, rest); ok {
			if one, err := members(raw); err == nil && isEntry(one) {
				return false, nil
			}
		}
		return f.take(inner, rest)
	}
	if list, err := items(raw); err == nil {
		return true, f.takeList(key, list)
	}
	servers, err := members(raw)
	if err != nil {
		return true, fmt.Errorf("%q is not an object of servers", key)
	}
	f.entries = append(f.entries, servers...)
	return true, nil
}

// takeList takes servers that are a list, each with its name in it.
func (f *configFile) takeList(key string, list []json.RawMessage) error {
	if len(list) == 0 && f.dialect.client != "continue" {
		return fmt.Errorf("%q is not an object of servers", key)
	}
	for i, raw := range list {
		all, err := members(raw)
		if err != nil {
			return fmt.Errorf("item %d of %q is not an object", i+1, key)
		}
		var name string
		if text, ok := find(all, "name"); !ok || json.Unmarshal(text, &name) != nil {
			return fmt.Errorf("item %d of %q has no \"name\"", i+1, key)
		}
		f.entries = append(f.entries, member{name, raw})
	}
	return nil
}

// claudeProject takes the servers that the user gave to this project alone.
// They come before the user's others.
func (f *configFile) claudeProject(dir string, top []member) error {
	raw, ok := find(top, "projects")
	if !ok || dir == "" {
		return nil
	}
	projects, err := members(raw)
	if err != nil {
		return errors.New(`"projects" is not an object`)
	}
	for _, dir := range slices.Compact([]string{filepath.Clean(dir), resolved(dir)}) {
		project, ok := find(projects, dir)
		if !ok {
			continue
		}
		settings, err := members(project)
		if err != nil {
			return fmt.Errorf("project %q is not an object", dir)
		}
		if _, err := f.take(settings, "mcpServers"); err != nil {
			return err
		}
		f.switchOff(settings, "disabledMcpServers")
	}
	return nil
}

// readInputs takes what VS Code asks its user for.
func (f *configFile) readInputs(top []member) {
	raw, ok := find(top, "inputs")
	if !ok {
		return
	}
	var all []struct {
		ID, Description, Default string
		Password                 bool
		Options                  []any
	}
	_ = json.Unmarshal(raw, &all) // what is not as it should be is not described
	f.inputs = map[string]Input{}
	for _, in := range all {
		i := Input{ID: in.ID, Description: clip(in.Description, 1024), Default: in.Default, Secret: in.Password}
		for _, o := range in.Options {
			if m, ok := o.(map[string]any); ok { // {"label": …, "value": …}
				o = m["value"]
			}
			if s, ok := o.(string); ok && len(i.Options) < 100 {
				i.Options = append(i.Options, s)
			}
		}
		f.inputs[in.ID] = i
	}
}

// readSwitches takes what Gemini says of its servers outside of their entries.
func (f *configFile) readSwitches(top []member) {
	if f.dialect.client != "gemini" {
		return
	}
	raw, _ := find(top, "mcp")
	mcp, err := members(raw)
	if err != nil {
		return
	}
	f.switchOff(mcp, "excluded")
	var allowed []string
	if raw, ok := find(mcp, "allowed"); !ok || json.Unmarshal(raw, &allowed) != nil || len(allowed) == 0 {
		return
	}
	for _, e := range f.entries {
		if !slices.Contains(allowed, e.name) {
			f.off[e.name] = true
		}
	}
}

// switchOff notes the servers that a list of names switches off.
func (f *configFile) switchOff(settings []member, key string) {
	var names []string
	if raw, ok := find(settings, key); ok {
		_ = json.Unmarshal(raw, &names) // anything else switches nothing off
	}
	if f.off == nil {
		f.off = map[string]bool{}
	}
	for _, n := range names {
		f.off[n] = true
	}
}

// read reads a file that an entry names, and keeps in mind that it did.
func (f *configFile) read(path string) ([]byte, error) {
	if _, known := f.reads[path]; !known && len(f.reads) == maxNamedFiles {
		return nil, fmt.Errorf("is one of more than %d that the config names", maxNamedFiles)
	}
	data, err := readRegular(path, maxNamedFile)
	sum := sha256.Sum256(data)
	f.reads[path] = sum[:]
	return data, err
}

const (
	maxNamedFile  = 1 << 20 // an env file, or a file with one value
	maxNamedFiles = 1000    // by one config file
)

// sum is what trust in the file is kept by: all that decides what it starts.
func (f *configFile) sum() string {
	h := sha256.New()
	own := sha256.Sum256(f.data)
	h.Write(own[:])
	for _, path := range sortedKeys(f.reads) {
		fmt.Fprintf(h, "%q %x\n", path, f.reads[path])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// isConfigName reports whether a file in a folder of config files is one.
func isConfigName(name string) bool {
	switch filepath.Ext(name) {
	case ".json", ".jsonc", ".toml", ".yaml", ".yml":
		return !strings.HasPrefix(name, ".")
	}
	return false
}

// readRegular reads a regular file of bounded size. It opens without waiting,
// because a named pipe in place of the file would hang discovery for ever.
func readRegular(path string, most int64) (data []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENOTDIR) { // a file where a folder would be: there is none
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		return nil, errors.New("is a directory")
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	}
	data, err = io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("is larger than %d MiB", most>>20)
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil // editors on Windows leave a mark
}

// reason strips the path from a file error: a Problem already names the file.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
