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
	text   string   // as a rule, such as amount > 100
	path   []string // names, and indexes of lists; * is all of them
	op     string
	values []operand // any of which counts
}

// An answer says whether the user is asked; why is empty where the rule itself says it.
type answer struct {
	asks bool
	why  string
}

// suffix is the end of a reason.
func (a answer) suffix() string {
	if a.why == "" {
		return ""
	}
	return ": " + a.why
}

func because(format string, args ...any) answer { return answer{true, fmt.Sprintf(format, args...)} }

// check looks at the arguments of a call.
func (w condition) check(arguments json.RawMessage) answer {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	return w.find(arguments, w.path)
}

// find looks at what is at a path in a value.
func (w condition) find(raw []byte, path []string) answer {
	if len(path) == 0 {
		return w.checkValue(raw)
	}
	var a answer
	s := rawjson.Scanner{Text: raw}
	step, found, ok := path[0], path[0] == "*", false
	switch k := kindOf(raw); k {
	case anObject:
		ok = s.Object(func(quoted []byte) bool {
			value, ok := s.Value(rawjson.MaxDepth)
			same, similar := compareName(quoted, step)
			switch {
			case !ok:
				return false
			case step == "*" || same:
				found = true
				a = w.find(value, path[1:])
			case similar: // encoding/json, for one, takes it for the same
				a = because("another name may be read as %q", step)
			}
			return !a.asks
		})
	case aList:
		at := 0
		ok = s.List(func() bool {
			value, ok := s.Value(rawjson.MaxDepth)
			if ok && (step == "*" || step == strconv.Itoa(at)) {
				found = true
				a = w.find(value, path[1:])
			}
			at++
			return ok && !a.asks
		})
	default:
		return because("%s has no %q", k, step)
	}
	switch {
	case a.asks:
		return a
	case !ok:
		return because("the arguments cannot be read")
	case !found:
		return because("there is no %q", step)
	}
	return answer{}
}

// checkValue looks at one value.
func (w condition) checkValue(raw []byte) answer {
	k := kindOf(raw)
	if !slices.ContainsFunc(w.values, func(v operand) bool { return v.kind == k }) {
		return because("it is %s", k)
	}
	switch k {
	case aBoolean:
		is := string(raw) == "true"
		equal := slices.ContainsFunc(w.values, func(v operand) bool { return v.kind == k && v.truth == is })
		return answer{asks: equal == (w.op == "==")}
	case aNumber:
		return w.checkNumber(raw)
	}
	return w.checkText(raw)
}

func (w condition) checkNumber(raw []byte) answer {
	d, ok := parseDecimal(string(raw))
	if !ok {
		return because("it is too large or too small to be compared")
	}
	holds := func(op string) bool {
		return slices.ContainsFunc(w.values, func(v operand) bool { return v.kind == aNumber && ordered(op, d.compare(v.number)) })
	}
	if w.op == "!=" {
		return answer{asks: !holds("==")}
	}
	// Many servers read a number as a float64, which may be on the other side.
	rounded := slices.ContainsFunc(w.values, func(v operand) bool {
		return v.kind == aNumber && ordered(w.op, cmp.Compare(d.float, v.number.float))
	})
	return answer{asks: rounded || holds(w.op)}
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

// maxCompared bounds a text that is looked at in all its forms.
const maxCompared = 64 << 10

func (w condition) checkText(raw []byte) answer {
	s, ok := textOf(raw)
	if !ok {
		return because("it cannot be read")
	}
	some := func(holds func(v operand) bool) bool {
		return slices.ContainsFunc(w.values, func(v operand) bool { return v.kind == aString && holds(v) })
	}
	switch {
	case w.op == "!=":
		return answer{asks: !some(func(v operand) bool { return v.text == s })}
	case len(s) > maxCompared:
		return because("it has more than %d bytes", maxCompared)
	case w.op == "==":
		return answer{asks: some(func(v operand) bool { return alike(v.text, s) })}
	case w.op == "glob":
		return answer{asks: some(func(v operand) bool { return globMatches(v.text, s) })}
	}
	return answer{asks: !some(func(v operand) bool { return within(v.text, s) })} // outside
}
