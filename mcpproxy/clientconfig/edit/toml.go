package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/toolcell/toolcell/internal/rawjson"
)

// tomlFormat is TOML. Whole tables are added and taken out.
type tomlFormat struct{}

// A statement is a header or a key with its value.
type statement struct {
	path        []string // of the table, or of the key with its table's
	header      bool
	start, end  int // its lines
	value, tail int // where the value begins and ends
}

// statements cuts a text up. It is known to be TOML.
func statements(data []byte) (all []statement) {
	var p unstable.Parser
	var table []string
	for p.Reset(data); p.NextExpression(); {
		e := p.Expression()
		var s statement
		first, last := -1, 0
		for it := e.Key(); it.Next(); {
			s.path = append(s.path, string(it.Node().Data))
			at := int(it.Node().Raw.Offset)
			if first < 0 {
				first = at
			}
			last = at + int(it.Node().Raw.Length)
		}
		if s.start = lineStart(data, first); e.Kind == unstable.KeyValue {
			s.path = slices.Concat(table, s.path)
			equals := last + bytes.IndexByte(data[last:], '=') + 1
			s.value = equals + len(data[equals:]) - len(bytes.TrimLeft(data[equals:], " \t"))
			s.tail = int(e.Raw.Offset + e.Raw.Length)
			s.end = nextLine(data, s.tail)
		} else {
			s.header, table, s.end = true, s.path, nextLine(data, last)
		}
		all = append(all, s)
	}
	return all
}

func within(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

func isComment(line []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) }

// insert puts an object as a table at the end of the file, and a key at the end of its table.
func (tomlFormat) insert(data []byte, path []string, value json.RawMessage) ([]byte, error) {
	nl, all := lineEnd(data), statements(data)
	members, err := rawjson.Members(value)
	if err != nil {
		table, name := path[:len(path)-1], path[len(path)-1]
		text, err := tomlValue(value)
		if err != nil {
			return nil, err
		}
		return insertKey(data, all, table, []byte(tomlKey(name)+" = "+text+nl))
	}
	for _, s := range all {
		// "Inline tables are fully self-contained"; not every parser enforces
		// this.
		if !s.header && within(path, s.path) {
			name := strings.Join(s.path, ".")
			return nil, fmt.Errorf("has %q on one line, which nothing can be added to; write it as a table", name)
		}
	}
	names := make([]string, len(path))
	for i, name := range path {
		names[i] = tomlKey(name)
	}
	text := []byte("[" + strings.Join(names, ".") + "]" + nl)
	for _, m := range members {
		value, err := tomlValue(m.Value)
		if err != nil {
			return nil, err
		}
		text = append(text, tomlKey(m.Name)+" = "+value+nl...)
	}
	switch {
	case blank(data):
		return text, nil
	case data[len(data)-1] != '\n':
		nl += nl
	}
	return slices.Concat(data, []byte(nl), text), nil
}

// insertKey puts a line at the end of its table. At the top of a file without keys that is after all
// comments, or before the first header.
func insertKey(data []byte, all []statement, table []string, line []byte) ([]byte, error) {
	at, inside := -1, len(table) == 0
	if inside {
		at = len(data)
		if len(all) > 0 {
			at = all[0].start
		}
	}
	for _, s := range all {
		if s.header {
			inside = slices.Equal(s.path, table)
		}
		if inside {
			at = s.end
		}
	}
	if at < 0 {
		return nil, errByHand
	}
	if at > 0 && data[at-1] != '\n' {
		line = slices.Concat([]byte(lineEnd(data)), line)
	}
	return slices.Concat(data[:at], line, data[at:]), nil
}

// remove takes out every table and key of the member, wherever they stand.
func (tomlFormat) remove(data []byte, path []string) (rest []byte, err error) {
	all := statements(data)
	from := 0
	for i := 0; i < len(all); i++ {
		s := all[i]
		if !within(s.path, path) {
			continue
		}
		for s.header && i+1 < len(all) && !all[i+1].header {
			i++
		}
		end := all[i].end
		joined := s.header && !isComment(data[lineStart(data, max(0, s.start-1)):s.start])
		for joined && end < len(data) && blank(data[end:nextLine(data, end)]) {
			end = nextLine(data, end)
		}
		rest = append(rest, data[from:s.start]...)
		from = end
	}
	rest = append(rest, data[from:]...)
	if from == len(data) && len(rest) > 0 { // what was before the last table ends as it did
		rest = slices.Concat(bytes.TrimRight(rest, "\r\n"), []byte(lineEnd(data)))
	}
	return rest, nil
}

// replace changes the one statement that has the value.
func (tomlFormat) replace(data []byte, path []string, value json.RawMessage) ([]byte, error) {
	for _, s := range statements(data) {
		if !s.header && slices.Equal(s.path, path) {
			text, err := tomlValue(value)
			return slices.Concat(data[:s.value], []byte(text), data[s.tail:]), err
		}
	}
	return nil, errByHand
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func tomlKey(name string) string {
	if bareKey.MatchString(name) {
		return name
	}
	return tomlString(name)
}

func tomlString(s string) string { return strings.ReplaceAll(quote(s), "\x7f", `\u007f`) }

// tomlValue writes JSON as a value of TOML, which has the same strings,
// numbers, booleans and lists, and other objects.
func tomlValue(value json.RawMessage) (string, error) {
	var items []string
	switch text := strings.TrimSpace(string(value)); text[:1] {
	case "n":
		return "", errors.New("TOML has no null")
	case `"`:
		var s string
		err := json.Unmarshal(value, &s)
		return tomlString(s), err
	case "[":
		list, err := rawjson.Items(value)
		for _, item := range list {
			text, wrong := tomlValue(item)
			items, err = append(items, text), errors.Join(err, wrong)
		}
		return "[" + strings.Join(items, ", ") + "]", err
	case "{":
		members, err := rawjson.Members(value)
		if len(members) == 0 {
			return "{}", err
		}
		for _, m := range members {
			text, wrong := tomlValue(m.Value)
			items, err = append(items, tomlKey(m.Name)+" = "+text), errors.Join(err, wrong)
		}
		return "{ " + strings.Join(items, ", ") + " }", err
	default:
		return text, nil
	}
}
