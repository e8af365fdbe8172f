package mcpproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxConfigSize bounds one file. ~/.claude.json also holds Claude's history
// and can be several MB.
const maxConfigSize = 16 << 20

// fileKind says what a file may hold besides mcpServers.
type fileKind int

const (
	required   fileKind = 1 << iota // its absence is a problem
	bareEntry                       // may be one entry, named by the file
	claudeFile                      // has settings of all kinds, and servers by project
)

// file reads one config file and adds its entries in the order they stand in.
func (d *discovery) file(path string, kind fileKind) {
	data, err := readConfig(path)
	if errors.Is(err, fs.ErrNotExist) && kind&required == 0 {
		return
	}
	if err != nil {
		d.problem(path, "", reason(err))
		return
	}
	top, err := members(data)
	if err != nil {
		d.problem(path, "", err.Error())
		return
	}
	found := false
	if kind&claudeFile != 0 {
		found = true // a settings file without servers is in order
		d.claudeProject(path, top)
	}
	for _, key := range []string{"mcpServers", "servers"} {
		raw, ok := find(top, key)
		if !ok || kind&claudeFile != 0 && key == "servers" {
			continue
		}
		found = true
		d.entries(path, key, raw)
	}
	if found {
		return
	}
	if _, ok := find(top, "command"); ok && kind&bareEntry != 0 {
		d.add(path, strings.TrimSuffix(filepath.Base(path), ".json"), data)
		return
	}
	d.problem(path, "", `has no "mcpServers"`)
}

// claudeProject adds the servers the user gave to this project alone.
func (d *discovery) claudeProject(path string, top []member) {
	raw, ok := find(top, "projects")
	if !ok || d.o.Dir == "" {
		return
	}
	projects, err := members(raw)
	if err != nil {
		d.problem(path, "", `"projects" is not an object`)
		return
	}
	dirs := []string{filepath.Clean(d.o.Dir)}
	if resolved, err := filepath.EvalSymlinks(d.o.Dir); err == nil && resolved != dirs[0] {
		dirs = append(dirs, resolved)
	}
	for _, dir := range dirs {
		project, ok := find(projects, dir)
		if !ok {
			continue
		}
		settings, err := members(project)
		if err != nil {
			d.problem(path, "", fmt.Sprintf("project %q is not an object", dir))
			continue
		}
		if servers, ok := find(settings, "mcpServers"); ok {
			d.entries(path, "mcpServers", servers)
		}
	}
}

func (d *discovery) entries(path, key string, raw []byte) {
	if isNull(raw) {
		return
	}
	servers, err := members(raw)
	if err != nil {
		d.problem(path, "", fmt.Sprintf("%q is not an object of servers", key))
		return
	}
	for _, m := range servers {
		d.add(path, m.name, m.value)
	}
}

// readConfig reads a regular file of bounded size. It opens without waiting,
// because a named pipe in place of the file would hang discovery for ever.
func readConfig(path string) (data []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
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
	data, err = io.ReadAll(io.LimitReader(f, maxConfigSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxConfigSize {
		return nil, fmt.Errorf("is larger than %d MiB", maxConfigSize>>20)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // editors on Windows leave a mark
	if err := checkJSON(data); err != nil {
		return nil, err
	}
	return data, nil
}

// reason strips the path from a file error: a Problem already names the file.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// checkJSON reports where data stops being JSON, in lines and columns.
func checkJSON(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("is empty")
	}
	var v json.RawMessage
	err := json.Unmarshal(data, &v)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	before := data[:min(max(int(syntax.Offset)-1, 0), len(data))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("is not JSON: line %d, column %d: %w", line, column, syntax)
}

// member is one name and value of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of a JSON object in the order of the text: the
// order decides which of two clashing aliases gets the number, and a Go map
// would throw it away.
func members(data []byte) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("is not a JSON object")
	}
	var all []member
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		m := member{name: name}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

func find(all []member, name string) (json.RawMessage, bool) {
	for _, m := range all {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

func isNull(raw []byte) bool { return string(bytes.TrimSpace(raw)) == "null" }
