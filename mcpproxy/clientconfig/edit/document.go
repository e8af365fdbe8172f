package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/plainjson"
	"go.yaml.in/yaml/v3"
)

// A document is the text of a config file, in which one member at a time is changed.
// Every other byte stays as it was: comments, order, indentation, line ends. A text that
// cannot be changed in this way is refused and stays whole.
type document interface {
	// has reports whether there is a member at path.
	has(path ...string) bool
	// set gives the member at path a value: JSON with its members in the order in which
	// they are to be written. Objects on the way are made.
	set(value json.RawMessage, path ...string) error
	// cut takes the member at path out and returns its value. Comments above and beside it
	// stay.
	cut(path ...string) (value json.RawMessage, err error)
	bytes() []byte
}

// byteOrderMark is what editors on Windows leave.
var byteOrderMark = []byte("\xef\xbb\xbf")

// errAbsent says that there is no such member.
var errAbsent = errors.New("is not there")

// newDocument reads the text of a file, whose name tells the format. No text is a file
// that is not there yet.
func newDocument(file string, data []byte) (document, error) {
	text, marked := bytes.CutPrefix(data, byteOrderMark)
	mark := byteOrderMark
	if !marked {
		mark = nil
	}
	d := &textDocument{tomlFormat{}, file, mark, text}
	switch filepath.Ext(file) {
	case ".toml":
	case ".yaml", ".yml":
		d.format = yamlFormat{}
		// It refuses an object that has a name twice.
		if err := yaml.Unmarshal(text, new(map[string]any)); err != nil {
			return nil, fmt.Errorf("is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
	default:
		return newJSON(mark, text)
	}
	_, err := d.says(text)
	return d, err
}

// A textDocument is TOML or YAML, whose libraries write nothing back as it was. Each
// change is made in the text and then checked: what the text before and after says may
// differ in that one member only.
type textDocument struct {
	format
	file       string // whose name tells the format
	mark, data []byte
}

// A format edits the text of one kind of file. None of its methods changes data.
type format interface {
	// insert adds a member at path, where nothing is.
	insert(data []byte, path []string, value json.RawMessage) ([]byte, error)
	// remove takes out the member at path, which is there.
	remove(data []byte, path []string) ([]byte, error)
	// replace gives the member at path another value.
	replace(data []byte, path []string, value json.RawMessage) ([]byte, error)
}

func (d *textDocument) bytes() []byte { return slices.Concat(d.mark, d.data) }

// plain returns what a text says as JSON. An empty file says nothing.
func (d *textDocument) plain(data []byte) (json.RawMessage, error) {
	if blank(data) {
		return json.RawMessage("{}"), nil
	}
	return plainjson.Convert(d.file, data)
}

// says returns what a text says, in the types that JSON has.
func (d *textDocument) says(data []byte) (top map[string]any, err error) {
	text, err := d.plain(data)
	if err != nil {
		return nil, err
	}
	err = decode(text, &top)
	if top == nil { // null
		top = map[string]any{}
	}
	return top, err
}

func (d *textDocument) has(path ...string) bool {
	top, err := d.says(d.data)
	_, ok := lookUp(top, path)
	return ok && err == nil
}

func (d *textDocument) set(value json.RawMessage, path ...string) error {
	var want any
	if err := decode(value, &want); err != nil {
		return err
	}
	return d.change(func(top map[string]any) error { return put(top, path, want) }, func() ([]byte, error) {
		if d.has(path...) {
			return d.replace(d.data, path, value)
		}
		return d.insert(d.data, path, value)
	})
}

func (d *textDocument) cut(path ...string) (value json.RawMessage, err error) {
	if !d.has(path...) {
		return nil, fmt.Errorf("%q %w", path[len(path)-1], errAbsent)
	}
	if value, err = d.plain(d.data); err != nil {
		return nil, err
	}
	for _, name := range path {
		members, _ := rawjson.Members(value) // they are there
		value, _ = rawjson.Find(members, name)
	}
	return value, d.change(func(top map[string]any) error {
		holder, _ := lookUp(top, path[:len(path)-1])
		delete(holder.(map[string]any), path[len(path)-1])
		return nil
	}, func() ([]byte, error) { return d.remove(d.data, path) })
}

// change makes a change of the text and checks it against the same change of
// what the text says.
func (d *textDocument) change(meant func(map[string]any) error, edit func() ([]byte, error)) error {
	want, err := d.says(d.data)
	if err != nil {
		return err
	}
	if err := meant(want); err != nil {
		return err
	}
	after, err := edit()
	if err != nil {
		return err
	}
	got, err := d.says(after)
	if err != nil {
		return fmt.Errorf("is written in a way that cannot be changed safely (%w); change it by hand", err)
	}
	if !reflect.DeepEqual(dropEmpty(got), dropEmpty(want)) {
		return errByHand
	}
	d.data = after
	return nil
}

var errByHand = errors.New("is written in a way that cannot be changed safely; change it by hand")

// dropEmpty leaves empty objects at the top out of the comparison: TOML has no
// table left when the last one within it is gone.
func dropEmpty(top map[string]any) map[string]any {
	for key, value := range top {
		if m, ok := value.(map[string]any); ok && len(m) == 0 {
			delete(top, key)
		}
	}
	return top
}

func lookUp(top map[string]any, path []string) (any, bool) {
	var at any = top
	for _, key := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = m[key]; !ok {
			return nil, false
		}
	}
	return at, true
}

func put(top map[string]any, path []string, value any) error {
	for _, key := range path[:len(path)-1] {
		next, ok := top[key]
		if !ok || next == nil {
			next = map[string]any{}
			top[key] = next
		}
		if top, ok = next.(map[string]any); !ok {
			return fmt.Errorf("%q is not an object", key)
		}
	}
	top[path[len(path)-1]] = value
	return nil
}

// decode reads JSON with its numbers as they are written.
func decode(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}
