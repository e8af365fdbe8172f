package condition

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/internal/toml"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

const (
	maxConditions = 100 // of one tool section
	maxPath       = 32  // steps
)

// Conditions are those of one tool, any of which asks.
type Conditions []Condition

// UnmarshalJSONFrom reads all [[when]] of a tool.
func (all *Conditions) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if err := json.UnmarshalDecode(d, (*[]Condition)(all)); err != nil {
		return err
	}
	if len(*all) > maxConditions {
		return fmt.Errorf("it is there %d times; the most is %d", len(*all), maxConditions)
	}
	return nil
}

// UnmarshalJSONFrom reads one [[when]].
func (w *Condition) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var s struct {
		Path  argumentPath   `json:"path"`
		Op    operator       `json:"op"`
		Value jsontext.Value `json:"value"`
	}
	if err := json.UnmarshalDecode(d, &s); err != nil {
		return err
	}
	if s.Path == nil || s.Op == "" || s.Value == nil {
		return errors.New("a condition needs path, op and value")
	}
	w.path, w.op = s.Path, string(s.Op)
	if err := w.readValues(s.Value); err != nil {
		return toml.KeyError(d, "value", err)
	}
	return nil
}

// An argumentPath has the steps to an argument.
type argumentPath []string

// UnmarshalJSONFrom takes the steps with dots between them, or as a list of names that have dots.
func (p *argumentPath) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	isList := d.PeekKind() == jsontext.KindBeginArray
	var steps toml.Strings[string]
	if err := json.UnmarshalDecode(d, &steps); err != nil {
		return err
	}
	if !isList {
		steps = strings.Split(steps[0], ".")
	}
	if len(steps) == 0 || len(steps) > maxPath || slices.Contains(steps, "") {
		return fmt.Errorf(`%q does not lead to an argument; write it as "amount", "items.0.price", or "items.*.price" for every item`,
			text.Bound(strings.Join(steps, "."), 80))
	}
	*p = argumentPath(steps)
	return nil
}

type operator string

// UnmarshalText takes an op.
func (op *operator) UnmarshalText(word []byte) (err error) {
	*op, err = rule.Choice[operator](word, "==", "!=", "<", "<=", ">", ">=", "glob", "outside")
	return err
}

// readValues reads one value or a list of them.
func (w *Condition) readValues(value jsontext.Value) error {
	list, isList := []jsontext.Value{value}, value.Kind() == jsontext.KindBeginArray
	if isList {
		if err := json.Unmarshal(value, &list); err != nil {
			return err
		}
	}
	switch {
	case isList && strings.ContainsAny(w.op, "<>"):
		return toml.KindError(fmt.Sprintf("one value for the op %q", w.op))
	case len(list) == 0:
		return errors.New("it is an empty list")
	}
	said := make([]string, len(list))
	for i, v := range list {
		o, err := w.readOperand(v)
		if err != nil {
			return err
		}
		w.values = append(w.values, o)
		if said[i] = string(v); o.kind == aString {
			said[i] = strconv.Quote(o.text)
		}
	}
	all := strings.Join(said, ", ")
	if isList {
		all = "[" + all + "]"
	}
	w.text = text.Printable(fmt.Sprintf("%s %s %s", strings.Join(w.path, "."), w.op, all), 300)
	return nil
}

// readOperand reads one value, which the op must be able to compare.
func (w *Condition) readOperand(v jsontext.Value) (o operand, err error) {
	switch o.kind = kindOf(v); o.kind {
	case aString:
		err = json.Unmarshal(v, &o.text)
	case aBoolean:
		o.truth = string(v) == "true"
	case aNumber:
		var ok bool
		if o.number, ok = parseDecimal(string(v)); !ok {
			return o, fmt.Errorf("%s cannot be compared", v)
		}
	default:
		return o, toml.KindError("a string, a number, true or false")
	}
	switch {
	case err != nil:
	case strings.ContainsAny(w.op, "<>") && o.kind != aNumber:
		return o, toml.KindError(fmt.Sprintf("a number for the op %q", w.op))
	case w.op == "glob" && o.kind != aString, w.op == "outside" && o.kind != aString:
		return o, toml.KindError(fmt.Sprintf("a string for the op %q", w.op))
	case w.op == "glob":
		_, err = rule.ParseGlob(o.text)
	case w.op == "outside":
		if !strings.HasPrefix(o.text, "/") || slices.Contains(strings.Split(o.text, "/"), "..") {
			return o, fmt.Errorf("%q is not the full path of a folder, such as /home/me/project", text.Bound(o.text, 120))
		}
		o.text = path.Clean(o.text)
	}
	return o, err
}
