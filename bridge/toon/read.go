package toon

import (
	"encoding/json/jsontext"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// leaf is a primitive, already encoded. That can be done ahead of the
// layout because with commas everywhere the quoting of a value does not depend
// on its place (§11.1).
type leaf string

// read reads a value of JSON as a tree of leaf, []any and object.
func read(d *jsontext.Decoder) (any, error) {
	if d.StackDepth() > maxDepth {
		return nil, fmt.Errorf("more than %d levels of nesting", maxDepth)
	}
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case jsontext.KindString:
		return stringLeaf(token.String()), nil
	case jsontext.KindNumber:
		return numberLeaf(token.String()), nil
	case jsontext.KindBeginArray:
		list := []any{}
		for d.PeekKind() != jsontext.KindEndArray {
			value, err := read(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = d.ReadToken()
		return list, err
	case jsontext.KindBeginObject:
		obj := object{}
		for d.PeekKind() != jsontext.KindEndObject {
			token, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			key := token.String()
			value, err := read(d)
			if err != nil {
				return nil, err
			}
			obj = append(obj, member{key, value})
		}
		_, err = d.ReadToken()
		return obj, err
	}
	return leaf(token.String()), nil
}

// numberLeaf keeps all digits of an int64. Of others it writes plain decimals from 1e-6 up
// to 1e21 and an exponent, which §2 allows, outside of that.
func numberLeaf(text string) leaf {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return leaf(strconv.FormatInt(n, 10)) // of -0 it is 0
	}
	f, _ := strconv.ParseFloat(text, 64) // JSON has no others, and what is out of range is infinite
	switch abs := math.Abs(f); {
	case math.IsInf(f, 0):
		return "null"
	case f == 0: // also -0.0
		return "0"
	case abs >= 1e-6 && abs < 1e21:
		return leaf(strconv.FormatFloat(f, 'f', -1, 64))
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	// Go pads the exponent to two digits: 1e-07.
	return leaf(mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0"))
}
