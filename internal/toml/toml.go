// Package toml reads TOML that anyone may have written: the header of a script, a lock
// file, a client's config file, a policy.
//
// It promises time and memory in proportion to the text's length, keys compared
// exactly, and errors that say where. The syntax is read by go-toml's parser, and
// encoding/json/v2 stores values in structs. The tables between them are built here, since
// go-toml's own decoder looks for each key among all keys before it: 1 MiB of them took 30 s.
package toml

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	gotoml "github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

const (
	maxDepth  = 100     // of tables and lists in each other
	maxScalar = 1000    // bytes of a number, a date or a time
	maxMarks  = 250_000 // of the signs that begin keys and values; a lock of 236 packages has 70,000
)

// A Key is a name with those of the tables that it is in.
type Key []string

// String writes a key as TOML does.
func (k Key) String() string {
	parts := make([]string, len(k))
	for i, name := range k {
		parts[i] = name
		if !bare.MatchString(name) {
			parts[i] = strconv.Quote(name)
		}
	}
	return strings.Join(parts, ".")
}

// Quote writes a string as TOML has it: JSON's escapes are a part of those of TOML. What is no UTF-8 is
// left out.
func Quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(strings.ToValidUTF8(s, "")) // a string always can be
	return strings.TrimSuffix(b.String(), "\n")
}

var bare = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// shown is a name in a message.
func shown(name string) string {
	return Key{cut(name)}.String()
}

func cut(text string) string {
	const maxLength = 80
	if r := []rune(text); len(r) > maxLength {
		text = string(r[:maxLength]) + "…"
	}
	return text
}

// An Error is an error in a text, with its place.
type Error struct {
	Line, Column int // from 1; columns count characters
	Message      string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// JSON returns what a text says as JSON, with its keys in their order. Dates become strings, inf and
// nan null. Its errors are *Error.
func JSON(text []byte) ([]byte, error) {
	_, root, err := read(context.Background(), text)
	if err != nil {
		return nil, err
	}
	return appendJSON(nil, root, appendLoose), nil
}

// read returns the root of a text, and a reader that knows where its values are. It bounds what the
// parser needs for a single expression: a node for each key and value.
func read(ctx context.Context, text []byte) (r *reader, root *table, err error) {
	r = &reader{text: bytes.TrimPrefix(text, []byte("\ufeff")), ctx: ctx}
	marks := 0
	for i, c := range r.text {
		switch c {
		case ',', '[', '{', '=', '.':
			if marks++; marks > maxMarks {
				return nil, nil, r.errorAt(i, "it has too many keys and values")
			}
		}
	}
	r.parser.Reset(r.text)
	root = newTable(byHeader)
	for at := root; r.parser.NextExpression(); {
		if err := r.ended(); err != nil {
			return nil, nil, err
		}
		switch e := r.parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			at, err = r.header(root, e)
		default:
			err = r.member(at, e, 0)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if err := r.parser.Error(); err != nil {
		return nil, nil, r.syntax(err)
	}
	return r, root, nil
}

type reader struct {
	text   []byte
	parser unstable.Parser
	ctx    context.Context
	steps  int
}

// ended looks at the context from time to time: at each expression and value it would
// cost as much as they do.
func (r *reader) ended() error {
	if r.steps++; r.steps%1000 == 0 && r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return nil
}

// errorAt returns an error about the text at an offset.
func (r *reader) errorAt(offset int, format string, args ...any) error {
	before := string(r.text[:max(0, min(offset, len(r.text)))])
	start := strings.LastIndexByte(before, '\n') + 1
	return &Error{
		Line:    strings.Count(before, "\n") + 1,
		Column:  utf8.RuneCountInString(before[start:]) + 1,
		Message: fmt.Sprintf(format, args...),
	}
}

func (r *reader) errorIn(n *unstable.Node, format string, args ...any) error {
	return r.errorAt(offset(n), format, args...)
}

func offset(n *unstable.Node) int { return int(n.Raw.Offset) }

// syntax turns an error of the parser into one of ours.
func (r *reader) syntax(err error) error {
	at := len(r.text)
	var wrong *unstable.ParserError
	if errors.As(err, &wrong) && len(wrong.Highlight) > 0 {
		at = cap(r.text) - cap(wrong.Highlight) // it is a piece of the text
	}
	message := strings.TrimPrefix(err.Error(), "toml: ")
	if noValue.MatchString(message) {
		message = "expected a value, but the line ends"
	}
	return r.errorAt(at, "%s", message)
}

// noValue matches what go-toml says of a key without a value.
var noValue = regexp.MustCompile(`^unexpected character U\+000[AD] at start of value$|^expected value, not end of input$`)

// header finds or makes the table of a header.
func (r *reader) header(root *table, e *unstable.Node) (*table, error) {
	t, depth := root, 0
	for it := e.Key(); ; depth++ {
		it.Next()
		part := it.Node()
		if depth >= maxDepth {
			return nil, r.tooDeep(offset(part))
		}
		name := string(part.Data)
		if it.IsLast() {
			return r.lastOfHeader(t, name, part, e.Kind == unstable.ArrayTable)
		}
		var next *table
		switch v := t.members[name].value.(type) {
		case nil:
			next = t.addTable(name, implied, offset(part))
		case *table:
			next = v
		case *list:
			if v.headers {
				next = v.items[len(v.items)-1].value.(*table)
			}
		}
		switch {
		case next == nil:
			return nil, r.errorIn(part, "key %s is a value already, not a table", shown(name))
		case next.made == inline:
			return nil, r.errorIn(part, "table %s is defined inline and cannot be added to", shown(name))
		}
		t = next
	}
}

func (r *reader) lastOfHeader(t *table, name string, part *unstable.Node, inList bool) (*table, error) {
	next := newTable(byHeader)
	switch v := t.members[name].value.(type) {
	case nil:
		if inList {
			t.add(name, &list{[]node{{next, offset(part)}}, true}, offset(part))
		} else {
			t.add(name, next, offset(part))
		}
		return next, nil
	case *table:
		if !inList && v.made == implied {
			v.made = byHeader
			return v, nil
		}
	case *list:
		if inList && v.headers {
			v.items = append(v.items, node{next, offset(part)})
			return next, nil
		}
	}
	return nil, r.errorIn(part, "key %s is already defined", shown(name))
}

// member adds a key with its value to the table that it stands in.
func (r *reader) member(t *table, e *unstable.Node, depth int) error {
	for it := e.Key(); ; depth++ {
		it.Next()
		part := it.Node()
		if depth >= maxDepth {
			return r.tooDeep(offset(part))
		}
		name := string(part.Data)
		v, there := t.members[name]
		if it.IsLast() {
			if there {
				return r.errorIn(part, "key %s is already defined", shown(name))
			}
			value, err := r.value(e.Value(), offset(part), depth+1)
			t.add(name, value, offset(part))
			return err
		}
		next, isTable := v.value.(*table)
		switch {
		case !there:
			next = t.addTable(name, dotted, offset(part))
		case !isTable || next.made != dotted:
			return r.errorIn(part, "key %s is already defined", shown(name))
		}
		t = next
	}
}

// value reads the value at an offset.
func (r *reader) value(n *unstable.Node, at, depth int) (any, error) {
	if depth > maxDepth {
		return nil, r.tooDeep(at)
	}
	if err := r.ended(); err != nil {
		return nil, err
	}
	switch n.Kind {
	case unstable.String:
		return string(n.Data), nil
	case unstable.Bool:
		return string(n.Data) == "true", nil
	case unstable.InlineTable:
		t := newTable(dotted) // until it is complete
		for it := n.Children(); it.Next(); {
			if err := r.member(t, it.Node(), depth); err != nil {
				return nil, err
			}
		}
		t.close()
		return t, nil
	case unstable.Array:
		l := &list{}
		for it := n.Children(); it.Next(); {
			if it.Node().Raw.Length > 0 { // a list has none
				at = offset(it.Node())
			}
			v, err := r.value(it.Node(), at, depth+1)
			if err != nil {
				return nil, err
			}
			l.items = append(l.items, node{v, at})
		}
		return l, nil
	}
	v, err := scalar(n)
	if err != nil {
		return nil, r.errorIn(n, "%s", strings.TrimPrefix(err.Error(), "toml: "))
	}
	return v, nil
}

// scalar reads a number, a date or a time, in whose form the parser found nothing wrong.
// It asks go-toml about the rare ones: that takes some microseconds.
func scalar(n *unstable.Node) (any, error) {
	if len(n.Data) > maxScalar {
		return nil, fmt.Errorf("a number of %d characters; the most is %d", len(n.Data), maxScalar)
	}
	text := strings.ReplaceAll(string(n.Data), "_", "")
	var err error
	switch n.Kind {
	case unstable.Integer:
		var i int64
		if i, err = strconv.ParseInt(text, 0, 64); err == nil {
			return i, nil
		}
	case unstable.Float:
		var f float64
		if f, err = strconv.ParseFloat(text, 64); err == nil {
			return f, nil
		}
	}
	if errors.Is(err, strconv.ErrRange) {
		return nil, fmt.Errorf("the number %s is out of range", cut(text))
	}
	var one struct{ V any }
	err = gotoml.Unmarshal(append([]byte("V="), n.Data...), &one)
	return one.V, err
}

func (r *reader) tooDeep(at int) error {
	return r.errorAt(at, "nested more than %d deep", maxDepth)
}

// Lines returns the lines on which the keys at the top of a text are first written, or the
// headers of its tables. Its errors are *Error.
func Lines(text []byte) (map[string]int, error) {
	r, root, err := read(context.Background(), text)
	if err != nil {
		return nil, err
	}
	lines := make(map[string]int, len(root.names))
	for _, name := range root.names { // they are in the order of the text
		lines[name] = bytes.Count(r.text[:root.members[name].at], []byte("\n")) + 1
	}
	return lines, nil
}
