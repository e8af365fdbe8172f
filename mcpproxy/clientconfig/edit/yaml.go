package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlFormat is YAML as people write config files: objects over lines. What is
// in braces is refused.
type yamlFormat struct{}

var errFlow = errors.New("has objects in braces, which cannot be changed safely; change it by hand")

func (yamlFormat) parse(data []byte) (map[string]any, error) {
	var top map[string]any
	if err := yaml.Unmarshal(data, &top); err != nil {
		return nil, fmt.Errorf("is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if top == nil {
		return map[string]any{}, nil
	}
	// In the types that JSON has, as values to be written are JSON.
	text, err := json.Marshal(top)
	if err != nil {
		return nil, fmt.Errorf("has values that cannot be compared: %w", err)
	}
	return top, decode(text, &top)
}

// mapping gives the object at a path, and nil if there is none.
func mapping(data []byte, path []string) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	at := doc.Content[0]
	for _, key := range path {
		i := keyIn(at, key)
		if i < 0 {
			return nil, nil
		}
		at = at.Content[i+1]
	}
	if at.Kind != yaml.MappingNode || at.Style&yaml.FlowStyle != 0 {
		return nil, errFlow
	}
	return at, nil
}

func keyIn(m *yaml.Node, key string) int {
	for i := 0; m.Kind == yaml.MappingNode && i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// lineAt is where a line begins that is counted from 1.
func lineAt(data []byte, number int) int {
	at := 0
	for ; number > 1; number-- {
		at = nextLine(data, at)
	}
	return at
}

// blockEnd finds where the lines of a member end: before the first that is
// indented no deeper than its key. Comments and blank lines at its end are not
// its own.
func blockEnd(data []byte, key *yaml.Node) int {
	end := nextLine(data, lineAt(data, key.Line))
	for at := end; at < len(data); {
		next := nextLine(data, at)
		line := bytes.TrimSpace(data[at:next])
		deeper := len(indentOf(data, at)) >= key.Column
		if len(line) > 0 && !deeper && !isTOMLComment(line) && !bytes.HasPrefix(line, []byte("- ")) {
			break
		}
		if len(line) > 0 && (deeper || bytes.HasPrefix(line, []byte("- "))) {
			end = next
		}
		at = next
	}
	return end
}

func (yamlFormat) paste(data []byte, path []string, p piece) ([]byte, error) {
	nl := lineEnd(data)
	text := splice(bytes.TrimRight(p.member, "\r\n"), []byte(nl))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		data = splice(data, []byte(nl))
	}
	data, err := openEmpty(data, path)
	if err != nil {
		return nil, err
	}
	holder, err := mapping(data, path)
	switch {
	case err != nil:
		return nil, err
	case holder == nil || len(holder.Content) == 0:
		if len(path) != 1 {
			return nil, errByHand
		}
		return splice(data, []byte(path[0]+":"+nl), shifted(text, 2)), nil
	}
	last := holder.Content[len(holder.Content)-2]
	at := blockEnd(data, last)
	return splice(data[:at], shifted(text, last.Column-1), data[at:]), nil
}

// openEmpty takes an object out that has nothing in it, so that it can be
// written anew over lines.
func openEmpty(data []byte, path []string) ([]byte, error) {
	top, err := yamlFormat{}.parse(data)
	if err != nil {
		return nil, err
	}
	value, there := lookUp(top, path)
	if m, ok := value.(map[string]any); !there || value != nil && (!ok || len(m) > 0) {
		return data, nil
	}
	holder, err := mapping(data, path[:len(path)-1])
	if err != nil {
		return nil, err
	}
	key := holder.Content[keyIn(holder, path[len(path)-1])]
	at := lineAt(data, key.Line)
	return splice(data[:at], data[nextLine(data, at):]), nil
}

// shifted indents text, whose first line has the least indentation.
func shifted(text []byte, indent int) []byte {
	old := len(indentOf(text, 0))
	var out []byte
	for line := range bytes.Lines(text) {
		if !blank(line) {
			line = splice(bytes.Repeat([]byte(" "), indent), line[min(old, len(indentOf(line, 0))):])
		}
		out = append(out, line...)
	}
	return out
}

func (yamlFormat) cut(data []byte, path []string) ([]byte, piece, error) {
	holder, err := mapping(data, path[:len(path)-1])
	if err != nil || holder == nil {
		return nil, piece{}, errors.Join(err, errAbsent)
	}
	i := keyIn(holder, path[len(path)-1])
	key := holder.Content[i]
	start := ownComments(data, lineAt(data, key.Line), 0, isTOMLComment)
	end := blockEnd(data, key)
	rest := splice(data[:start], data[end:])
	if len(holder.Content) == 2 && len(path) > 1 { // "key:" with nothing in it would be null
		parent, err := mapping(data, path[:len(path)-2])
		if err != nil {
			return nil, piece{}, err
		}
		name := parent.Content[keyIn(parent, path[len(path)-2])]
		at := lineAt(rest, name.Line)
		line := bytes.TrimRight(rest[at:nextLine(rest, at)], "\r\n")
		rest = splice(rest[:at+len(line)], []byte(" {}"), rest[at+len(line):])
	}
	return rest, piece{path: path, member: data[start:end]}, nil
}

func (yamlFormat) replace(data []byte, path []string, value json.RawMessage) ([]byte, error) {
	holder, err := mapping(data, path[:len(path)-1])
	if err != nil || holder == nil {
		return nil, errors.Join(err, errAbsent)
	}
	key := holder.Content[keyIn(holder, path[len(path)-1])]
	text := fmt.Sprintf("%s%s: %s%s", strings.Repeat(" ", key.Column-1), yamlKey(key.Value), compact(value), lineEnd(data))
	return splice(data[:lineAt(data, key.Line)], []byte(text), data[blockEnd(data, key):]), nil
}

// write makes lines of an object, and JSON, which is YAML too, of what is in it.
func (yamlFormat) write(data []byte, path []string, value json.RawMessage) (piece, error) {
	var b strings.Builder
	name, nl := yamlKey(path[len(path)-1]), lineEnd(data)
	if !bytes.HasPrefix(bytes.TrimSpace(value), []byte("{")) {
		return piece{path: path, member: []byte(name + ": " + compact(value))}, nil
	}
	b.WriteString(name + ":" + nl)
	err := eachMember(value, func(name string, value json.RawMessage) error {
		b.WriteString("  " + yamlKey(name) + ": " + compact(value) + nl)
		return nil
	})
	return piece{path: path, member: []byte(b.String())}, err
}

func yamlKey(name string) string {
	if bareKey.MatchString(name) && name[0] > '9' {
		return name
	}
	return quote(name)
}

func compact(value json.RawMessage) string {
	return string(indented(value, "", "", " "))
}
