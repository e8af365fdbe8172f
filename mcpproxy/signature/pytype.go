package signature

import (
	"maps"
	"slices"
	"strings"
)

type typeKind int

const (
	kindName    typeKind = iota // str, Any, or a definition that contains itself
	kindList                    // of args[0]
	kindDict                    // of args[0]
	kindUnion                   // of args
	kindLiteral                 // one of values
	kindRecord                  // a dictionary with fields
)

// A pyType is a schema as Python says it.
type pyType struct {
	kind   typeKind
	name   string // of a kindName
	args   []*pyType
	values []*node
	fields []pyField
}

type pyField struct {
	name     string
	typ      *pyType
	required bool
	about    string
}

// union joins types, without repetitions and with None at the end.
func union(types ...*pyType) *pyType {
	var members []*pyType
	seen := map[string]bool{}
	null := false
	var add func(types []*pyType)
	add = func(types []*pyType) {
		for _, typ := range types {
			text := typ.text(maxTypeDepth)
			switch {
			case typ.kind == kindUnion:
				add(typ.args)
			case typ == typeNone:
				null = true
			case !seen[text]:
				seen[text] = true
				members = append(members, typ)
			}
		}
	}
	add(types)
	if seen["Any"] {
		return typeAny
	}
	if null {
		members = append(members, typeNone)
	}
	if len(members) == 1 {
		return members[0]
	}
	return &pyType{kind: kindUnion, args: members}
}

// literals is the type of an enum or const. Python's Literal has no floats and
// no collections: with such, and with too many values, it is the plain type.
func literals(values []*node, plain *pyType) *pyType {
	var kept []*node
	null := false
	for _, v := range values {
		switch {
		case v.kind == 'n':
			null = true
		case v.kind == '{', v.kind == '[', v.kind == '0' && strings.ContainsAny(v.text, ".eE"):
			return plain
		default:
			kept = append(kept, v)
		}
	}
	switch {
	case len(kept) > maxLiterals:
		return plain
	case len(kept) == 0:
		return typeNone
	case null:
		return union(&pyType{kind: kindLiteral, values: kept}, typeNone)
	}
	return &pyType{kind: kindLiteral, values: kept}
}

// takesObject reports whether a value of the type may be a mapping.
func (p *pyType) takesObject() bool {
	switch p.kind {
	case kindDict, kindRecord:
		return true
	case kindUnion:
		return slices.ContainsFunc(p.args, (*pyType).takesObject)
	case kindName:
		return !p.isScalar() && p != typeList
	}
	return false
}

// takesNull reports whether null may be a value of the type.
func (p *pyType) takesNull() bool {
	switch p.kind {
	case kindUnion:
		return slices.ContainsFunc(p.args, (*pyType).takesNull)
	case kindName: // what cannot be known may be null
		return p == typeNone || !p.isScalar() && p != typeDict && p != typeList
	}
	return false
}

// isScalar reports whether the type is one that JSON has too, but for lists and objects.
func (p *pyType) isScalar() bool { return slices.Contains(slices.Collect(maps.Values(typeNames)), p) }
