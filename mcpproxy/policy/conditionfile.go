package policy

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

const (
	maxConditions = 100 // of one tool section
	maxPath       = 32  // steps
)

func parseConditions(path toml.Key, v any) ([]condition, error) {
	list, ok := tables(v)
	if !ok {
		return nil, &fault{path, "write it as [[" + path.String() + "]], once for each condition"}
	}
	if len(list) > maxConditions {
		return nil, &fault{path, fmt.Sprintf("it is there %d times; the most is %d", len(list), maxConditions)}
	}
	all := make([]condition, 0, len(list))
	for _, keys := range list {
		w, err := parseCondition(path, keys)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

// tables takes a list of tables, with headers or inline.
func tables(v any) (all []map[string]any, ok bool) {
	if all, ok = v.([]map[string]any); ok {
		return all, true
	}
	list, ok := v.([]any)
	for _, v := range list {
		t, isTable := v.(map[string]any)
		all, ok = append(all, t), ok && isTable
	}
	return all, ok
}

func parseCondition(path toml.Key, keys map[string]any) (w condition, err error) {
	for _, key := range sorted(keys) {
		at, v := under(path, key), keys[key]
		switch key {
		case "path":
			w.path, err = parsePath(at, v)
		case "op":
			w.op, err = parseChoice(at, v, "==", "!=", "<", "<=", ">", ">=", "glob", "outside")
		case "value":
		default:
			err = unknownKey(at, "path", "op", "value")
		}
		if err != nil {
			return w, err
		}
	}
	value, ok := keys["value"]
	if w.path == nil || w.op == "" || !ok {
		return w, &fault{path, "a condition needs path, op and value"}
	}
	return w, w.parseValues(under(path, "value"), value)
}

// parsePath takes the steps to an argument, with dots between them, or as a list of
// names that have dots.
func parsePath(path toml.Key, v any) ([]string, error) {
	steps, err := parseTexts(path, v)
	if err != nil {
		return nil, err
	}
	if _, dotted := v.(string); dotted {
		steps = strings.Split(steps[0], ".")
	}
	if len(steps) == 0 || len(steps) > maxPath || slices.Contains(steps, "") {
		return nil, &fault{path, fmt.Sprintf(`%q does not lead to an argument; write it as "amount", "items.0.price", or "items.*.price" for every item`, text.Bound(strings.Join(steps, "."), 80))}
	}
	return steps, nil
}

func (w *condition) parseValues(path toml.Key, v any) error {
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	} else if strings.ContainsAny(w.op, "<>") {
		return &fault{path, fmt.Sprintf("it is a list and must be one value for the op %q", w.op)}
	}
	if len(list) == 0 {
		return &fault{path, "it is an empty list"}
	}
	texts := make([]string, len(list))
	for i, v := range list {
		o, err := w.parseOperand(path, v)
		if err != nil {
			return err
		}
		w.values = append(w.values, o)
		if texts[i] = fmt.Sprint(v); o.kind == aString {
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
func (w *condition) parseOperand(at toml.Key, v any) (o operand, err error) {
	switch v := v.(type) {
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
			return o, &fault{at, fmt.Sprintf("%v cannot be compared", v)}
		}
	default:
		return o, wrongType(at, "a string, a number, true or false", v)
	}
	switch {
	case strings.ContainsAny(w.op, "<>") && o.kind != aNumber:
		return o, wrongType(at, fmt.Sprintf("a number for the op %q", w.op), v)
	case w.op == "glob" && o.kind != aString, w.op == "outside" && o.kind != aString:
		return o, wrongType(at, fmt.Sprintf("a string for the op %q", w.op), v)
	case w.op == "glob":
		_, err = parseGlob(at, o.text)
	case w.op == "outside":
		if !strings.HasPrefix(o.text, "/") || slices.Contains(strings.Split(o.text, "/"), "..") {
			return o, &fault{at, fmt.Sprintf("%q is not the full path of a folder, such as /home/me/project", text.Bound(o.text, 120))}
		}
		o.text = path.Clean(o.text)
	}
	return o, err
}
