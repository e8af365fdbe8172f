package signature

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/pyname"
	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
)

// A mismatch is a value that a schema does not allow.
type mismatch struct {
	path   string   // below the value that was checked, such as .depth or [2]
	lacks  string   // the member that is missing; else the value is not of
	types  jsonType // these types, or
	values []*node  // none of these
	value  []byte
}

// A valueChecker checks the values of one call.
type valueChecker struct {
	old    bool                             // the schema is of an old draft
	except func(value json.RawMessage) bool // as in Signature
	left   int                              // work that it may still do
}

// mismatch returns what of a value a schema does not allow, or nil. It stops at
// the first thing. A schema that cannot be understood allows everything, as do keywords that
// are not here.
func (v *valueChecker) mismatch(n *node, value []byte, depth int) *mismatch {
	n, value = n.schema(), bytes.TrimSpace(value)
	v.left -= checkStep
	if n == nil || v.left < 0 || depth > maxCheckDepth || len(value) == 0 || value[0] == 'n' && n.isNullable() {
		return nil
	}
	if n.types != 0 {
		if typ, _ := typeOf(value); n.types&typ == 0 {
			return &mismatch{types: n.types, value: value}
		}
	}
	if values := n.allowed(); len(values) > 0 && len(values) <= maxLiterals && !v.isOneOf(values, value) {
		return &mismatch{values: values, value: value}
	}
	for _, part := range n.list("allOf") {
		if m := v.mismatch(part, value, depth+1); m != nil {
			return m
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if branches := n.list(key); len(branches) > 0 {
			if m := v.branches(branches, value, depth+1); m != nil {
				return m
			}
		}
	}
	switch value[0] {
	case '[':
		return v.items(n, value, depth+1)
	case '{':
		return v.members(n, value, depth+1)
	}
	return nil
}

// isOneOf reports whether a value is one of those that an enum allows. A server may be
// lenient about the case of a text, so that does not count.
func (v *valueChecker) isOneOf(values []*node, value []byte) bool {
	v.left -= len(value) + compareStep*len(values)
	var txt string
	isText := value[0] == '"' && mayBeEqual(values, value)
	switch {
	case !isText:
	case bytes.IndexByte(value, '\\') < 0:
		txt = string(value[1 : len(value)-1])
	default:
		v.left -= decodeStep * len(value) // branches decode it again and again
		if json.Unmarshal(value, &txt) != nil {
			return true // what cannot be read is not refused
		}
	}
	given, isNumber := number(value)
	return slices.ContainsFunc(values, func(n *node) bool {
		switch {
		case n.kind == '0':
			if value[0] == '"' || value[0] > '9' {
				return false
			}
			allowed, ok := number([]byte(n.text))
			return !ok || !isNumber || given == allowed // what no float can hold is not compared
		case n.kind != value[0]:
			return false
		case n.kind == '"':
			return isText && strings.EqualFold(n.text, txt)
		case n.kind == '{' || n.kind == '[':
			return v.sameJSON(n, value)
		}
		return true
	})
}

// mayBeEqual reports whether a text is no longer than those of an enum can be written:
// escapes take six times as many bytes, and the other case of a character up to three.
func mayBeEqual(values []*node, quoted []byte) bool {
	longest := 0
	for _, n := range values {
		longest = max(longest, len(n.text))
	}
	return len(quoted)-2 <= 6*3*longest
}

// sameJSON reports whether an array or object may be the same as another.
func (v *valueChecker) sameJSON(n *node, value []byte) bool {
	var ours, theirs any
	raw := n.json(maxCompared)
	if raw == nil || len(value) > maxCompared || v.left < 0 {
		return true
	}
	v.left -= compareStep * (len(raw) + len(value))
	return json.Unmarshal(raw, &ours) != nil || json.Unmarshal(value, &theirs) != nil || reflect.DeepEqual(ours, theirs)
}

// branches returns nil if one of several schemas allows the value, or else what is
// most likely wrong with it.
func (v *valueChecker) branches(branches []*node, value []byte, depth int) *mismatch {
	var all []*mismatch
	for _, branch := range branches {
		m := v.mismatch(branch, value, depth)
		if m == nil {
			return nil
		}
		all = append(all, m)
	}
	return likeliest(all)
}

// likeliest puts together what several branches say. A branch that found fault with
// a part of the value is meant rather than one that refused it as a whole, and one
// whose const or enum refused a part, which tells branches apart, is not meant.
func likeliest(all []*mismatch) *mismatch {
	for _, m := range all {
		if m.lacks != "" || m.path != "" && m.values == nil {
			return m
		}
	}
	if i := slices.IndexFunc(all, func(m *mismatch) bool { return m.path != "" }); i >= 0 {
		all = slices.DeleteFunc(all[i:], func(m *mismatch) bool { return m.path != all[i].path })
	}
	whole := *all[0]
	whole.values = slices.Clip(whole.values)
	for _, m := range all[1:] {
		whole.types |= m.types
		if len(whole.values)+len(m.values) <= maxShown { // branches may have the same values many times over
			whole.values = append(whole.values, m.values...)
		}
	}
	return &whole
}

func (v *valueChecker) items(n *node, value []byte, depth int) *mismatch {
	first, others := n.prefixItems(), n.object("items").schema()
	if prefix := len(n.list("prefixItems")) > 0; prefix && (v.old || len(n.list("items")) > 0) || len(first) == 0 && others == nil {
		return nil // both, or the new one in an old draft, are not understood
	}
	v.left -= len(value)
	s := rawjson.Scanner{Text: value}
	for i, item := range s.Items {
		of := others
		if i < len(first) {
			of = first[i]
		}
		if m := v.mismatch(of, item, depth); m != nil {
			m.path = fmt.Sprintf("[%d]%s", i, m.path)
			return m
		}
		if v.left <= 0 {
			break
		}
	}
	return nil
}

// members checks the members of an object. Generators list members with a default as
// required, though the server fills them in itself.
func (v *valueChecker) members(n *node, value []byte, depth int) *mismatch {
	properties, required, others := n.object("properties"), n.list("required"), n.others()
	if properties == nil && len(required) == 0 && others == nil {
		return nil
	}
	v.left -= len(value)
	seen := map[string]bool{}
	s := rawjson.Scanner{Text: value}
	for quoted, member := range s.Members {
		var name string
		if json.Unmarshal(quoted, &name) != nil {
			return nil
		}
		seen[name] = true
		if m := v.mismatch(cmp.Or(properties.get(name), others), member, depth); m != nil {
			m.path = step(name) + m.path
			return m
		}
		if v.left <= 0 {
			return nil
		}
	}
	if !s.OK() {
		return nil
	}
	for _, name := range required {
		if name.kind != '"' || seen[name.text] {
			continue
		}
		if schema, _ := follow(properties.get(name.text)); schema.get("default") == nil {
			return &mismatch{lacks: name.text, value: value}
		}
		if v.left -= checkStep; v.left < 0 {
			break
		}
	}
	return nil
}

// step is a member's name in the path to a value.
func step(name string) string {
	if pyname.IsIdentifier(name) && len(name) <= shownLiteral {
		return "." + name
	}
	return "[" + quote(text.Clip(name, shownLiteral)) + "]"
}

// refuse returns an *ArgumentError if a value does not fit.
func (v *valueChecker) refuse(tool, name string, n *node, value []byte) error {
	if v.except != nil && v.except(value) {
		return nil
	}
	m := v.mismatch(n, value, 0)
	if m == nil {
		return nil
	}
	at := text.Clip(name+m.path, 4*shownLiteral)
	switch {
	case m.lacks != "":
		return &ArgumentError{TypeError, fmt.Sprintf("%s(): %s lacks %s", tool, at, quote(m.lacks))}
	case m.values != nil:
		return &ArgumentError{ValueError, m.valueText(tool, at)}
	}
	_, python := typeOf(m.value)
	return &ArgumentError{TypeError, fmt.Sprintf("%s(): %s must be %s, not %s", tool, at, joined(m.types.words(), "or"), python)}
}

// valueText says which values an enum allows, and the nearest one of many.
func (m *mismatch) valueText(tool, at string) string {
	got := text.Printable(text.Clip(string(m.value), shownLiteral), shownLiteral)
	var shown, known []string
	for _, n := range m.values {
		shown = append(shown, n.python(shownLiteral))
		if n.kind != '{' && n.kind != '[' {
			known = append(known, shown[len(shown)-1])
		}
	}
	near := ""
	if len(m.values) > shownLiterals && len(known) > 0 {
		near = "; the nearest is " + text.Nearest(got, known, 1)[0]
	}
	must := "must be one of "
	if shown = append(shown, m.types.words()...); len(shown) == 1 {
		must = "must be "
	}
	return fmt.Sprintf("%s() got %s for %s, which %s%s%s", tool, got, at, must, strings.Join(first20(shown), ", "), near)
}

// words names the types of a set.
func (t jsonType) words() (words []string) {
	for ; t != 0; t &= t - 1 {
		words = append(words, jsonTypeWords[bits.TrailingZeros8(uint8(t))])
	}
	return words
}
