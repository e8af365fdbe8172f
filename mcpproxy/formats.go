package mcpproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

const (
	maxDepth    = 1000    // of nesting, in a file and in what its text becomes
	maxWritten  = 1 << 20 // TOML and YAML, which people write by hand
	maxNodes    = 200_000 // of a YAML file with its aliases followed
	maxTOMLDots = 2000    // in one line: the time for a dotted key grows with the square
)

// toJSON turns the text of a config file into JSON, with the members of objects
// in the order of the file. Errors say where the text goes wrong.
func toJSON(path string, data []byte) ([]byte, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("is empty")
	}
	switch ext := filepath.Ext(path); {
	case ext != ".toml" && ext != ".yaml" && ext != ".yml":
		return fromJSONC(data)
	case len(data) > maxWritten:
		return nil, fmt.Errorf("is larger than %d MiB", maxWritten>>20)
	case ext == ".toml":
		return fromTOML(data)
	}
	return fromYAML(data)
}

// fromJSONC takes JSON with comments and trailing commas, which most clients
// read under the name of JSON.
func fromJSONC(data []byte) ([]byte, error) {
	if at := tooDeep(data, true); at >= 0 {
		line, column := position(data, at)
		return nil, fmt.Errorf("is not JSON: line %d, column %d: nested more than %d deep", line, column, maxDepth)
	}
	if json.Valid(data) {
		return data, nil // nearly always, and ~/.claude.json may be large
	}
	text, err := hujson.Standardize(append(bytes.Clone(data), '\n')) // it wants an end to the last comment
	if err != nil {
		return nil, fmt.Errorf("is not JSON: %s", printable(strings.TrimPrefix(err.Error(), "hujson: "), 300))
	}
	return text, nil
}

// tooDeep finds where brackets are nested deeper than maxDepth, -1 if they are
// not: parsers call themselves for each.
func tooDeep(data []byte, comments bool) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"' && comments:
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case c == '/' && comments && bytes.HasPrefix(data[i:], []byte("//")):
			end := bytes.IndexByte(data[i:], '\n')
			if end < 0 {
				return -1
			}
			i += end
		case c == '/' && comments && bytes.HasPrefix(data[i:], []byte("/*")):
			end := bytes.Index(data[i+2:], []byte("*/"))
			if end < 0 {
				return -1
			}
			i += 2 + end + 1
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return i
			}
		case c == '}', c == ']':
			depth = max(depth-1, 0)
		}
	}
	return -1
}

func position(data []byte, at int) (line, column int) {
	before := data[:at]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

func fromTOML(data []byte) ([]byte, error) {
	if at := tooDeep(data, false); at >= 0 {
		line, column := position(data, at)
		return nil, fmt.Errorf("is not TOML: line %d, column %d: nested more than %d deep", line, column, maxDepth)
	}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if bytes.Count(line, []byte(".")) > maxTOMLDots {
			return nil, fmt.Errorf("is not TOML that can be read: line %d, column 1: a line with more than %d dots", n, maxTOMLDots)
		}
	}
	var v map[string]any
	meta, err := toml.Decode(string(data), &v)
	var wrong toml.ParseError
	switch {
	case errors.As(err, &wrong):
		return nil, fmt.Errorf("is not TOML: line %d, column %d: %s", wrong.Position.Line, wrong.Position.Col, printable(wrong.Message, 300))
	case err != nil:
		return nil, fmt.Errorf("is not TOML: %s", printable(err.Error(), 300))
	}
	w := tomlWriter{order: map[string]int{}}
	for i, key := range meta.Keys() {
		name := key[0]
		if len(key) > 1 {
			name += "\x00" + key[1]
		}
		if _, ok := w.order[name]; !ok && len(key) <= 2 {
			w.order[name] = i
		}
	}
	w.value(v, "", 0)
	return w.out.Bytes(), w.err
}

// A tomlWriter writes JSON. Only the order of the first two levels matters:
// that of the servers.
type tomlWriter struct {
	out   bytes.Buffer
	order map[string]int
	err   error
}

func (w *tomlWriter) value(v any, prefix string, level int) {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		if level < 2 {
			sort.SliceStable(keys, func(i, j int) bool { return w.order[prefix+keys[i]] < w.order[prefix+keys[j]] })
		}
		w.out.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.scalar(k)
			w.out.WriteByte(':')
			w.value(v[k], k+"\x00", level+1)
		}
		w.out.WriteByte('}')
	case []map[string]any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = v[i]
		}
		w.value(list, prefix, level)
	case []any:
		w.out.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.value(item, "", 2)
		}
		w.out.WriteByte(']')
	default:
		w.scalar(v)
	}
}

func (w *tomlWriter) scalar(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		text = []byte("null") // inf and nan
	}
	w.out.Write(text)
}

func fromYAML(data []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("is not YAML: %s", printable(strings.TrimPrefix(err.Error(), "yaml: "), 300))
	}
	var w yamlWriter
	w.node(&doc, 0)
	return w.out.Bytes(), w.err
}

// A yamlWriter writes JSON. It counts what it writes, since a few aliases of
// aliases can stand for more than any memory holds.
type yamlWriter struct {
	out   bytes.Buffer
	nodes int
	err   error
}

func (w *yamlWriter) fail(n *yaml.Node, text string) {
	if w.err == nil {
		w.err = fmt.Errorf("is not YAML that can be read: line %d, column %d: %s", n.Line, n.Column, text)
	}
}

func (w *yamlWriter) node(n *yaml.Node, depth int) {
	if w.nodes++; w.nodes > maxNodes || w.out.Len() > maxConfigSize {
		w.fail(n, "its aliases stand for too much")
	}
	if depth > maxDepth {
		w.fail(n, fmt.Sprintf("nested more than %d deep", maxDepth))
	}
	if w.err != nil {
		return
	}
	switch n.Kind {
	case yaml.DocumentNode:
		w.node(n.Content[0], depth)
	case yaml.AliasNode:
		w.node(n.Alias, depth+1)
	case yaml.MappingNode:
		w.mapping(n, depth)
	case yaml.SequenceNode:
		w.out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.node(item, depth+1)
		}
		w.out.WriteByte(']')
	case yaml.ScalarNode:
		w.scalar(n)
	default:
		w.out.WriteString("null")
	}
}

func (w *yamlWriter) mapping(n *yaml.Node, depth int) {
	w.out.WriteByte('{')
	seen := map[string]bool{}
	w.members(n, seen, depth)
	w.out.WriteByte('}')
}

// members writes those of a mapping, then those that it merges in.
func (w *yamlWriter) members(n *yaml.Node, seen map[string]bool, depth int) {
	if w.nodes++; w.nodes > maxNodes || depth > maxDepth {
		w.fail(n, "its aliases stand for too much")
		return
	}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Kind != yaml.ScalarNode:
			w.fail(k, "a key is not a string")
			return
		case k.Tag == "!!merge":
			merged = append(merged, v)
			continue
		case seen[k.Value]:
			continue
		}
		if len(seen) > 0 {
			w.out.WriteByte(',')
		}
		seen[k.Value] = true
		w.text(k.Value)
		w.out.WriteByte(':')
		w.node(v, depth+1)
	}
	for _, m := range merged {
		if m.Kind == yaml.AliasNode {
			m = m.Alias
		}
		switch m.Kind {
		case yaml.MappingNode:
			w.members(m, seen, depth+1)
		case yaml.SequenceNode:
			for _, item := range m.Content {
				if item.Kind == yaml.AliasNode {
					item = item.Alias
				}
				w.members(item, seen, depth+1)
			}
		}
	}
}

func (w *yamlWriter) scalar(n *yaml.Node) {
	switch n.ShortTag() {
	case "!!null":
		w.out.WriteString("null")
	case "!!bool", "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			w.out.WriteString(n.Value) // as it was written, however large
			return
		}
		var v any
		if n.Decode(&v) == nil {
			if text, err := json.Marshal(v); err == nil {
				w.out.Write(text)
				return
			}
		}
		w.text(n.Value)
	default:
		w.text(n.Value)
	}
}

func (w *yamlWriter) text(s string) {
	text, _ := json.Marshal(s) // a string always can be
	w.out.Write(text)
}

// member is one name and value of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of a JSON object in the order of the text: the
// order decides which of two clashing aliases gets the number, and a Go map
// would throw it away.
func members(data []byte) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("is not a JSON object")
	}
	var all []member
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		m := member{name: name}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// items returns those of a JSON list.
func items(data []byte) (list []json.RawMessage, err error) {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return nil, errors.New("is not a list")
	}
	return list, json.Unmarshal(data, &list)
}

func find(all []member, name string) (json.RawMessage, bool) {
	for _, m := range all {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

func isNull(raw []byte) bool { return string(bytes.TrimSpace(raw)) == "null" }
