package signature

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// Bounds on a schema that is read for a signature. One that goes beyond them
// gives a signature that accepts anything.
const (
	maxSchemaBytes = 4 << 20
	maxSchemaNodes = 20_000
	maxSchemaDepth = 100
	maxRefHops     = 20
	manyKeys       = 16 // above it, the members of an object are found by a map
)

var errSchema = errors.New("the schema is too large")

// A node is one value of a JSON schema. An object keeps the order of its keys,
// which is the order of a tool's parameters and which Go's maps lose.
type node struct {
	kind   byte // as its first byte in JSON; a number has '0'
	text   string
	keys   []string
	values []*node        // of an object or array
	index  map[string]int // of the keys, where there are many
	base   *node          // what its references begin at: see resource
}

// parseSchema reads a schema into nodes, within the bounds.
func parseSchema(raw json.RawMessage) (*node, error) {
	if len(raw) > maxSchemaBytes {
		return nil, errSchema
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	left := maxSchemaNodes
	root, err := parseNode(d, &left, maxSchemaDepth)
	if err == nil {
		root.setBase(root, true)
	}
	return root, err
}

// setBase notes for a node and all inside of it where their references begin. A schema
// with an $id of its own is a document of its own (JSON Schema 2020-12, 8.2.1). What id
// means depends on the draft, so references below it are not followed.
func (n *node) setBase(base *node, isRoot bool) {
	if id := n.str("$id"); !isRoot && id != "" && id[0] != '#' {
		base = n
	}
	if n.str("id") != "" && !isRoot {
		base = nil
	}
	n.base = base
	for _, value := range n.values {
		value.setBase(base, false)
	}
}

func parseNode(d *json.Decoder, left *int, depth int) (*node, error) {
	if *left--; *left < 0 || depth == 0 {
		return nil, errSchema
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		return parseMembers(d, byte(v), left, depth)
	case string:
		return &node{kind: '"', text: v}, nil
	case json.Number:
		return &node{kind: '0', text: v.String()}, nil
	case bool:
		return &node{kind: strconv.FormatBool(v)[0], text: strconv.FormatBool(v)}, nil
	}
	return &node{kind: 'n', text: "null"}, nil
}

func parseMembers(d *json.Decoder, kind byte, left *int, depth int) (*node, error) {
	n := &node{kind: kind}
	var seen map[string]int
	if kind == '{' {
		seen = map[string]int{}
	}
	for d.More() {
		at := len(n.values)
		if kind == '{' {
			token, err := d.Token()
			if err != nil {
				return nil, err
			}
			key := token.(string) // the decoder allows no other
			if first, ok := seen[key]; ok {
				at = first // the last value counts, as with every JSON reader
			} else {
				seen[key] = at
				n.keys = append(n.keys, key)
			}
		}
		value, err := parseNode(d, left, depth-1)
		if err != nil {
			return nil, err
		}
		if at == len(n.values) {
			n.values = append(n.values, value)
		} else {
			n.values[at] = value
		}
	}
	if len(n.keys) > manyKeys {
		n.index = seen
	}
	_, err := d.Token() // the closing bracket
	return n, err
}

// get returns a member of an object, or nil.
func (n *node) get(key string) *node {
	if n != nil && n.index != nil {
		if i, ok := n.index[key]; ok {
			return n.values[i]
		}
		return nil
	}
	if n != nil {
		for i, k := range n.keys {
			if k == key {
				return n.values[i]
			}
		}
	}
	return nil
}

// object returns a member that is an object, or nil.
func (n *node) object(key string) *node {
	if m := n.get(key); m != nil && m.kind == '{' {
		return m
	}
	return nil
}

// list returns the items of a member that is an array.
func (n *node) list(key string) []*node {
	if m := n.get(key); m != nil && m.kind == '[' {
		return m.values
	}
	return nil
}

// str returns a member that is a string, or "".
func (n *node) str(key string) string {
	if m := n.get(key); m != nil && m.kind == '"' {
		return m.text
	}
	return ""
}

// number returns a member that is a number as it is written, or "".
func (n *node) number(key string) string {
	if m := n.get(key); m != nil && m.kind == '0' {
		return m.text
	}
	return ""
}

// json writes a value again, or returns nil if that takes more than limit bytes.
func (n *node) json(limit int) json.RawMessage {
	out := n.appendJSON(nil, limit)
	if len(out) > limit {
		return nil
	}
	return out
}

func (n *node) appendJSON(out []byte, limit int) []byte {
	switch {
	case len(out) > limit:
		return out
	case n.kind == '"':
		if len(n.text) > limit {
			return append(out, make([]byte, limit+1)...)
		}
		text, _ := json.Marshal(n.text) // strings always encode
		return append(out, text...)
	case n.kind != '{' && n.kind != '[':
		return append(out, n.text...)
	}
	out = append(out, n.kind)
	for i, value := range n.values {
		if i > 0 {
			out = append(out, ',')
		}
		if n.kind == '{' {
			out = append((&node{kind: '"', text: n.keys[i]}).appendJSON(out, limit), ':')
		}
		out = value.appendJSON(out, limit)
	}
	return append(out, n.kind+2) // in ASCII, } is { + 2 and ] is [ + 2
}

// follow resolves the $ref of a schema, within the same document. name is that
// of the definition, or "" if there was no reference. A reference that leads
// out of the document, nowhere or round in a circle, or to an anchor, gives nil.
func follow(n *node) (target *node, name string) {
	for range maxRefHops {
		if n.get("$ref") == nil {
			return n, name
		}
		ref := n.get("$ref")
		if ref.kind != '"' {
			return nil, name
		}
		pointer, local := strings.CutPrefix(ref.text, "#")
		if !local || n.base == nil || n.base == n && n.str("$id") != "" {
			return nil, name
		}
		pointer, err := url.PathUnescape(pointer)
		if err != nil || pointer != "" && pointer[0] != '/' {
			return nil, name
		}
		n = n.base
		for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
			if part == "" && pointer == "" {
				continue
			}
			part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
			if n = n.child(part); n == nil {
				return nil, name
			}
			name = part
		}
	}
	return nil, name
}

// child is one step of a JSON pointer.
func (n *node) child(part string) *node {
	if n.kind != '[' {
		return n.get(part)
	}
	if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(n.values) {
		return n.values[i]
	}
	return nil
}
