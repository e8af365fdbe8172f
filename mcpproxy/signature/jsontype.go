package signature

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// Bounds on the checks of one signature and of one call. Beyond them, the server checks.
const (
	maxShown      = 5000     // allowed values of several branches
	maxTogether   = 16       // schemas that one value is checked against
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

// combined makes a schema of several: with allOf it allows what all of them do, with anyOf
// what one of them does.
func combined(key string, all []*node) *node {
	if len(all) == 1 {
		return all[0]
	}
	return &node{kind: '{', keys: []string{key}, values: []*node{{kind: '[', values: all}}}
}

// isOld reports whether a document is of a draft before 2019-09, which knows no prefixItems.
func isOld(root *node) bool { return strings.Contains(root.str("$schema"), "/draft-0") }

// typesOf reads the keyword type: 0 is any, also where a name in it is unknown.
func typesOf(n *node) (types jsonType) {
	names := n.typeNames()
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
