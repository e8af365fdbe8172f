package toml

import (
	"encoding/json"
	"encoding/json/jsontext"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// How a table came to be says what may still be added to it.
type made byte

const (
	implied  made = iota // by the header of a table in it: its own may follow
	byHeader             // keys under its header, and headers of tables in it
	dotted               // by a key such as a.b: other such keys
	inline               // nothing
)

// A node is a value and where it is: the offset of its key, or of itself in a list.
type node struct {
	value any // string, int64, float64, bool, go-toml's dates and times, *table, *list
	at    int
}

type table struct {
	members map[string]node
	names   []string // in the order of the text
	made    made
}

type list struct {
	items   []node
	headers bool // each item is a table with a header of its own
}

func newTable(made made) *table { return &table{members: map[string]node{}, made: made} }

func (t *table) add(name string, value any, at int) {
	t.members[name] = node{value, at}
	t.names = append(t.names, name)
}

func (t *table) addTable(name string, made made, at int) *table {
	next := newTable(made)
	t.add(name, next, at)
	return next
}

// close ends a table that is written inline, with those that its keys made.
func (t *table) close() {
	t.made = inline
	for _, m := range t.members {
		if in, ok := m.value.(*table); ok && in.made != inline {
			in.close()
		}
	}
}

// find returns the value at a place of the JSON that appendJSON wrote, and the keys to it.
func (t *table) find(place jsontext.Pointer) (Key, node) {
	var key Key
	at := node{value: t}
	for token := range place.Tokens() {
		switch v := at.value.(type) {
		case *table:
			key, at = append(key, token), v.members[token]
		case *list:
			i, _ := strconv.Atoi(token)
			at = v.items[i]
		}
	}
	return key, at
}

// appendJSON writes a value as JSON, with the keys in their order.
func appendJSON(b []byte, v any, scalar func(b []byte, v any) []byte) []byte {
	switch v := v.(type) {
	case *table:
		b = append(b, '{')
		for i, name := range v.names {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, name), ':')
			b = appendJSON(b, v.members[name].value, scalar)
		}
		return append(b, '}')
	case *list:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item.value, scalar)
		}
		return append(b, ']')
	case string:
		return appendString(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	}
	return scalar(b, v)
}

// appendExact keeps the kinds of TOML apart: a number keeps its decimal point, and a value that
// JSON does not have, such as a date, becomes an object, which no type takes by mistake.
func appendExact(b []byte, v any) []byte {
	if f, ok := v.(float64); ok && !math.IsInf(f, 0) && !math.IsNaN(f) {
		digits := strconv.FormatFloat(f, 'g', -1, 64)
		if !strings.ContainsAny(digits, ".e") {
			digits += ".0"
		}
		return append(b, digits...)
	}
	return append(appendString(append(b, `{"":`...), fmt.Sprint(v)), '}')
}

// appendLoose writes what programs write that have only the types of JSON: null for inf and nan,
// and strings for dates.
func appendLoose(b []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		text = []byte("null")
	}
	return append(b, text...)
}

func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the parser has refused text that is not UTF-8
	return b
}
