package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/internal/toml"
)

// An edit is one change of the text of a policy. Every other byte stays as it was: comments, order and
// indentation.
type edit struct {
	text  func(source []byte) ([]byte, error)
	meant func(top map[string]any) error // the same change of what the text says
}

// errByHand is of a text in which nothing can be changed safely.
var errByHand = errors.New("the file is written in a way that cannot be changed safely; change it by hand")

// apply makes the change, and checks that the text says then what is meant and nothing else.
func (e edit) apply(source []byte) ([]byte, error) {
	want, err := says(source)
	if err != nil {
		return nil, err
	}
	if err := e.meant(want); err != nil {
		return nil, err
	}
	after, err := e.text(source)
	if err != nil {
		return nil, err
	}
	got, err := says(after)
	if err != nil || !reflect.DeepEqual(got, want) || !keepsComments(source, after) {
		return nil, errByHand
	}
	return after, nil
}

// says returns what a text says, in the types that JSON has.
func says(source []byte) (top map[string]any, err error) {
	said, err := toml.JSON(source)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(said))
	d.UseNumber()
	return top, d.Decode(&top)
}

// keepsComments reports whether all that stands behind a # still does, whether it is a comment or not.
func keepsComments(before, after []byte) bool {
	left := map[string]int{}
	for line := range bytes.SplitSeq(after, []byte("\n")) {
		if _, comment, ok := bytes.Cut(line, []byte("#")); ok {
			left[string(comment)]++
		}
	}
	for line := range bytes.SplitSeq(before, []byte("\n")) {
		if _, comment, ok := bytes.Cut(line, []byte("#")); ok {
			if left[string(comment)]--; left[string(comment)] < 0 && !bytes.ContainsAny(comment, `"'`) {
				return false
			}
		}
	}
	return true
}

// listed adds an item to the list that a section has by a key, or makes the list. One that is there may
// be a single string.
func listed(section []string, key, item string) edit {
	path := append(slices.Clone(section), key)
	return edit{
		text: func(source []byte) ([]byte, error) { return addToList(source, section, key, tomlString(item)) },
		meant: func(top map[string]any) error {
			return change(top, path, func(old any) (any, error) {
				list, err := asList(old)
				return append(list, item), err
			})
		},
	}
}

// unlisted takes an item out of a list.
func unlisted(section []string, key, item string) edit {
	path := append(slices.Clone(section), key)
	return edit{
		text: func(source []byte) ([]byte, error) { return cutFromList(source, path, item) },
		meant: func(top map[string]any) error {
			return change(top, path, func(old any) (any, error) {
				list, err := asList(old)
				return slices.DeleteFunc(list, func(v any) bool { return v == item }), err
			})
		},
	}
}

// asked adds a condition to a tool. Its value is TOML.
func asked(section []string, tool string, path []string, op, value string) edit {
	table := append(slices.Clone(section), "tools", tool, "when")
	written, said := any(strings.Join(path, ".")), tomlString(strings.Join(path, "."))
	if slices.ContainsFunc(path, func(name string) bool { return strings.Contains(name, ".") }) {
		steps, quoted := []any{}, []string{}
		for _, name := range path {
			steps, quoted = append(steps, name), append(quoted, tomlString(name))
		}
		written, said = steps, "["+strings.Join(quoted, ", ")+"]"
	}
	return edit{
		text: func(source []byte) ([]byte, error) {
			nl := lineEnd(source)
			lines := []string{"[[" + tomlKey(table) + "]]", "path = " + said, "op = " + tomlString(op), "value = " + value, ""}
			return insertBlock(source, section, strings.Join(lines, nl)), nil
		},
		meant: func(top map[string]any) error {
			return change(top, table, func(old any) (any, error) {
				list, ok := old.([]any)
				if old != nil && !ok {
					return nil, errByHand
				}
				meant, err := says([]byte("v = " + value))
				return append(list, map[string]any{"path": written, "op": op, "value": meant["v"]}), err
			})
		},
	}
}

// asList is what a key has that may be one string or a list of them.
func asList(v any) ([]any, error) {
	switch v := v.(type) {
	case nil:
		return []any{}, nil
	case string:
		return []any{v}, nil
	case []any:
		return slices.Clone(v), nil
	}
	return nil, errByHand
}

// change replaces the member at a path. Tables on the way are made.
func change(top map[string]any, path []string, to func(old any) (any, error)) (err error) {
	for _, name := range path[:len(path)-1] {
		next, ok := top[name]
		if !ok {
			next = map[string]any{}
			top[name] = next
		}
		if top, ok = next.(map[string]any); !ok {
			return errByHand
		}
	}
	last := path[len(path)-1]
	top[last], err = to(top[last])
	return err
}

// A span is where something begins and ends.
type span struct{ start, end int }

// A statement is a header, or a key with its value.
type statement struct {
	path   []string // of the table, or of the key with its table's
	header bool
	end    int    // of its last line
	value  span   // of a string
	list   int    // where the value begins if it is a list, else -1
	items  []span // of a list of strings
}

// statements cuts a text up. It is known to be TOML.
func statements(source []byte) (all []statement) {
	var p unstable.Parser
	var table []string
	for p.Reset(source); p.NextExpression(); {
		e := p.Expression()
		s := statement{list: -1}
		last := 0
		for it := e.Key(); it.Next(); {
			s.path = append(s.path, string(it.Node().Data))
			last = spanOf(it.Node()).end
		}
		if e.Kind != unstable.KeyValue {
			s.header, table, s.end = true, s.path, nextLine(source, last)
			all = append(all, s)
			continue
		}
		s.path = slices.Concat(table, s.path)
		s.end = nextLine(source, spanOf(e).end)
		switch v := e.Value(); v.Kind {
		case unstable.String:
			s.value = spanOf(v)
		case unstable.Array:
			equals := last + bytes.IndexByte(source[last:], '=') + 1
			s.list = equals + bytes.IndexByte(source[equals:], '[')
			for it := v.Children(); it.Next(); {
				if it.Node().Kind == unstable.String {
					s.items = append(s.items, spanOf(it.Node()))
				}
			}
		}
		all = append(all, s)
	}
	return all
}

func spanOf(n *unstable.Node) span {
	return span{int(n.Raw.Offset), int(n.Raw.Offset + n.Raw.Length)}
}

func within(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

// addToList adds an item, which is TOML, behind those of a list.
func addToList(source []byte, section []string, key, item string) ([]byte, error) {
	path := append(slices.Clone(section), key)
	nl, at := lineEnd(source), -1
	inside := false
	for _, s := range statements(source) {
		switch {
		case s.header:
			inside = slices.Equal(s.path, section)
		case slices.Equal(s.path, path) && s.list >= 0 && len(s.items) > 0:
			return insert(source, s.items[len(s.items)-1].end, ", "+item), nil
		case slices.Equal(s.path, path) && s.list >= 0:
			return insert(source, s.list+1, item), nil
		case slices.Equal(s.path, path):
			one := source[s.value.start:s.value.end]
			return slices.Concat(source[:s.value.start], []byte("["), one, []byte(", "+item+"]"), source[s.value.end:]), nil
		}
		if inside {
			at = s.end
		}
	}
	line := tomlKey([]string{key}) + " = [" + item + "]" + nl
	switch {
	case at < 0:
		return insertBlock(source, nil, "["+tomlKey(section)+"]"+nl+line), nil
	case source[at-1] != '\n':
		line = nl + line
	}
	return insert(source, at, line), nil
}

// cutFromList takes an item out of a list, with one comma beside it. Comments stay.
func cutFromList(source []byte, path []string, item string) ([]byte, error) {
	for _, s := range statements(source) {
		if s.header || !slices.Equal(s.path, path) {
			continue
		}
		if s.list < 0 {
			return slices.Concat(source[:s.value.start], []byte("[]"), source[s.value.end:]), nil
		}
		for i, at := range s.items {
			if v, err := says(slices.Concat([]byte("v = "), source[at.start:at.end])); err != nil || v["v"] != item {
				continue
			}
			if comma := skipTo(source, at.end); source[comma] == ',' {
				end := comma + 1
				if end < len(source) && source[end] == ' ' {
					end++
				}
				return slices.Concat(source[:at.start], source[at.end:comma], source[end:]), nil
			}
			if i == 0 {
				return slices.Concat(source[:at.start], source[at.end:]), nil
			}
			before := s.items[i-1].end
			comma := skipTo(source, before)
			rest := bytes.TrimPrefix(source[comma+1:at.start], []byte(" "))
			return slices.Concat(source[:comma], rest, source[at.end:]), nil
		}
	}
	return nil, errByHand
}

// skipTo returns where something stands that is neither blank nor a comment; the text has such a place.
func skipTo(source []byte, at int) int {
	for ; at < len(source)-1; at++ {
		switch source[at] {
		case ' ', '\t', '\r', '\n':
		case '#':
			at = nextLine(source, at) - 1
		default:
			return at
		}
	}
	return len(source) - 1
}

// insertBlock inserts lines that begin with a header: behind what there is of a section and of those in
// it, or at the end.
func insertBlock(source []byte, section []string, block string) []byte {
	nl, at := lineEnd(source), len(source)
	inside := false
	for _, s := range statements(source) {
		if s.header {
			inside = section != nil && within(s.path, section)
		}
		if inside {
			at = s.end
		}
	}
	switch {
	case len(bytes.TrimSpace(source)) == 0 && at == len(source):
		return append(slices.Clone(source), block...)
	case source[at-1] != '\n':
		block = nl + nl + block
	case !bytes.HasSuffix(source[:at], []byte(nl+nl)):
		block = nl + block
	}
	return insert(source, at, block)
}

func insert(source []byte, at int, text string) []byte {
	return slices.Concat(source[:at], []byte(text), source[at:])
}

func lineEnd(source []byte) string {
	if i := bytes.IndexByte(source, '\n'); i > 0 && source[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

func nextLine(source []byte, at int) int {
	if i := bytes.IndexByte(source[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(source)
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// tomlKey writes a key with those of the tables that it is in.
func tomlKey(path []string) string {
	parts := make([]string, len(path))
	for i, name := range path {
		if parts[i] = name; !bareKey.MatchString(name) {
			parts[i] = tomlString(name)
		}
	}
	return strings.Join(parts, ".")
}

// tomlString writes a string. All that a reader may not see, or take for something else, is an escape:
// what is copied from a page must be what was checked.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range s {
		switch _, size := utf8.DecodeRuneInString(s[i:]); {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\uFFFD`) // which is another string: it is not what is meant, and refused
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r >= ' ' && r < 0x7f || r > 0x7f && (unicode.IsLetter(r) || unicode.IsDigit(r)) && !text.IsInvisible(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			fmt.Fprintf(&b, `\u%04X`, r)
		}
	}
	return b.String() + `"`
}
