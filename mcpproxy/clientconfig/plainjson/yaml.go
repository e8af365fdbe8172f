package plainjson

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"go.yaml.in/yaml/v3"
)

func fromYAML(data []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("is not YAML: %s", text.Printable(strings.TrimPrefix(err.Error(), "yaml: "), 300))
	}
	w := yamlWriter{}
	w.to = jsontext.NewEncoder(&w.out, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	w.node(&doc, 0)
	return w.out.Bytes(), w.err
}

// A yamlWriter writes JSON. It counts what it writes, since a few aliases of
// aliases can stand for more than any memory holds.
type yamlWriter struct {
	out   bytes.Buffer
	to    *jsontext.Encoder
	nodes int
	err   error
}

func (w *yamlWriter) fail(n *yaml.Node, text string) {
	if w.err == nil {
		w.err = fmt.Errorf("is not YAML that can be read: line %d, column %d: %s", n.Line, n.Column, text)
	}
}

func (w *yamlWriter) token(t jsontext.Token) {
	if err := w.to.WriteToken(t); w.err == nil {
		w.err = err
	}
}

func (w *yamlWriter) node(n *yaml.Node, depth int) {
	if w.nodes++; w.nodes > maxNodes || w.to.OutputOffset() > maxConverted {
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
		w.token(jsontext.BeginObject)
		w.members(n, map[string]bool{}, depth)
		w.token(jsontext.EndObject)
	case yaml.SequenceNode:
		w.token(jsontext.BeginArray)
		for _, item := range n.Content {
			w.node(item, depth+1)
		}
		w.token(jsontext.EndArray)
	case yaml.ScalarNode:
		w.scalar(n)
	default:
		w.token(jsontext.Null)
	}
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
		case !seen[k.Value]:
			seen[k.Value] = true
			w.token(jsontext.String(k.Value))
			w.node(v, depth+1)
		}
	}
	for _, m := range merged {
		items := []*yaml.Node{m}
		if m = aliased(m); m.Kind == yaml.SequenceNode {
			items = m.Content
		}
		for _, item := range items {
			if item = aliased(item); item.Kind == yaml.MappingNode {
				w.members(item, seen, depth+1)
			}
		}
	}
}

func aliased(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func (w *yamlWriter) scalar(n *yaml.Node) {
	switch n.ShortTag() {
	case "!!null":
		w.token(jsontext.Null)
	case "!!bool", "!!int", "!!float":
		raw := []byte(n.Value) // as it was written, however large
		if !json.Valid(raw) {
			var v any
			if n.Decode(&v) == nil {
				raw, _ = json.Marshal(v) // inf and nan cannot be
			}
		}
		if w.to.WriteValue(raw) == nil {
			return
		}
		fallthrough
	default:
		w.token(jsontext.String(n.Value))
	}
}
