package toon

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// leaf is a primitive, already encoded. That can be done ahead of the
// layout because with commas everywhere the quoting of a value does not depend
// on its place (§11.1).
type leaf string

// normalize brings v to a tree of leaf, []any and Object.
func normalize(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("more than %d levels of nesting", maxDepth)
	}
	switch v := v.(type) {
	case nil:
		return leaf("null"), nil
	case bool:
		return leaf(strconv.FormatBool(v)), nil
	case int:
		return leaf(strconv.Itoa(v)), nil
	case int64:
		return leaf(strconv.FormatInt(v, 10)), nil
	case float64:
		return floatLeaf(v), nil
	case string:
		if !utf8.ValidString(v) {
			return nil, fmt.Errorf("string %.40q is not valid UTF-8", v)
		}
		return stringLeaf(v), nil
	case []string:
		return normalizeSlice(v, depth)
	case []any:
		return normalizeSlice(v, depth)
	case map[string]any:
		obj := make(Object, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			obj = append(obj, Field{key, v[key]})
		}
		return normalize(obj, depth)
	case Object:
		obj := make(Object, len(v))
		for i, f := range v {
			if !utf8.ValidString(f.Key) {
				return nil, fmt.Errorf("key %.40q is not valid UTF-8", f.Key)
			}
			value, err := normalize(f.Value, depth+1)
			if err != nil {
				return nil, err
			}
			obj[i] = Field{f.Key, value}
		}
		return obj, nil
	}
	return nil, fmt.Errorf("no rule for a value of type %T", v)
}

func normalizeSlice[T any](vs []T, depth int) (any, error) {
	out := make([]any, len(vs))
	for i, v := range vs {
		value, err := normalize(v, depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = value
	}
	return out, nil
}

// floatLeaf writes plain decimals from 1e-6 up to 1e21 and an exponent, which
// §2 allows, outside of that.
func floatLeaf(f float64) leaf {
	switch abs := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return "null"
	case f == 0: // also -0
		return "0"
	case abs >= 1e-6 && abs < 1e21:
		return leaf(strconv.FormatFloat(f, 'f', -1, 64))
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	// Go pads the exponent to two digits: 1e-07.
	return leaf(mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0"))
}
