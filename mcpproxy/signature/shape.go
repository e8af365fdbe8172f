package signature

import (
	"encoding/json"
	"slices"
	"strings"
)

// Bounds on a shape. Anything beyond them is left out.
const (
	maxShapeDepth   = 6
	maxShapeMembers = 100
	maxShapeVisits  = 1000 // schemas looked at
)

// Shape returns what the values of an output schema consist of, as JSON: a leaf is "str",
// "int", "float" or "bool", a list has the shape of its items, and an object those of its
// properties, in their order. null is anything else, and what the schema does not say. Of
// alternatives the first counts that says something.
func Shape(outputSchema json.RawMessage) json.RawMessage {
	s := shaper{members: maxShapeMembers, visits: maxShapeVisits}
	return s.appendTo(nil, parseSchema(outputSchema), maxShapeDepth)
}

type shaper struct {
	members int // objects may still have
	visits  int // left
}

// appendTo writes the shape of a schema.
func (s *shaper) appendTo(out []byte, n *node, depth int) []byte {
	const null = "null"
	n = n.schema()
	if s.visits--; n == nil || s.visits < 0 {
		return append(out, null...)
	}
	types := shapeTypes(n)
	switch {
	case types&jsonObject != 0:
		return s.appendObject(out, n, depth)
	case types&jsonArray != 0 && depth > 0:
		return append(s.appendTo(append(out, '['), n.object("items"), depth-1), ']')
	case types&jsonString != 0:
		return append(out, `"str"`...)
	case types&jsonNumber != 0:
		return append(out, `"float"`...)
	case types&jsonInteger != 0:
		return append(out, `"int"`...)
	case types&jsonBoolean != 0:
		return append(out, `"bool"`...)
	}
	for _, branch := range slices.Concat(n.list("anyOf"), n.list("oneOf"), n.list("allOf")) {
		if shape := s.appendTo(nil, branch, depth); string(shape) != null {
			return append(out, shape...)
		}
	}
	return append(out, null...)
}

// shapeTypes returns the types of a schema, or of the first value that it allows.
func shapeTypes(n *node) jsonType {
	types, values := n.types, n.allowed()
	switch {
	case types != 0:
	case n.get("properties") != nil:
		return jsonObject
	case n.get("items") != nil:
		return jsonArray
	case len(values) > 0 && values[0].kind == '0' && !strings.ContainsAny(values[0].text, ".eE"):
		return jsonInteger
	case len(values) > 0:
		return map[byte]jsonType{'"': jsonString, 't': jsonBoolean, 'f': jsonBoolean, '0': jsonNumber}[values[0].kind]
	}
	return types
}

func (s *shaper) appendObject(out []byte, n *node, depth int) []byte {
	out = append(out, '{')
	for name, schema := range n.object("properties").members {
		if depth == 0 {
			break
		}
		if s.members--; s.members < 0 || len(name) > maxParameterName {
			continue
		}
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		key, _ := json.Marshal(name) // strings always encode
		out = s.appendTo(append(append(out, key...), ':'), schema, depth-1)
	}
	return append(out, '}')
}
