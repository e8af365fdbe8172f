package policy

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// keyPosition says where in the file a key stands, as ":LINE:COLUMN". A table that
// has no line of its own stands where the first key in it does.
func keyPosition(text string, keys []toml.Key, key toml.Key) string {
	for _, k := range keys {
		if len(k) < len(key) || !slices.Equal(k[:len(key)], key) {
			continue
		}
		value, ok := locate(text, k)
		if !ok {
			continue
		}
		// The key is before its value, and after the bracket that begins a table.
		start := strings.LastIndexByte(text[:value], '\n') + 1
		rest, _, _ := strings.Cut(text[value:], "\n")
		name := key[len(key)-1]
		if i := strings.LastIndex(text[start:value], name); i >= 0 {
			return lineAndColumn(text, start+i)
		}
		return lineAndColumn(text, value+max(strings.Index(rest, name), 0))
	}
	return ""
}

// lineAndColumn counts from 1. The library's own column is wrong at the start
// of a line.
func lineAndColumn(text string, at int) string {
	before := text[:min(max(at, 0), len(text))] // the library gives -1 for the very start
	line := strings.LastIndexByte(before, '\n') + 1
	return fmt.Sprintf(":%d:%d", strings.Count(before, "\n")+1, utf8.RuneCountInString(before[line:])+1)
}

// errHere is the error of a trap.
var errHere = errors.New("here")

// A trap cannot be decoded, and so makes the library say where its value is,
// which it does not tell of values that can be.
type trap struct{}

func (*trap) UnmarshalTOML(any) error { return errHere }

// locate decodes text into structs within structs that have one field each,
// the last of them a trap.
func locate(text string, key toml.Key) (offset int, ok bool) {
	target := reflect.TypeFor[trap]()
	for _, part := range slices.Backward(key) {
		tag := reflect.StructTag("toml:" + strconv.Quote(part))
		target = reflect.StructOf([]reflect.StructField{{Name: "Field", Type: target, Tag: tag}})
	}
	_, err := toml.Decode(text, reflect.New(target).Interface())
	var at toml.ParseError
	ok = errors.As(err, &at) && at.Message == errHere.Error() && at.LastKey == key.String() && at.Position.Line > 0
	return min(max(at.Position.Start, 0), len(text)), ok
}
