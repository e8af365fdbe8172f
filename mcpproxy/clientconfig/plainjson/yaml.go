package plainjson

import (
	"bytes"
	"encoding/json"
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
	if w.nodes++; w.nodes > maxNodes || w.out.Len() > maxConverted {
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
