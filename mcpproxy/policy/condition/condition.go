// Package condition decides by the arguments of one call whether the user is asked about it,
// as a [[when]] of a policy says: at an amount above a limit, outside a folder, and so on.
//
// It fails toward asking. Where an argument is missing or of another kind, or programs differ
// in what they make of it (case, forms of Unicode, rounded numbers, escapes in paths), the
// user is asked. What it says about a call has nothing of the arguments in it.
package condition

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"strconv"

	"github.com/toolcell/toolcell/internal/rawjson"
)

// A Condition is one [[when]] of a tool: at which of its arguments the user is asked.
// Where it cannot be sure what the server will make of them, the user is asked too.
type Condition struct {
	text   string   // as a rule, such as amount > 100
	path   []string // names, and indexes of lists; * is all of them
	op     string
	values []operand // any of which counts
}

// String is the condition as a rule, such as amount > 100.
func (w Condition) String() string { return w.text }

// An answer says whether a call may go out unasked. The zero value has the user asked; why is
// empty where the rule itself says it.
type answer struct {
	passes bool
	why    string
}

// unreadable is the answer where it cannot be known what the arguments are.
var unreadable = because("the arguments cannot be read")

func because(format string, args ...any) answer { return answer{why: fmt.Sprintf(format, args...)} }

// Check reports whether the user is asked about a call with these arguments, which are in
// canonical form, and the reason: the condition, and why it asks where that does not say it.
// If ctx ends first, the user is asked.
func (w Condition) Check(ctx context.Context, arguments json.RawMessage) (reason string, asks bool) {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	a := w.find(ctx, arguments, w.path)
	if ctx.Err() != nil {
		a = unreadable
	}
	switch {
	case a.passes:
		return "", false
	case a.why != "":
		return w.text + ", but " + a.why, true
	}
	return w.text, true
}

// find checks the values at a path.
func (w Condition) find(ctx context.Context, raw []byte, path []string) answer {
	if len(path) == 0 {
		return w.checkValue(ctx, raw)
	}
	if len(raw) > MaxWritten && ctx.Err() != nil {
		return unreadable
	}
	a := answer{passes: true}
	s := rawjson.Scanner{Text: raw, Context: ctx}
	step, found := path[0], path[0] == "*"
	switch k := kindOf(raw); k {
	case jsontext.KindBeginObject:
		for quoted, value := range s.Members {
			same, similar := compareName(quoted, step)
			switch {
			case step == "*" || same:
				found = true
				a = w.find(ctx, value, path[1:])
			case similar: // encoding/json, for one, takes it for the same
				a = because("another name may be read as %q", step)
			}
			if !a.passes {
				return a
			}
		}
	case jsontext.KindBeginArray:
		for n, value := range s.Items {
			if step != "*" && step != strconv.Itoa(n) {
				continue
			}
			found = true
			if a = w.find(ctx, value, path[1:]); !a.passes {
				return a
			}
		}
	default:
		return because("%s has no %q", kindWords[k], step)
	}
	switch {
	case !s.OK():
		return unreadable
	case !found:
		return because("there is no %q", step)
	}
	return answer{passes: true}
}

// checkValue looks at one value.
func (w Condition) checkValue(ctx context.Context, raw []byte) answer {
	k := kindOf(raw)
	if !slices.ContainsFunc(w.values, func(v operand) bool { return v.kind == k }) {
		return because("it is %s", kindWords[k])
	}
	switch k {
	case aBoolean:
		is := string(raw) == "true"
		equal := slices.ContainsFunc(w.values, func(v operand) bool { return v.kind == k && v.truth == is })
		return answer{passes: equal != (w.op == "==")}
	case aNumber:
		return w.checkNumber(raw)
	}
	return w.checkText(ctx, raw)
}

// maxNumber bounds a number that is compared, in bytes.
const maxNumber = 1 << 20

func (w Condition) checkNumber(raw []byte) answer {
	if len(raw) > maxNumber {
		return because("it has more than %d bytes", maxNumber)
	}
	d, ok := parseDecimal(string(raw))
	if !ok {
		return because("it is too large or too small to be compared")
	}
	op := w.op
	if op == "!=" {
		op = "=="
	}
	// Many servers read a number as a float64, which may be on the other side.
	exact, rounded := false, false
	for _, v := range w.values {
		if v.kind == aNumber {
			exact = exact || ordered(op, d.compare(v.number))
			rounded = rounded || ordered(op, cmp.Compare(d.float, v.number.float))
		}
	}
	if w.op == "!=" {
		return answer{passes: exact && rounded}
	}
	return answer{passes: !exact && !rounded}
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

// maxCompared bounds a text that is looked at in all its forms, and MaxWritten the same as
// JSON has it: every byte may be an escape of six.
const (
	maxCompared = 64 << 10
	MaxWritten  = 6*maxCompared + len(`""`)
)

func (w Condition) checkText(ctx context.Context, raw []byte) answer {
	tooLong := because("it has more than %d bytes", maxCompared)
	if len(raw) > MaxWritten {
		if w.op == "!=" { // also if a value is as long
			return answer{}
		}
		return tooLong
	}
	s, ok := textOf(raw)
	if !ok {
		return because("it cannot be read")
	}
	some := func(holds func(v operand) bool) bool {
		return slices.ContainsFunc(w.values, func(v operand) bool { return v.kind == aString && ctx.Err() == nil && holds(v) })
	}
	switch {
	case w.op == "!=":
		return answer{passes: some(func(v operand) bool { return v.text == s })}
	case len(s) > maxCompared:
		return tooLong
	case w.op == "==":
		return answer{passes: !some(func(v operand) bool { return alike(v.text, s) })}
	case w.op == "glob":
		return answer{passes: !some(func(v operand) bool { return globMatches(v.text, s) })}
	}
	return answer{passes: some(func(v operand) bool { return within(v.text, s) })} // else it is outside
}
