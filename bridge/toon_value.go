package bridge

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// toonLeaf is a primitive, already encoded. That can be done ahead of the
// layout because with commas everywhere the quoting of a value does not depend
// on its place (§11.1).
type toonLeaf string

// toonNormalize brings v to a tree of toonLeaf, []any and toonObject.
func toonNormalize(v any, depth int) (any, error) {
	if depth > toonMaxDepth {
		return nil, fmt.Errorf("more than %d levels of nesting", toonMaxDepth)
	}
	switch v := v.(type) {
	case nil:
		return toonLeaf("null"), nil
	case bool:
		return toonLeaf(strconv.FormatBool(v)), nil
	case int:
		return toonLeaf(strconv.Itoa(v)), nil
	case int64:
		return toonLeaf(strconv.FormatInt(v, 10)), nil
	case float64:
		return toonFloat(v), nil
	case json.Number:
		return toonNumber(v), nil
	case string:
		if !utf8.ValidString(v) {
			return nil, fmt.Errorf("string %.40q is not valid UTF-8", v)
		}
		return toonString(v), nil
	case []string:
		return toonNormalizeSlice(v, depth)
	case []any:
		return toonNormalizeSlice(v, depth)
	case map[string]any:
		return toonNormalize(toonSorted(v), depth)
	case toonObject:
		obj := make(toonObject, len(v))
		for i, f := range v {
			if !utf8.ValidString(f.Key) {
				return nil, fmt.Errorf("key %.40q is not valid UTF-8", f.Key)
			}
			value, err := toonNormalize(f.Value, depth+1)
			if err != nil {
				return nil, err
			}
			obj[i] = toonField{f.Key, value}
		}
		return obj, nil
	}
	return nil, fmt.Errorf("no rule for a value of type %T", v)
}

func toonNormalizeSlice[T any](vs []T, depth int) (any, error) {
	out := make([]any, len(vs))
	for i, v := range vs {
		value, err := toonNormalize(v, depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = value
	}
	return out, nil
}

func toonSorted(m map[string]any) toonObject {
	obj := make(toonObject, 0, len(m))
	for k, v := range m {
		obj = append(obj, toonField{k, v})
	}
	slices.SortFunc(obj, func(a, b toonField) int { return strings.Compare(a.Key, b.Key) })
	return obj
}

// toonFloat writes plain decimals from 1e-6 up to 1e21 and an exponent, which
// §2 allows, outside of that.
func toonFloat(f float64) toonLeaf {
	switch abs := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return "null"
	case f == 0: // also -0
		return "0"
	case abs >= 1e-6 && abs < 1e21:
		return toonLeaf(strconv.FormatFloat(f, 'f', -1, 64))
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	// Go pads the exponent to two digits: 1e-07.
	return toonLeaf(mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0"))
}

// toonNumber keeps every digit of an integer and takes the rest through
// float64. What is no number, or too large for one, becomes a string.
func toonNumber(n json.Number) toonLeaf {
	s := string(n)
	digits := strings.TrimPrefix(s, "-")
	if isInt := digits != "" && strings.Trim(digits, "0123456789") == ""; isInt && (digits[0] != '0' || len(digits) == 1) {
		if digits == "0" {
			return "0"
		}
		return toonLeaf(s)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !toonLooksNumeric(s) {
		return toonString(strings.ToValidUTF8(s, "\ufffd"))
	}
	return toonFloat(f)
}
