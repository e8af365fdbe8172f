package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/toolcell/toolcell/mcpproxy/rawjson"
)

// A condition is one [[when]] of a tool: at which of its arguments the user is asked.
// Where it cannot be sure what the server will make of them, the user is asked too.
type condition struct {
	text   string // as a rule, such as amount > 100
	path   []string
	op     string
	values []operand // any of which counts; some ops take only one
}

// asks returns why the user is asked about these arguments, "" if not.
func (w condition) asks(arguments json.RawMessage) string {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	return w.find(arguments, w.path)
}

// find checks what is at a path in a value.
func (w condition) find(raw []byte, path []string) (reason string) {
	if len(path) == 0 {
		return w.check(raw)
	}
	s := rawjson.Scanner{Text: raw}
	step, found, ok := path[0], path[0] == "*", false
	switch k := kindOf(raw); k {
	case anObject:
		ok = s.Object(func(quoted []byte) bool {
			value, ok := s.Value(rawjson.MaxDepth)
			name, decoded := textOf(quoted)
			switch {
			case !ok || !decoded:
				return false
			case step == "*" || name == step:
				found = true
				reason = w.find(value, path[1:])
			case folded(name) == folded(step): // encoding/json, for one, takes it for the same
				reason = fmt.Sprintf("another name is read as %q by some programs", step)
			}
			return reason == ""
		})
	case aList:
		at := 0
		ok = s.List(func() bool {
			value, ok := s.Value(rawjson.MaxDepth)
			if ok && (step == "*" || step == strconv.Itoa(at)) {
				found = true
				reason = w.find(value, path[1:])
			}
			at++
			return ok && reason == ""
		})
	default:
		return fmt.Sprintf("%s has no %q", k, step)
	}
	switch {
	case reason != "":
		return reason
	case !ok:
		return "the arguments cannot be read"
	case !found:
		return fmt.Sprintf("there is no %q", step)
	}
	return ""
}

// check returns why the user is asked about one value.
func (w condition) check(raw []byte) string {
	k, asks := kindOf(raw), false
	if !slices.ContainsFunc(w.values, func(v operand) bool { return v.kind == k }) {
		return "it is " + string(k)
	}
	switch k {
	case aBoolean:
		is := string(raw) == "true"
		equal := func(v operand) bool { return v.kind == k && v.truth == is }
		asks = slices.ContainsFunc(w.values, equal) == (w.op == "==")
	case aNumber:
		d, ok := parseDecimal(string(raw))
		if !ok {
			return "it is too large or too small to be compared"
		}
		asks = w.asksAboutNumber(d)
	case aString:
		s, ok := textOf(raw)
		if !ok {
			return "it cannot be read"
		}
		return w.asksAboutText(s)
	}
	if asks {
		return "it is"
	}
	return ""
}

func (w condition) asksAboutNumber(d decimal) bool {
	if w.op == "!=" {
		return !slices.ContainsFunc(w.values, func(v operand) bool { return v.kind == aNumber && d.compare(v.number) == 0 })
	}
	return slices.ContainsFunc(w.values, func(v operand) bool {
		// Many servers read a number as a float64, which may be on the other side.
		return v.kind == aNumber && (ordered(w.op, d.compare(v.number)) || ordered(w.op, cmp.Compare(d.float, v.number.float)))
	})
}

// ordered reports whether an op holds for how two numbers compare.
func ordered(op string, how int) bool {
	switch op {
	case "==":
		return how == 0
	case "<":
		return how < 0
	case "<=":
		return how <= 0
	case ">":
		return how > 0
	}
	return how >= 0 // >=
}
