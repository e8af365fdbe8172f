// Package toon encodes values in Token-Oriented Object Notation, version 4, byte
// for byte as the reference encoder does.
package toon

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// An object keeps the order of its keys, which a Go map would lose.
type object []member

// A member is one key of an object.
type member struct {
	key   string
	value any
}

// maxDepth bounds nesting. Every line repeats the indentation of its
// depth, so deep input would otherwise grow with its square.
const maxDepth = 100

// Marshal renders an object of JSON in Token-Oriented Object Notation, byte for byte as the
// reference encoder does with its default options (two spaces, comma). The comments cite the
// sections of its specification, version 4. Keys keep their order, and an int64 keeps all its
// digits.
func Marshal(text []byte) (string, error) {
	value, err := read(jsontext.NewDecoder(bytes.NewBuffer(text)))
	if err != nil {
		return "", fmt.Errorf("encoding TOON: %w", err)
	}
	obj, ok := value.(object)
	if !ok {
		return "", errors.New("encoding TOON: it is not an object")
	}
	w := &writer{}
	if !w.keyedTable("", 0, obj) {
		w.fields(0, obj)
	}
	return strings.TrimSuffix(w.out.String(), "\n"), nil
}

// writer collects the lines of a document. A head is what stands before
// the bracket or the colon of a line: indentation, list marker and key.
type writer struct{ out strings.Builder }

func (w *writer) line(parts ...string) {
	for _, p := range parts {
		w.out.WriteString(p)
	}
	w.out.WriteByte('\n')
}

func indent(depth int) string { return strings.Repeat("  ", depth) }

func (w *writer) fields(depth int, obj object) {
	for _, f := range obj {
		w.field(indent(depth), depth, f)
	}
}

// field writes one key and its value. depth is where the field stands for the
// scope it may open; the first field of a list item stands one deeper than its
// hyphen (§10).
func (w *writer) field(lead string, depth int, f member) {
	head := lead + keyText(f.key)
	switch v := f.value.(type) {
	case leaf:
		w.line(head, ": ", string(v))
	case []any:
		if len(v) == 0 {
			w.line(head, ": []")
			return
		}
		w.array(head, depth, v, true)
	case object:
		if !w.keyedTable(head, depth, v) {
			w.line(head, ":")
			w.fields(depth+1, v)
		}
	}
}

// array writes an array in the first form that its shape allows: inline,
// tabular, list. A table needs a key or the root; elsewhere a header with a
// field list would not be valid (§6).
func (w *writer) array(head string, depth int, arr []any, tableAllowed bool) {
	head += "[" + strconv.Itoa(len(arr)) + "]"
	if cells, ok := allOf[leaf](arr); ok {
		if len(cells) == 0 {
			w.line(head, ":")
		} else {
			w.line(head, ": ", joinCells(cells))
		}
		return
	}
	if objs, ok := allOf[object](arr); ok && tableAllowed {
		if fields, rows, ok := tableOf(objs); ok {
			w.line(head, fields, ":")
			for _, row := range rows {
				w.line(indent(depth+1), joinCells(row))
			}
			return
		}
	}
	w.line(head, ":")
	for _, item := range arr {
		w.item(depth+1, item)
	}
}

// item writes one element of an array in list form (§9.4, §10).
func (w *writer) item(depth int, v any) {
	lead := indent(depth) + "- "
	switch v := v.(type) {
	case leaf:
		w.line(lead, string(v))
	case []any:
		w.array(lead, depth, v, false)
	case object:
		if len(v) == 0 {
			w.line(indent(depth), "-")
			return
		}
		w.field(lead, depth+1, v[0])
		w.fields(depth+1, v[1:])
	}
}

// keyedTable writes an object of two or more uniform objects as a table whose
// rows carry their keys (§9.5), and reports whether it could.
func (w *writer) keyedTable(head string, depth int, obj object) bool {
	if len(obj) < 2 {
		return false
	}
	objs := make([]object, len(obj))
	for i, f := range obj {
		o, ok := f.value.(object)
		if !ok {
			return false
		}
		objs[i] = o
	}
	fields, rows, ok := tableOf(objs)
	if !ok {
		return false
	}
	w.line(head, "[", strconv.Itoa(len(obj)), ":]", fields, ":")
	for i, row := range rows {
		w.line(indent(depth+1), keyText(obj[i].key), ": ", joinCells(row))
	}
	return true
}

// tableOf returns the field list and the rows of cells if objs are uniform:
// not empty, with the same keys, each column all primitives or itself a
// uniform column of objects, which becomes a nested field group (§9.3).
func tableOf(objs []object) (fields string, rows [][]leaf, ok bool) {
	first := objs[0]
	if len(first) == 0 {
		return "", nil, false
	}
	aligned := make([][]any, len(objs))
	for i, o := range objs {
		if aligned[i], ok = valuesLike(o, first); !ok {
			return "", nil, false
		}
	}
	rows = make([][]leaf, len(objs))
	names := make([]string, len(first))
	column := make([]any, len(objs))
	for j, f := range first {
		names[j] = keyText(f.key)
		for i := range aligned {
			column[i] = aligned[i][j]
		}
		if cells, ok := allOf[leaf](column); ok {
			for i, c := range cells {
				rows[i] = append(rows[i], c)
			}
			continue
		}
		nested, ok := allOf[object](column)
		if !ok {
			return "", nil, false
		}
		group, cells, ok := tableOf(nested)
		if !ok {
			return "", nil, false
		}
		names[j] += group
		for i, c := range cells {
			rows[i] = append(rows[i], c...)
		}
	}
	return "{" + strings.Join(names, ",") + "}", rows, true
}

// valuesLike returns the values of o in the key order of like, if both have
// the same keys.
func valuesLike(o, like object) ([]any, bool) {
	if len(o) != len(like) {
		return nil, false
	}
	values := make([]any, len(o))
	if slices.EqualFunc(o, like, func(a, b member) bool { return a.key == b.key }) {
		for i, f := range o {
			values[i] = f.value
		}
		return values, true
	}
	byKey := make(map[string]any, len(o))
	for _, f := range o {
		byKey[f.key] = f.value
	}
	for i, f := range like {
		v, ok := byKey[f.key]
		if !ok {
			return nil, false
		}
		values[i] = v
	}
	return values, true
}

// allOf returns vs as a slice of T if every one of them is a T.
func allOf[T any](vs []any) ([]T, bool) {
	all := make([]T, len(vs))
	for i, v := range vs {
		t, ok := v.(T)
		if !ok {
			return nil, false
		}
		all[i] = t
	}
	return all, true
}

func joinCells(cells []leaf) string {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = string(c)
	}
	return strings.Join(texts, ",")
}
