package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// A jsonDocument is JSON, with comments and trailing commas where they are. hujson
// keeps every byte between values, so a change is made in its tree.
type jsonDocument struct {
	mark, original []byte
	root           hujson.Value // an object
	changed        bool
	step, lineEnd  string // how its lines are indented, and end
}

func newJSON(mark, data []byte) (*jsonDocument, error) {
	d := &jsonDocument{mark: mark, original: data, step: "  ", lineEnd: lineEnd(data)}
	text := bytes.Clone(data) // the tree is made of pieces of it
	if blank(text) {
		text = []byte("{}\n")
	}
	var err error
	if d.root, err = hujson.Parse(text); err != nil {
		// It wants an end to the last comment.
		ended, again := hujson.Parse(append(text, '\n'))
		if again != nil {
			return nil, fmt.Errorf("is not JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))
		}
		ended.AfterExtra = ended.AfterExtra[:len(ended.AfterExtra)-1]
		d.root = ended
	}
	top, ok := d.root.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("is not a JSON object")
	}
	if len(top.Members) > 0 {
		if in, own := indentation(top.Members[0].Name.BeforeExtra); own && in != "" {
			d.step = in
		}
	}
	err = checkTwice(top)
	for _, m := range top.Members {
		if o, ok := m.Value.Value.(*hujson.Object); ok && err == nil {
			err = checkTwice(o)
		}
	}
	return d, err
}

// checkTwice refuses an object that has a name twice: which of them counts, every reader
// decides for itself.
func checkTwice(o *hujson.Object) error {
	seen := map[string]bool{}
	for _, m := range o.Members {
		name := nameOf(m)
		if seen[name] {
			return fmt.Errorf("has %q twice in one object; take one out", name)
		}
		seen[name] = true
	}
	return nil
}

func nameOf(m hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

func indexOf(o *hujson.Object, name string) int {
	return slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return nameOf(m) == name })
}

// at returns the value at path, nil if there is none.
func (d *jsonDocument) at(path []string) *hujson.Value {
	var pointer strings.Builder
	for _, name := range path {
		pointer.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return d.root.Find(pointer.String())
}

func (d *jsonDocument) has(path ...string) bool { return d.at(path) != nil }

func (d *jsonDocument) bytes() []byte {
	if !d.changed {
		return slices.Concat(d.mark, d.original)
	}
	return slices.Concat(d.mark, d.root.Pack())
}

func (d *jsonDocument) set(value json.RawMessage, path ...string) error {
	d.openHollow(path[:len(path)-1])
	at := &d.root
	indent, _ := indentation(at.BeforeExtra)
	for i, name := range path {
		o, ok := at.Value.(*hujson.Object)
		if !ok {
			return fmt.Errorf("%q is not an object", path[i-1])
		}
		if err := checkTwice(o); err != nil {
			return err
		}
		n := indexOf(o, name)
		if n < 0 {
			for _, outer := range slices.Backward(path[i+1:]) {
				value = slices.Concat([]byte("{"+quote(outer)+":"), value, []byte("}"))
			}
			return d.add(o, indent, name, value)
		}
		for _, m := range o.Members[:n+1] { // those before it may stand on its line
			if in, own := indentation(m.Name.BeforeExtra); own {
				indent = in
			}
		}
		at = &o.Members[n].Value
	}
	v, err := d.formatted(value, indent)
	at.Value, d.changed = v.Value, d.changed || err == nil
	return err
}

// openHollow empties a document that is {} at this path and nothing else, on one line:
// it has no indentation to follow.
func (d *jsonDocument) openHollow(path []string) {
	hollow := "{}"
	for _, name := range slices.Backward(path) {
		hollow = "{" + quote(name) + ":" + hollow + "}"
	}
	text := (hujson.Value{Value: d.root.Value}).String()
	if !strings.Contains(text, "\n") && strings.Join(strings.Fields(text), "") == hollow {
		d.root.Value = &hujson.Object{}
	}
}

// add puts a member behind the last of an object, whose line has this indentation.
func (d *jsonDocument) add(o *hujson.Object, indent, name string, value json.RawMessage) error {
	inner, comma := indent+d.step, hujson.Extra(nil)
	if n := len(o.Members); n > 0 {
		last := o.Members[n-1]
		if in, own := indentation(last.Name.BeforeExtra); own {
			inner = in
		}
		if last.Value.AfterExtra != nil { // a trailing comma, as the others have it
			comma = hujson.Extra{}
		}
	}
	v, err := d.formatted(value, inner)
	if err != nil {
		return err
	}
	// It goes behind what follows on the line of the last member.
	beside, below := bytes.TrimRight(o.AfterExtra, " \t"), []byte(d.lineEnd+indent)
	if i := lineBreak(o.AfterExtra); i >= 0 {
		beside, below = o.AfterExtra[:i], o.AfterExtra[i:]
	}
	o.AfterExtra = below
	o.Members = append(o.Members, hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: slices.Concat(beside, []byte(d.lineEnd+inner)), Value: hujson.String(name)},
		Value: hujson.Value{BeforeExtra: []byte(" "), Value: v.Value, AfterExtra: comma},
	})
	d.changed = true
	return nil
}

func (d *jsonDocument) cut(path ...string) (json.RawMessage, error) {
	name := path[len(path)-1]
	var o *hujson.Object
	if v := d.at(path[:len(path)-1]); v != nil {
		o, _ = v.Value.(*hujson.Object)
	}
	if o == nil || indexOf(o, name) < 0 {
		return nil, fmt.Errorf("%q %w", name, errAbsent)
	}
	if err := checkTwice(o); err != nil {
		return nil, err
	}
	i := indexOf(o, name)
	m := o.Members[i]
	after := &o.AfterExtra
	if i+1 < len(o.Members) {
		after = &o.Members[i+1].Name.BeforeExtra
	}
	if !blank(m.Value.AfterExtra) { // a comment before the comma
		*after = slices.Concat(m.Value.AfterExtra, *after)
	}
	*after = closeUp(m.Name.BeforeExtra, *after)
	if i > 0 && i == len(o.Members)-1 { // the one before has a trailing comma now if this one had
		before := &o.Members[i-1].Value.AfterExtra
		if m.Value.AfterExtra == nil {
			*before, *after = nil, slices.Concat(*before, *after)
		} else if *before == nil {
			*before = hujson.Extra{}
		}
	}
	o.Members = slices.Delete(o.Members, i, i+1)
	if len(o.Members) == 0 && blank(o.AfterExtra) {
		o.AfterExtra = nil
	}
	d.changed = true
	m.Value.Minimize()
	return (hujson.Value{Value: m.Value.Value}).Pack(), nil
}

// closeUp joins what stands around a member that is gone: comments stay, and the line of
// the member goes.
func closeUp(before, after []byte) []byte {
	line := bytes.TrimRight(before, " \t")
	if !bytes.HasSuffix(line, []byte("\n")) {
		return slices.Concat(line, after)
	}
	if i := bytes.IndexByte(after, '\n'); i >= 0 && blank(after[:i]) {
		return slices.Concat(line, after[i+1:])
	}
	return slices.Concat(before, bytes.TrimLeft(after, " \t"))
}

// lineBreak finds the first one that is not within a comment, and -1 if there is none.
func lineBreak(extra []byte) int {
	for i := 0; i < len(extra); i++ {
		switch {
		case bytes.HasPrefix(extra[i:], []byte("\r\n")), extra[i] == '\n':
			return i
		case bytes.HasPrefix(extra[i:], []byte("/*")):
			i += 2 + bytes.Index(extra[i+2:], []byte("*/"))
		}
	}
	return -1
}

// indentation returns what the line begins with that this leads up to, and whether the
// line begins in it.
func indentation(extra []byte) (indent string, own bool) {
	i := bytes.LastIndexByte(extra, '\n')
	line := extra[i+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))]), i >= 0
}

// formatted reads a value and gives it the form that the members of the document are
// likely to have: objects over lines, lists on one.
func (d *jsonDocument) formatted(value json.RawMessage, indent string) (hujson.Value, error) {
	v, err := hujson.Parse(bytes.Clone(value))
	if err != nil {
		return v, err
	}
	v.Minimize()
	spread(&v, d.lineEnd+indent, d.step)
	return v, nil
}

// spread lays a value out whose own line begins with this.
func spread(v *hujson.Value, line, step string) {
	switch v := v.Value.(type) {
	case *hujson.Object:
		for i := range v.Members {
			m := &v.Members[i]
			m.Name.BeforeExtra, m.Value.BeforeExtra, v.AfterExtra = []byte(line+step), []byte(" "), []byte(line)
			spread(&m.Value, line+step, step)
		}
	case *hujson.Array:
		for i := range v.Elements[min(1, len(v.Elements)):] {
			v.Elements[i+1].BeforeExtra = []byte(" ")
		}
	}
}

// compact writes a value on one line.
func compact(value json.RawMessage) string {
	v, err := hujson.Parse(bytes.Clone(value))
	if err != nil {
		return string(value) // the check that follows says so
	}
	v.Minimize()
	spread(&v, " ", "")
	return v.String()
}

// quote writes a string as JSON, with characters like < as they are.
func quote(s string) string { return string(hujson.String(s)) }
