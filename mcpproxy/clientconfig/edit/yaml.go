package edit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/toolcell/toolcell/internal/rawjson"
)

// yamlFormat is YAML as people write config files: objects over lines. What is
// in braces is refused.
type yamlFormat struct{}

var errFlow = errors.New("has objects in braces, which cannot be changed safely; change it by hand")

// mapping gives the object at a path, and nil if there is none.
func mapping(data []byte, path []string) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil || len(doc.Content) == 0 {
		return nil, err
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

// member finds the lines of a member that is there, and the object that it is in.
func member(data []byte, path []string) (holder *yaml.Node, key *yaml.Node, start, end int, err error) {
	last := len(path) - 1
	if holder, err = mapping(data, path[:last]); err != nil || holder == nil {
		return nil, nil, 0, 0, errors.Join(err, errAbsent)
	}
	at := keyIn(holder, path[last])
	if at < 0 { // it is merged into the object (<<), and stands elsewhere
		return nil, nil, 0, 0, errByHand
	}
	key = holder.Content[at]
	return holder, key, lineAt(data, key.Line), blockEnd(data, key), nil
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
		switch {
		case len(line) > 0 && (len(indentOf(data, at)) >= key.Column || bytes.HasPrefix(line, []byte("- "))):
			end = next
		case len(line) > 0 && !isComment(line):
			return end
		}
		at = next
	}
	return end
}

func (yamlFormat) insert(data []byte, path []string, value json.RawMessage) ([]byte, error) {
	nl := lineEnd(data)
	if len(data) > 0 && data[len(data)-1] != '\n' {
		data = slices.Concat(data, []byte(nl))
	}
	outer, name := path[:len(path)-1], path[len(path)-1]
	data, err := openEmpty(data, outer)
	if err != nil {
		return nil, err
	}
	holder, err := mapping(data, outer)
	switch {
	case err != nil:
		return nil, err
	case holder == nil || len(holder.Content) == 0:
		if len(outer) != 1 {
			return nil, errByHand
		}
		return slices.Concat(data, []byte(outer[0]+":"+nl), yamlMember(name, value, 2, nl)), nil
	}
	last := holder.Content[len(holder.Content)-2]
	at := blockEnd(data, last)
	return slices.Concat(data[:at], yamlMember(name, value, last.Column-1, nl), data[at:]), nil
}

// openEmpty takes an object out that has nothing in it, so that it can be
// written anew over lines.
func openEmpty(data []byte, path []string) ([]byte, error) {
	if len(path) == 0 {
		return data, nil
	}
	holder, err := mapping(data, path[:len(path)-1])
	if err != nil || holder == nil {
		return data, err
	}
	i := keyIn(holder, path[len(path)-1])
	if i < 0 || len(holder.Content[i+1].Content) > 0 || holder.Content[i+1].Kind != yaml.MappingNode && holder.Content[i+1].ShortTag() != "!!null" {
		return data, nil
	}
	start := lineAt(data, holder.Content[i].Line)
	comment := lineComment(holder, i)
	if comment != "" {
		comment += lineEnd(data)
	}
	return slices.Concat(data[:start], []byte(comment), data[nextLine(data, start):]), nil
}

// lineComment is the comment in the line of a member.
func lineComment(holder *yaml.Node, i int) string {
	return cmp.Or(holder.Content[i+1].LineComment, holder.Content[i].LineComment)
}

// yamlMember writes an object over lines, with the values of its members as JSON, which is
// also YAML, and anything else on one line.
func yamlMember(name string, value json.RawMessage, indent int, nl string) []byte {
	line := strings.Repeat(" ", indent) + yamlKey(name) + ":"
	members, err := rawjson.Members(value)
	if err != nil || len(members) == 0 {
		return []byte(line + " " + compact(value) + nl)
	}
	text := []byte(line + nl)
	for _, m := range members {
		text = append(text, strings.Repeat(" ", indent+2)+yamlKey(m.Name)+": "+compact(m.Value)+nl...)
	}
	return text
}

func (yamlFormat) remove(data []byte, path []string) ([]byte, error) {
	holder, _, start, end, err := member(data, path)
	if err != nil {
		return nil, err
	}
	rest := slices.Concat(data[:start], data[end:])
	if outer := path[:len(path)-1]; len(holder.Content) == 2 && len(outer) > 0 { // "key:" with nothing in it would be null
		above, key, at, _, err := member(data, outer)
		if err != nil {
			return nil, err
		}
		line := bytes.TrimRight(rest[at:nextLine(rest, at)], "\r\n")
		line = bytes.TrimRight(bytes.TrimSuffix(line, []byte(lineComment(above, keyIn(above, key.Value)))), " \t")
		at += len(line)
		rest = slices.Concat(rest[:at], []byte(" {}"), rest[at:])
	}
	return rest, nil
}

func (yamlFormat) replace(data []byte, path []string, value json.RawMessage) ([]byte, error) {
	holder, key, start, end, err := member(data, path)
	if err != nil {
		return nil, err
	}
	text := strings.Repeat(" ", key.Column-1) + yamlKey(key.Value) + ": " + compact(value)
	if comment := lineComment(holder, keyIn(holder, key.Value)); comment != "" {
		text += " " + comment
	}
	text += lineEnd(data)
	return slices.Concat(data[:start], []byte(text), data[end:]), nil
}

func yamlKey(name string) string {
	if bareKey.MatchString(name) && name[0] > '9' {
		return name
	}
	return quote(name)
}
