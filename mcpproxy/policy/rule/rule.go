// Package rule has what the sections of a policy file have in common: values of TOML
// that know their key, globs, texts that name variables, and reasons to ask the user.
//
// It promises that every error about a value names its key as a user finds it in the file.
package rule

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	gotoml "github.com/pelletier/go-toml/v2"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/internal/toml"
)

// maxCount bounds a number of calls, packages and the like.
const maxCount = 1_000_000

// A Value is what a file has at a key.
type Value struct {
	key toml.Key
	v   any
}

// At is the value v of a decoded file at a key.
func At(key toml.Key, v any) Value { return Value{key, v} }

// Key returns the value's key with all that it is in, as the file writes it.
func (v Value) Key() toml.Key { return v.key }

// Name returns the last part of the key.
func (v Value) Name() string { return v.key[len(v.key)-1] }

// Errorf returns an error that names the key of the value.
func (v Value) Errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %s", v.place(), fmt.Sprintf(format, args...))
}

// place is the key as a user finds it: its section in brackets, and its name.
func (v Value) place() string {
	last := len(v.key) - 1
	if last <= 0 {
		return v.key.String()
	}
	return "[" + v.key[:last].String() + "] " + v.key[last:].String()
}

// WrongType returns the error of a value that must be something else.
func (v Value) WrongType(want string) error {
	got := "a table"
	switch value := v.v.(type) {
	case string:
		got = "a string" // which may be a password
	case bool:
		got = strconv.FormatBool(value)
	case int64:
		got = "a number"
	case float64:
		got = "a number with a decimal point"
	case []any:
		got = "a list"
	case time.Time, gotoml.LocalDate, gotoml.LocalTime, gotoml.LocalDateTime:
		got = "a date"
	}
	return v.Errorf("it must be %s, not %s", want, got)
}

// UnknownKey returns the error of a value at a key that does not exist.
func (v Value) UnknownKey(known ...string) error {
	return v.Errorf("there is no such key; the keys are %s", strings.Join(known, ", "))
}

// Any returns the value as the library decodes it, such as an int64 or a []any.
func (v Value) Any() any { return v.v }

// Fields returns the values of a table, sorted by name.
func (v Value) Fields() ([]Value, error) {
	t, ok := v.v.(map[string]any)
	if !ok {
		return nil, v.WrongType("a table")
	}
	fields := make([]Value, 0, len(t))
	for _, name := range slices.Sorted(maps.Keys(t)) {
		fields = append(fields, Value{append(slices.Clone(v.key), name), t[name]})
	}
	return fields, nil
}

// Tables returns the tables of a list, with headers or inline. All have the list's key.
func (v Value) Tables() (all []Value, ok bool) {
	list, ok := v.v.([]any)
	if !ok {
		return nil, false
	}
	for _, t := range list {
		if _, ok := t.(map[string]any); !ok {
			return nil, false
		}
		all = append(all, Value{v.key, t})
	}
	return all, true
}

// List returns the values of a list, which all have its key, or the value itself if it is
// none.
func (v Value) List() (all []Value, isList bool) {
	list, ok := v.v.([]any)
	if !ok {
		return []Value{v}, false
	}
	for _, each := range list {
		all = append(all, Value{v.key, each})
	}
	return all, true
}

// Bool takes true or false.
func (v Value) Bool() (*bool, error) {
	b, ok := v.v.(bool)
	if !ok {
		return nil, v.WrongType("true or false")
	}
	return &b, nil
}

// Text takes a text.
func (v Value) Text() (string, error) {
	s, ok := v.v.(string)
	if !ok {
		return "", v.WrongType("a string")
	}
	return s, nil
}

// Texts takes one text or a list of them.
func (v Value) Texts() ([]string, error) {
	list, _ := v.List()
	texts := make([]string, 0, len(list))
	for _, each := range list {
		s, ok := each.v.(string)
		if !ok {
			return nil, each.WrongType("a string or a list of strings")
		}
		texts = append(texts, s)
	}
	return texts, nil
}

// Count takes a whole number from 1.
func (v Value) Count() (int, error) {
	n, ok := v.v.(int64)
	switch {
	case !ok:
		return 0, v.WrongType("a whole number")
	case n < 1 || n > maxCount:
		return 0, v.Errorf(`%d is not between 1 and %d; to forbid all calls write deny = "*", for no limit leave it out`, n, maxCount)
	}
	return int(n), nil
}

// Choice takes one of some words.
func Choice[T ~string](v Value, words ...T) (T, error) {
	s, err := v.Text()
	if err != nil {
		return "", err
	}
	if !slices.Contains(words, T(s)) {
		known := make([]string, len(words))
		for i, w := range words {
			known[i] = string(w)
		}
		return "", v.Errorf("%q is none of %s", text.Bound(s, 40), text.QuoteList(known, len(known)))
	}
	return T(s), nil
}
