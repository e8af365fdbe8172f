package signature

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bounds on the checks of one signature and of one call. What is beyond them is
// not checked: the server will do it.
const (
	maxChecks     = 5000     // schemas and allowed values
	maxTogether   = 16       // that one value has to pass, before no more are added
	maxCheckDepth = 64       // of a value
	maxCheckWork  = 64 << 20 // bytes looked at; branches look at the same bytes again
	checkStep     = 256      // what a value costs of that, in addition to its bytes
	decodeStep    = 8        // what a byte of a text with escapes costs
	compareStep   = 32       // and what it costs to compare it with another
	maxCompared   = 64 << 10 // bytes of an array or object that is
	maxNumber     = 400      // bytes of a number that is read
)

// jsonType is a set of JSON types.
type jsonType uint8

const (
	jsonString jsonType = 1 << iota
	jsonNumber
	jsonInteger
	jsonBoolean
	jsonArray
	jsonObject
	jsonNull
)

var (
	jsonTypes = map[string]jsonType{
		"string": jsonString, "number": jsonNumber, "integer": jsonInteger, "boolean": jsonBoolean,
		"array": jsonArray, "object": jsonObject, "null": jsonNull,
	}
	jsonTypeWords = []string{"a string", "a number", "an integer", "a boolean", "an array", "an object", "None"}
)

// A check is what is checked of a schema before a call goes out. A nil one accepts
// everything, as do keywords that are not listed here.
type check struct {
	types    jsonType // 0 is any
	nullable bool
	values   []*node    // of enum or const; nil is any
	either   [][]*check // anyOf and oneOf: of each list, one has to accept the value
	all      []*check
	places   []*check // the first items of an array
	items    *check   // the others
	fields   map[string]*check
	others   *check   // members that are not in fields
	required []string // members
}

// A checkBuilder makes checks of the schemas of one document.
type checkBuilder struct {
	old  bool             // of a draft before 2019-09, which knows no prefixItems
	made map[*node]*check // a schema may contain itself
	left int              // checks and values it may still make
}

func newCheckBuilder(root *node) *checkBuilder {
	return &checkBuilder{old: strings.Contains(root.str("$schema"), "/draft-0"), made: map[*node]*check{}, left: maxChecks}
}

// of makes the check of a schema, or nil if it cannot be understood.
func (b *checkBuilder) of(n *node) *check {
	if n == nil {
		return nil
	}
	n, _ = follow(n)
	if n == nil || n.kind != '{' {
		return nil
	}
	if c, ok := b.made[n]; ok {
		return c
	}
	if b.left--; b.left < 0 {
		return nil
	}
	c := &check{types: typesOf(n), values: b.allowed(n)}
	b.made[n] = c
	nullable := n.get("nullable") // OpenAPI's way
	c.nullable = nullable != nil && nullable.kind == 't'
	for _, key := range []string{"anyOf", "oneOf"} {
		if branches := b.several(n.list(key)); len(branches) > 0 && !slices.Contains(branches, nil) {
			c.either = append(c.either, branches)
		}
	}
	c.all = b.several(n.list("allOf"))
	b.addItems(c, n)
	b.addMembers(c, n)
	return c
}

// addItems adds what a schema says of the items of an array. prefixItems took the place
// of a list at items; who has both, or the new one in an old draft, is not understood.
func (b *checkBuilder) addItems(c *check, n *node) {
	first, list := n.list("prefixItems"), n.list("items")
	if len(first) > 0 && (len(list) > 0 || b.old) {
		return
	}
	c.places = b.several(slices.Concat(first, list))
	c.items = b.of(n.object("items"))
}

// together makes a check that accepts what all of several do.
func together(all []*check) *check {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return &check{all: all}
}

// fits reports whether a check accepts a value.
func fits(c *check, value []byte) bool {
	v := valueChecker{left: maxCheckWork}
	return v.mismatch(c, value, 0) == nil
}

func (b *checkBuilder) several(schemas []*node) []*check {
	var checks []*check
	for _, n := range schemas {
		checks = append(checks, b.of(n))
	}
	return checks
}

// addMembers adds what a schema says of the members of an object. Generators list
// members with a default as required, though the server fills them in itself.
func (b *checkBuilder) addMembers(c *check, n *node) {
	properties := n.object("properties")
	if properties == nil {
		properties = &node{}
	}
	c.fields = make(map[string]*check, len(properties.keys))
	for i, name := range properties.keys {
		c.fields[name] = b.of(properties.values[i])
	}
	if n.get("patternProperties") == nil {
		c.others = b.of(n.object("additionalProperties"))
	}
	for _, name := range n.list("required") {
		if schema, _ := follow(properties.get(name.text)); name.kind == '"' && schema.get("default") == nil {
			c.required = append(c.required, name.text)
		}
	}
}

// allowed returns the values of an enum or const, or nil if any is allowed.
func (b *checkBuilder) allowed(n *node) []*node {
	values := n.list("enum")
	if c := n.get("const"); c != nil {
		values = []*node{c}
	}
	if b.left -= len(values); b.left < 0 || len(values) > maxLiterals {
		return nil
	}
	return values
}

// typesOf reads the keyword type: 0 is any, also where a name in it is unknown.
func typesOf(n *node) (types jsonType) {
	names := n.list("type")
	if name := n.get("type"); name != nil && name.kind == '"' {
		names = []*node{name}
	}
	for _, name := range names {
		typ := jsonTypes[name.text]
		if typ == 0 || name.kind != '"' {
			return 0
		}
		types |= typ
	}
	return types
}

// typeOf returns the JSON types of a value (a whole number has two) and Python's name
// for it.
func typeOf(value []byte) (typ jsonType, python string) {
	switch value[0] {
	case '"':
		return jsonString, "str"
	case '{':
		return jsonObject, "dict"
	case '[':
		return jsonArray, "list"
	case 't', 'f':
		return jsonBoolean, "bool"
	case 'n':
		return jsonNull, "None"
	}
	if !bytes.ContainsAny(value[:min(len(value), maxNumber)], ".eE") {
		return jsonNumber | jsonInteger, "int"
	}
	// JSON Schema: 3.0 is an integer. What no float can hold has no fraction either.
	if f, ok := number(value); !ok || f == math.Trunc(f) {
		return jsonNumber | jsonInteger, "float"
	}
	return jsonNumber, "float"
}

// number reads a value as a number, if it is one that a float can hold.
func number(value []byte) (f float64, ok bool) {
	if len(value) > maxNumber {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(value), 64)
	return f, err == nil
}
