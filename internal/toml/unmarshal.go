package toml

import (
	"context"
	"encoding"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Unmarshal stores what a text says in v as encoding/json/v2 stores JSON: keys are the names of
// json tags, compared exactly, and types may check their values in UnmarshalText or
// UnmarshalJSONFrom. A key that v has no field for is an error unless an option says otherwise. It
// returns the error of ctx when that ends; others are *Error, and name the key.
func Unmarshal(ctx context.Context, text []byte, v any, options ...json.Options) error {
	r, root, err := read(ctx, text)
	if err != nil {
		return err
	}
	// There are no duplicates, so nothing has to look for them.
	options = append([]json.Options{json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(true)}, options...)
	err = json.Unmarshal(appendJSON(nil, root, appendExact), v, options...)
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		key, value := root.find(wrong.JSONPointer)
		return r.errorAt(value.at, "%s%s", place(key), explain(wrong, key, value.value))
	}
	return err
}

// place is a key as a user finds it: its section in brackets, and its name.
func place(key Key) string {
	for i, name := range key {
		key[i] = cut(name)
	}
	switch last := len(key) - 1; last {
	case -1:
		return ""
	case 0:
		return key.String() + ": "
	default:
		return "[" + key[:last].String() + "] " + key[last:].String() + ": "
	}
}

// A KindError is the error of a method that got a value of the wrong kind: it says which is right, as
// "a string", and Unmarshal adds which it got.
type KindError string

func (want KindError) Error() string { return "it must be " + string(want) }

// KeyError returns the error of a method about the value of a key in the table that it has read.
func KeyError(d *jsontext.Decoder, key string, err error) error {
	return &json.SemanticError{JSONPointer: d.StackPointer().AppendToken(key), Err: err}
}

// explain returns the error of a value in words of TOML.
func explain(wrong *json.SemanticError, key Key, value any) string {
	ofJSON := wrong.JSONKind != 0 && wrong.JSONKind != jsontext.KindString // else a method of the type has checked it
	want, isKind := errors.AsType[KindError](wrong.Err)
	switch t := wrong.GoType; {
	case errors.Is(wrong.Err, json.ErrUnknownName):
		return "there is no such key; the keys are " + strings.Join(names(t), ", ")
	case wrong.Err != nil && !isKind && !ofJSON:
		return wrong.Err.Error()
	case !isKind && t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return fmt.Sprintf("write it as [[%s]], once for each", key)
	case !isKind:
		want = KindError(wanted(t))
	}
	return fmt.Sprintf("%v, not %s", want, kindOf(value))
}

// names returns the keys of a table that is stored in a struct.
func names(t reflect.Type) (all []string) {
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			all = append(all, name)
		}
	}
	return all
}

// wanted says what a value must be that is stored in a type.
func wanted(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	}
	return "a table"
}

// kindOf says what a value is.
func kindOf(v any) string {
	switch v := v.(type) {
	case string:
		return "a string" // which may be a password
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return "a number"
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return "inf or nan"
		}
		return "a number with a decimal point"
	case *list:
		return "a list"
	case *table:
		return "a table"
	}
	return "a date"
}

// Strings are one string or a list of them, not nil if the list is empty.
type Strings[T any] []T

// UnmarshalJSONFrom is that of json.UnmarshalerFrom.
func (s *Strings[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	switch d.PeekKind() {
	case jsontext.KindBeginArray:
		return json.UnmarshalDecode(d, (*[]T)(s))
	case jsontext.KindString:
		*s = make([]T, 1)
		return json.UnmarshalDecode(d, &(*s)[0])
	default:
		return KindError("a string or a list of strings")
	}
}

// A Table is a table of any keys, in the order of the text.
type Table[K, V any] []Member[K, V]

// A Member is a key with its value.
type Member[K, V any] struct {
	Key   K
	Value V
}

// UnmarshalJSONFrom is that of json.UnmarshalerFrom.
func (t *Table[K, V]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != jsontext.KindBeginObject {
		return KindError("a table")
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != jsontext.KindEndObject {
		var m Member[K, V]
		if err := json.UnmarshalDecode(d, &m.Key); err != nil {
			return err
		}
		if err := json.UnmarshalDecode(d, &m.Value); err != nil {
			return err
		}
		*t = append(*t, m)
	}
	_, err := d.ReadToken()
	return err
}
