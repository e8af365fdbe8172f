package signature

import (
	"slices"
)

// Bounds on the types of one signature.
const (
	maxTypeNodes   = 1000
	maxTypeDepth   = 8
	maxTypeFields  = 60
	maxTypeMembers = 12   // of a union
	maxLiterals    = 2000 // that a value is checked against
	shownLiterals  = 20
	shownLiteral   = 80 // bytes of one
	fieldComment   = 120
)

var (
	typeAny  = &pyType{name: "Any"}
	typeNone = &pyType{name: "None"}
	typeDict = &pyType{name: "dict"}
	typeList = &pyType{name: "list"}
)

// typeNames are the JSON types that Python has as they are.
var typeNames = map[string]*pyType{
	"string": {name: "str"}, "integer": {name: "int"}, "number": {name: "float"}, "boolean": {name: "bool"},
	"null": typeNone,
}

// A typeBuilder makes types of the schemas of one document.
type typeBuilder struct {
	open []*node // the schemas it is inside of: meeting one again is a loop
	left int     // types it may still make
}

// typeOf returns the type that a schema describes, Any if it is unknown.
func (t *typeBuilder) typeOf(n *node) *pyType {
	_, name := follow(n)
	if n, t.left = n.schema(), t.left-1; n == nil || t.left < 0 {
		return typeAny
	}
	if slices.Contains(t.open, n) {
		return &pyType{name: className(name, "Node")}
	}
	if len(t.open) >= maxTypeDepth {
		return typeAny
	}
	t.open = append(t.open, n)
	defer func() { t.open = t.open[:len(t.open)-1] }()
	typ := t.described(n)
	if n.isNullable() {
		typ = union(typ, typeNone)
	}
	return typ
}

// described is typeOf for a schema that is no reference.
func (t *typeBuilder) described(n *node) *pyType {
	if values := n.allowed(); len(values) > 0 {
		return literals(values, t.plain(n))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if members := n.list(key); len(members) > 0 {
			if typ := t.either(members); typ != typeAny {
				return typ
			}
		}
	}
	if members := n.list("allOf"); len(members) > 0 && n.object("properties") == nil {
		return t.all(members)
	}
	return t.plain(n)
}

// plain goes by the keyword type and what belongs to it.
func (t *typeBuilder) plain(n *node) *pyType {
	names := n.typeNames()
	if len(names) == 0 {
		switch {
		case n.object("properties") != nil || n.object("additionalProperties") != nil:
			return t.object(n)
		case n.get("items") != nil || n.list("prefixItems") != nil:
			return t.list(n)
		}
		return typeAny
	}
	var members []*pyType
	for _, name := range names[:min(len(names), maxTypeMembers)] {
		switch {
		case name.kind != '"':
			return typeAny
		case name.text == "object":
			members = append(members, t.object(n))
		case name.text == "array":
			members = append(members, t.list(n))
		case typeNames[name.text] != nil:
			members = append(members, typeNames[name.text])
		default:
			return typeAny
		}
	}
	return union(members...)
}

func (t *typeBuilder) list(n *node) *pyType {
	var item *pyType
	if items := n.object("items"); items != nil {
		item = t.typeOf(items)
	} else {
		item = t.either(n.prefixItems())
	}
	if item == typeAny {
		return typeList
	}
	return &pyType{kind: kindList, args: []*pyType{item}}
}

func (t *typeBuilder) object(n *node) *pyType {
	properties := n.object("properties")
	if properties == nil || len(properties.keys) == 0 {
		if more := n.object("additionalProperties"); more != nil {
			if value := t.typeOf(more); value != typeAny {
				return &pyType{kind: kindDict, args: []*pyType{value}}
			}
		}
		return typeDict
	}
	if len(properties.keys) > maxTypeFields {
		return typeDict
	}
	needed := stringSet(n.list("required"))
	record := &pyType{kind: kindRecord}
	for key, field := range properties.members {
		record.fields = append(record.fields, pyField{key, t.typeOf(field), needed[key], shorten(field.str("description"), fieldComment)})
	}
	return record
}

// either is the union of several schemas; one that says nothing of the type
// (such as one that only requires a property) does not count.
func (t *typeBuilder) either(members []*node) *pyType {
	if len(members) > maxTypeMembers {
		return typeAny
	}
	var types []*pyType
	for _, m := range members {
		if typ := t.typeOf(m); typ != typeAny {
			types = append(types, typ)
		}
	}
	if len(types) == 0 {
		return typeAny
	}
	return union(types...)
}

// all is what several schemas demand together: the fields of all of them, or
// else the first that says something.
func (t *typeBuilder) all(members []*node) *pyType {
	typ := typeAny
	for _, m := range members[:min(len(members), maxTypeMembers)] {
		switch next := t.typeOf(m); {
		case typ == typeAny:
			typ = next
		case typ.kind == kindRecord && next.kind == kindRecord && len(typ.fields)+len(next.fields) <= maxTypeFields:
			typ = &pyType{kind: kindRecord, fields: slices.Concat(typ.fields, next.fields)}
		}
	}
	return typ
}

func stringSet(list []*node) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, n := range list {
		if n.kind == '"' {
			set[n.text] = true
		}
	}
	return set
}
