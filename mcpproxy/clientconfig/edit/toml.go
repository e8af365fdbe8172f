package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/toml"
)

// tomlFormat is TOML. The library reads it and does not say where things are,
// so the text is cut into statements here.
type tomlFormat struct{}

func (tomlFormat) parse(data []byte) (map[string]any, error) {
	top, err := toml.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("is not TOML: %w", err)
	}
	// In the types that JSON has, as values to be written are JSON.
	text, err := json.Marshal(top)
	if err != nil {
		return nil, fmt.Errorf("has values that cannot be compared: %w", err)
	}
	return top, decode(text, &top)
}

var errByHand = errors.New("is written in a way that cannot be changed safely; change it by hand")

func isTOMLComment(line []byte) bool { return bytes.HasPrefix(line, []byte("#")) }

// paste puts a table at the end of the file, and a key at the end of its table.
func (tomlFormat) paste(data []byte, path []string, p piece) ([]byte, error) {
	nl := lineEnd(data)
	if !bytes.HasPrefix(p.member, []byte("[")) && !bytes.HasPrefix(p.member, []byte("#")) {
		return pasteKey(data, path, splice(p.member, []byte(nl)))
	}
	text := splice(p.before, bytes.TrimRight(p.member, "\r\n"), []byte(nl))
	if blank(data) {
		return text, nil
	}
	all, err := statements(data)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		// "Inline tables are fully self-contained"; not every parser enforces
		// this.
		if !s.header && within(p.path, s.path) {
			return nil, fmt.Errorf("has %q on one line, which nothing can be added to; write it as a table", strings.Join(s.path, "."))
		}
	}
	gap := nl
	if data[len(data)-1] != '\n' {
		gap = nl + nl
	}
	return splice(data, []byte(gap), text), nil
}

func pasteKey(data []byte, table []string, line []byte) ([]byte, error) {
	all, err := statements(data)
	if err != nil {
		return nil, err
	}
	at, inside := -1, false
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
		line = splice([]byte(lineEnd(data)), line)
	}
	return splice(data[:at], line, data[at:]), nil
}

// cut takes out every table and key of the member, wherever they stand.
func (f tomlFormat) cut(data []byte, path []string) ([]byte, piece, error) {
	all, err := statements(data)
	if err != nil {
		return nil, piece{}, err
	}
	p := piece{path: path}
	var rest, taken []byte
	from, keys := 0, false
	for i := 0; i < len(all); i++ {
		s := all[i]
		if !within(s.path, path) {
			continue
		}
		floor := 0
		if i > 0 {
			floor = all[i-1].end
		}
		start := ownComments(data, s.start, max(floor, from), isTOMLComment)
		if s.header {
			for i+1 < len(all) && !all[i+1].header {
				i++
			}
		} else {
			keys = true
		}
		end := all[i].end
		taken = append(append(taken, data[start:end]...), lineEnd(data)...)
		for s.header && end < len(data) && blank(data[end:nextLine(data, end)]) {
			end = nextLine(data, end)
		}
		rest = append(rest, data[from:start]...)
		from = end
	}
	rest = append(rest, data[from:]...)
	if from == len(data) && len(rest) > 0 { // what was before the last table ends as it did
		rest = append(bytes.TrimRight(rest, "\r\n"), lineEnd(data)...)
	}
	if p.member = bytes.TrimRight(taken, "\r\n"); keys {
		// Keys mean something only under the header that they stand under.
		return rest, p, f.rewrite(data, &p)
	}
	return rest, p, nil
}

// rewrite makes a piece anew from what it says.
func (f tomlFormat) rewrite(data []byte, p *piece) error {
	top, err := f.parse(data)
	if err != nil {
		return err
	}
	value, _ := lookUp(top, p.path)
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	*p, err = f.write(data, p.path, text)
	return err
}

// replace changes the one statement that has the value, or the inline table
// that it is in.
func (f tomlFormat) replace(data []byte, path []string, value json.RawMessage) ([]byte, error) {
	all, err := statements(data)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.header || !slices.Equal(s.path, path) {
			continue
		}
		text, err := tomlValue(value)
		if err != nil {
			return nil, err
		}
		return splice(data[:s.value], []byte(text), data[s.tail:]), nil
	}
	return nil, errByHand
}

// write makes a table of an object, and one line of anything else.
func (tomlFormat) write(data []byte, path []string, value json.RawMessage) (piece, error) {
	var b strings.Builder
	if !bytes.HasPrefix(bytes.TrimSpace(value), []byte("{")) {
		text, err := tomlValue(value)
		return piece{path: path, member: []byte(tomlKey(path[len(path)-1]) + " = " + text)}, err
	}
	names := make([]string, len(path))
	for i, name := range path {
		names[i] = tomlKey(name)
	}
	fmt.Fprintf(&b, "[%s]\n", strings.Join(names, "."))
	err := eachMember(value, func(name string, value json.RawMessage) error {
		text, err := tomlValue(value)
		fmt.Fprintf(&b, "%s = %s\n", tomlKey(name), text)
		return err
	})
	text := strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", lineEnd(data))
	return piece{path: path, member: []byte(text)}, err
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func tomlKey(name string) string {
	if bareKey.MatchString(name) {
		return name
	}
	return quote(name)
}

// tomlValue writes JSON as a value of TOML, which has the same strings,
// numbers, booleans and lists, and other objects.
func tomlValue(value json.RawMessage) (string, error) {
	var list []json.RawMessage
	switch text := strings.TrimSpace(string(value)); {
	case text == "null":
		return "", errors.New("TOML has no null")
	case strings.HasPrefix(text, `"`):
		var s string
		err := json.Unmarshal(value, &s)
		return strings.ReplaceAll(quote(s), "\x7f", `\u007f`), err
	case strings.HasPrefix(text, "["):
		if err := json.Unmarshal(value, &list); err != nil {
			return "", err
		}
		items := make([]string, len(list))
		for i, item := range list {
			var err error
			if items[i], err = tomlValue(item); err != nil {
				return "", err
			}
		}
		return "[" + strings.Join(items, ", ") + "]", nil
	case strings.HasPrefix(text, "{"):
		var items []string
		err := eachMember(value, func(name string, value json.RawMessage) error {
			text, err := tomlValue(value)
			items = append(items, tomlKey(name)+" = "+text)
			return err
		})
		if len(items) == 0 {
			return "{}", err
		}
		return "{ " + strings.Join(items, ", ") + " }", err
	default:
		return text, nil
	}
}

// eachMember goes through an object in its order.
func eachMember(object json.RawMessage, f func(name string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return errors.New("is not an object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if err := f(name.(string), value); err != nil {
			return err
		}
	}
	return nil
}
