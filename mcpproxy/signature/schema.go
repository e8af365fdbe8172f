package signature

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/internal/rawjson"
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

// A node is one value of a JSON schema. An object keeps the order of its keys,
// which is the order of a tool's parameters and which Go's maps lose.
type node struct {
	kind   byte   // as its first byte in JSON; a number has '0'
	raw    []byte // as it is written
	text   string
	keys   []string
	values []*node        // of an object or array
	index  map[string]int // of the keys, where there are many

	types  jsonType // of a schema; 0 is any
	refers bool     // it has a $ref
	target *node    // what that leads to; nil if it leads nowhere
	name   string   // of the target in its document
}

// parseSchema reads a schema into nodes, or returns nil if it is none or beyond the bounds.
func parseSchema(raw json.RawMessage) *node {
	if len(raw) > maxSchemaBytes {
		return nil
	}
	r := nodeReader{rawjson.Scanner{Text: raw}, maxSchemaNodes}
	root := r.node(maxSchemaDepth)
	if root != nil {
		root.resolve(root, true)
	}
	return root
}

// resolve notes of a node, and of all inside of it, which types it allows and where its
// references lead, which begin at base. A schema with an $id of its own is a document of its own (JSON Schema 2020-12,
// 8.2.1). What id means depends on the draft, so references below it are not followed.
func (n *node) resolve(base *node, isRoot bool) {
	id := n.str("$id")
	if !isRoot && id != "" && id[0] != '#' {
		base = n
	}
	if n.str("id") != "" && !isRoot {
		base = nil
	}
	n.types = typesOf(n)
	if ref := n.get("$ref"); ref != nil {
		n.refers = true
		if ref.kind == '"' && base != nil && (base != n || id == "") {
			n.target, n.name = base.at(ref.text)
		}
	}
	for _, value := range n.values {
		value.resolve(base, false)
	}
}

// at returns what a reference leads to within a document, and its name there, or nil. It
// follows no anchors.
func (n *node) at(ref string) (target *node, name string) {
	pointer, local := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(pointer)
	switch {
	case !local || err != nil || pointer != "" && pointer[0] != '/':
		return nil, ""
	case pointer == "":
		return n, ""
	}
	for part := range strings.SplitSeq(pointer[1:], "/") {
		name = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		if n = n.child(name); n == nil {
			return nil, ""
		}
	}
	return n, name
}

// A nodeReader reads nodes, up to a number of them.
type nodeReader struct {
	rawjson.Scanner
	left int
}

// node reads a value that nests less deep than this, or returns nil.
func (r *nodeReader) node(depth int) *node {
	r.SkipSpace()
	if r.left--; r.left < 0 || depth == 0 || r.Offset == len(r.Text) {
		return nil
	}
	from := r.Offset
	n := &node{kind: r.Text[from]}
	switch n.kind {
	case '{':
		seen := map[string]int{}
		for quoted := range r.Object {
			var key string
			value := r.node(depth - 1)
			if value == nil || json.Unmarshal(quoted, &key) != nil {
				return nil
			}
			if at, again := seen[key]; again {
				n.values[at] = value // the last counts, as with every JSON reader
				continue
			}
			seen[key] = len(n.keys)
			n.keys, n.values = append(n.keys, key), append(n.values, value)
		}
		if len(n.keys) > manyKeys {
			n.index = seen
		}
	case '[':
		for range r.List {
			value := r.node(depth - 1)
			if value == nil {
				return nil
			}
			n.values = append(n.values, value)
		}
	case '"':
		_ = json.Unmarshal(r.Value(), &n.text)
	default:
		n.text = string(r.Value())
		if n.kind <= '9' { // or a sign
			n.kind = '0'
		}
	}
	if !r.OK() {
		return nil
	}
	n.raw = r.Text[from:r.Offset]
	return n
}

// get returns a member of an object, or nil.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	at, found := n.index[key]
	if n.index == nil {
		at = slices.Index(n.keys, key)
		found = at >= 0
	}
	if !found {
		return nil
	}
	return n.values[at]
}

// schema returns what a schema is behind its references, or nil if it cannot be understood.
func (n *node) schema() *node {
	if n, _ = follow(n); n == nil || n.kind != '{' {
		return nil
	}
	return n
}

// members loops over the members of an object.
func (n *node) members(yield func(name string, value *node) bool) {
	if n == nil {
		return
	}
	for i, name := range n.keys {
		if !yield(name, n.values[i]) {
			return
		}
	}
}

// allowed returns the values of an enum or const, or nil if any is allowed.
func (n *node) allowed() []*node {
	if c := n.get("const"); c != nil {
		return []*node{c}
	}
	return n.list("enum")
}

// typeNames returns what the keyword type has, a name or several.
func (n *node) typeNames() []*node {
	if name := n.get("type"); n.str("type") != "" {
		return []*node{name}
	}
	return n.list("type")
}

// prefixItems returns the schemas of the first items of an array. The keyword replaced a
// list at items.
func (n *node) prefixItems() []*node {
	if first := n.list("prefixItems"); len(first) > 0 {
		return first
	}
	return n.list("items")
}

// others returns the schema of the members that are not in properties, or nil.
func (n *node) others() *node {
	if n.get("patternProperties") != nil {
		return nil
	}
	return n.object("additionalProperties")
}

// isNullable reports whether a schema also allows null, in OpenAPI's way.
func (n *node) isNullable() bool {
	nullable := n.get("nullable")
	return nullable != nil && nullable.kind == 't'
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

// json returns a value as it is written, or nil if it has more than limit bytes.
func (n *node) json(limit int) json.RawMessage {
	if len(n.raw) > limit {
		return nil
	}
	return n.raw
}

// follow resolves the $ref of a schema, within the same document. name is that
// of the definition, or "" if there was no reference. A reference that leads
// out of the document, nowhere or round in a circle, or to an anchor, gives nil.
func follow(n *node) (target *node, name string) {
	for range maxRefHops {
		if n == nil || !n.refers {
			return n, name
		}
		n, name = n.target, cmp.Or(n.name, name)
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
