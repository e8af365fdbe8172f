package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
)

// A document is a config file of which one member at a time is changed, and every
// other byte stays as it was: comments, order, indentation, line ends. The zero length
// is a file that is not there yet.
//
// Each change is made in the text and then checked: the text before and after
// are parsed, and what they say may differ in that one member only. A file in
// which that cannot be had is refused, never half changed.
type document struct {
	format format
	data   []byte
	mark   []byte // a byte order mark, which editors on Windows leave
}

// A piece is a member as its file writes it, with the comments that are its
// own: it can be put into another file of the same format.
type piece struct {
	path   []string
	before []byte // comment lines
	member []byte
	after  []byte // a comment on its last line
	indent string // that its lines were written for; empty if they stay as they are
}

// A format edits the text of one kind of file. None of its methods changes data.
type format interface {
	// parse gives what the text says, in types that reflect.DeepEqual compares.
	parse(data []byte) (map[string]any, error)
	// paste adds a piece at the end of the object at path, which is made if it
	// is not there.
	paste(data []byte, path []string, p piece) ([]byte, error)
	// cut takes out the member at path, which is there.
	cut(data []byte, path []string) (rest []byte, p piece, err error)
	// replace gives the member at path another value.
	replace(data []byte, path []string, value json.RawMessage) ([]byte, error)
	// write makes a piece of a value.
	write(data []byte, path []string, value json.RawMessage) (piece, error)
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// errAbsent says that there is no such member.
var errAbsent = errors.New("is not there")

// newDocument reads the text of a file, whose name tells the format.
func newDocument(file string, data []byte) (*document, error) {
	t := &document{format: jsonFormat{}}
	switch filepath.Ext(file) {
	case ".toml":
		t.format = tomlFormat{}
	case ".yaml", ".yml":
		t.format = yamlFormat{}
	}
	if bytes.HasPrefix(data, byteOrderMark) {
		t.mark, data = byteOrderMark, data[len(byteOrderMark):]
	}
	t.data = data
	if _, err := t.parse(data); err != nil {
		return nil, err
	}
	return t, nil
}

// Bytes gives the text as it is now.
func (t *document) Bytes() []byte { return append(bytes.Clone(t.mark), t.data...) }

// parse takes an empty file for one that says nothing.
func (t *document) parse(data []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return map[string]any{}, nil
	}
	return t.format.parse(data)
}

// Has reports whether there is a member at path.
func (t *document) Has(path ...string) bool {
	top, err := t.parse(t.data)
	if err != nil {
		return false
	}
	_, ok := lookUp(top, path)
	return ok
}

// Set gives the member at path a value, which is JSON with its members in the
// order in which they are to be written.
func (t *document) Set(value json.RawMessage, path ...string) error {
	var want any
	if err := decode(value, &want); err != nil {
		return err
	}
	return t.change(func(top map[string]any) error { return put(top, path, want) }, func() ([]byte, error) {
		if t.Has(path...) {
			return t.format.replace(t.data, path, value)
		}
		p, err := t.format.write(t.data, path, value)
		if err != nil {
			return nil, err
		}
		return t.format.paste(t.data, path[:len(path)-1], p)
	})
}

// Cut takes the member at path out.
func (t *document) Cut(path ...string) (p piece, err error) {
	if !t.Has(path...) {
		return p, fmt.Errorf("%q %w", path[len(path)-1], errAbsent)
	}
	err = t.change(func(top map[string]any) error {
		holder, _ := lookUp(top, path[:len(path)-1])
		delete(holder.(map[string]any), path[len(path)-1])
		return nil
	}, func() (rest []byte, err error) {
		rest, p, err = t.format.cut(t.data, path)
		return rest, err
	})
	p.path = slices.Clone(path)
	return p, err
}

// Paste puts a piece in at the path that it was cut from.
func (t *document) Paste(p piece) error {
	// What it says is read by making a file of it alone.
	alone, err := t.format.paste(nil, p.path[:len(p.path)-1], p)
	if err != nil {
		return err
	}
	says, err := t.parse(alone)
	if err != nil {
		return err
	}
	want, ok := lookUp(says, p.path)
	if !ok {
		return fmt.Errorf("%q cannot stand in a file of its own", p.path[len(p.path)-1])
	}
	if t.Has(p.path...) {
		return fmt.Errorf("%q is there already", p.path[len(p.path)-1])
	}
	return t.change(func(top map[string]any) error { return put(top, p.path, want) }, func() ([]byte, error) {
		return t.format.paste(t.data, p.path[:len(p.path)-1], p)
	})
}

// Only gives a text with nothing but these members of the top, to work on
// where the whole is large, as ~/.claude.json is: Graft puts the outcome back.
func (t *document) Only(keys ...string) (*document, error) {
	part := &document{format: t.format, data: t.data}
	if _, ok := t.format.(jsonFormat); !ok || blank(t.data) {
		return part, nil // people write these by hand: they are small
	}
	var err error
	part.data, err = onlyMembers(t.data, keys)
	return part, err
}

// Graft takes the member of the top over from a text that Only gave.
func (t *document) Graft(part *document, key string) error {
	if _, ok := t.format.(jsonFormat); !ok || blank(t.data) {
		t.data = part.data
		return nil
	}
	says, err := part.parse(part.data)
	if err != nil {
		return err
	}
	value, ok := says[key]
	if !ok {
		return nil
	}
	return t.change(func(top map[string]any) error { return put(top, []string{key}, value) }, func() ([]byte, error) {
		return graft(t.data, part.data, key)
	})
}

// change makes a change of the text and checks it against the same change of
// what the text says.
func (t *document) change(meant func(map[string]any) error, edit func() ([]byte, error)) error {
	want, err := t.parse(t.data)
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
	got, err := t.parse(after)
	if err != nil {
		return fmt.Errorf("is written in a way that cannot be changed safely (%w); change it by hand", err)
	}
	if !reflect.DeepEqual(dropEmpty(got), dropEmpty(want)) {
		return errByHand
	}
	t.data = after
	return nil
}

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
