package condition

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

const (
	maxConditions = 100 // of one tool section
	maxPath       = 32  // steps
)

// Parse takes the conditions of one tool.
func Parse(v rule.Value) ([]Condition, error) {
	list, ok := v.Tables()
	if !ok {
		return nil, v.Errorf("write it as [[%s]], once for each condition", v.Key())
	}
	if len(list) > maxConditions {
		return nil, v.Errorf("it is there %d times; the most is %d", len(list), maxConditions)
	}
	all := make([]Condition, 0, len(list))
	for _, each := range list {
		w, err := parseCondition(each)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

func parseCondition(v rule.Value) (w Condition, err error) {
	fields, err := v.Fields()
	if err != nil {
		return w, err
	}
	var value *rule.Value
	for _, f := range fields {
		switch f.Name() {
		case "path":
			w.path, err = parsePath(f)
		case "op":
			w.op, err = rule.Choice(f, "==", "!=", "<", "<=", ">", ">=", "glob", "outside")
		case "value":
			value = &f
		default:
			err = f.UnknownKey("path", "op", "value")
		}
		if err != nil {
			return w, err
		}
	}
	if w.path == nil || w.op == "" || value == nil {
		return w, v.Errorf("a condition needs path, op and value")
	}
	return w, w.parseValues(*value)
}

// parsePath takes the steps to an argument, with dots between them, or as a list of
// names that have dots.
func parsePath(v rule.Value) ([]string, error) {
	steps, err := v.Texts()
	if err != nil {
		return nil, err
	}
	if _, isList := v.List(); !isList {
		steps = strings.Split(steps[0], ".")
	}
	if len(steps) == 0 || len(steps) > maxPath || slices.Contains(steps, "") {
		return nil, v.Errorf(`%q does not lead to an argument; write it as "amount", "items.0.price", or "items.*.price" for every item`, text.Bound(strings.Join(steps, "."), 80))
	}
	return steps, nil
}

func (w *Condition) parseValues(v rule.Value) error {
	list, isList := v.List()
	if isList && strings.ContainsAny(w.op, "<>") {
		return v.Errorf("it must be one value for the op %q, not a list", w.op)
	}
	if len(list) == 0 {
		return v.Errorf("it is an empty list")
	}
	texts := make([]string, len(list))
	for i, each := range list {
		o, err := w.parseOperand(each)
		if err != nil {
			return err
		}
		w.values = append(w.values, o)
		if texts[i] = fmt.Sprint(each.Any()); o.kind == aString {
			texts[i] = strconv.Quote(o.text)
		}
	}
	said := strings.Join(texts, ", ")
	if isList {
		said = "[" + said + "]"
	}
	w.text = text.Printable(fmt.Sprintf("%s %s %s", strings.Join(w.path, "."), w.op, said), 300)
	return nil
}

// parseOperand takes one value, which the op must be able to compare.
func (w *Condition) parseOperand(value rule.Value) (o operand, err error) {
	switch v := value.Any().(type) {
	case string:
		o = operand{kind: aString, text: v}
	case bool:
		o = operand{kind: aBoolean, truth: v}
	case int64:
		o.kind = aNumber
		o.number, _ = parseDecimal(strconv.FormatInt(v, 10))
	case float64:
		o.kind = aNumber
		var ok bool
		if o.number, ok = parseDecimal(strconv.FormatFloat(v, 'g', -1, 64)); !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			return o, value.Errorf("%v cannot be compared", v)
		}
	default:
		return o, value.WrongType("a string, a number, true or false")
	}
	switch {
	case strings.ContainsAny(w.op, "<>") && o.kind != aNumber:
		return o, value.WrongType(fmt.Sprintf("a number for the op %q", w.op))
	case w.op == "glob" && o.kind != aString, w.op == "outside" && o.kind != aString:
		return o, value.WrongType(fmt.Sprintf("a string for the op %q", w.op))
	case w.op == "glob":
		_, err = value.Glob()
	case w.op == "outside":
		if !strings.HasPrefix(o.text, "/") || slices.Contains(strings.Split(o.text, "/"), "..") {
			return o, value.Errorf("%q is not the full path of a folder, such as /home/me/project", text.Bound(o.text, 120))
		}
		o.text = path.Clean(o.text)
	}
	return o, err
}
