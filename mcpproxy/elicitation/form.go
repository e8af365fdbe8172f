package elicitation

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"unicode/utf8"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
)

// A form is a flat object of primitive fields, which is all that the specification
// allows.
type form struct {
	fields   map[string]field
	required []string
}

// A field is one of them: text, a number, a boolean, or a choice of some texts.
type field struct {
	kind             string   // string, number, integer, boolean or array; null as one of the options
	options          []field  // in place of a kind: some libraries write so that a field may be null
	choices          []string // of a string, or of the items of an array; nil if any will do
	least, most      *big.Rat // number
	minSize, maxSize *int     // characters of a string, or items of an array
}

// object is a JSON object by the exact names of its members: encoding/json also takes
// "Type" for "type", which clients do not.
type object map[string]json.RawMessage

func (o object) read(name string, into any) error {
	raw, given := o[name]
	if !given || rawjson.IsNull(raw) {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("its %q cannot be read", name)
	}
	return nil
}

func (o object) text(name string) (s string, err error) {
	err = o.read(name, &s)
	return s, err
}

func readForm(schema json.RawMessage) (form, error) {
	var o, properties object
	if err := json.Unmarshal(schema, &o); err != nil || o == nil {
		return form{}, errors.New("it is not a JSON object")
	}
	if kind, err := o.text("type"); err != nil || kind != "object" {
		return form{}, errors.New(`its type is not "object"`)
	}
	if err := o.read("properties", &properties); err != nil {
		return form{}, err
	}
	if len(properties) > maxFields {
		return form{}, fmt.Errorf("it has more than %d fields", maxFields)
	}
	f := form{fields: map[string]field{}}
	if err := o.read("required", &f.required); err != nil {
		return form{}, err
	}
	for name, raw := range properties {
		one, err := readField(raw, true)
		if err != nil {
			return form{}, fmt.Errorf("field %q: %w", text.Printable(name, 100), err)
		}
		f.fields[name] = one
	}
	return f, nil
}

// readField reads a field, which may have options unless it is one itself.
func readField(raw json.RawMessage, top bool) (f field, err error) {
	var o object
	if err := json.Unmarshal(raw, &o); err != nil || o == nil {
		return f, errors.New("it is not a JSON object")
	}
	for _, name := range []string{"properties", "$ref", "allOf", "not", "if", "prefixItems", "patternProperties"} {
		if _, given := o[name]; given {
			return f, fmt.Errorf("it has %q, and only plain fields are allowed", name)
		}
	}
	if f.kind, err = o.text("type"); err != nil {
		return f, err
	}
	if f.kind == "" && top {
		return readOptions(o)
	}
	low, high := "minLength", "maxLength"
	switch f.kind {
	case "string":
		f.choices, err = choices(o, "oneOf")
	case "number", "integer":
		err = errors.Join(o.readNumber("minimum", &f.least), o.readNumber("maximum", &f.most))
	case "boolean":
	case "null":
		if top {
			return f, errors.New("it can only be null")
		}
	case "array":
		low, high = "minItems", "maxItems"
		f.choices, err = readItems(o)
	default:
		return f, fmt.Errorf("its type %q is not string, number, integer, boolean or array", text.Printable(f.kind, 40))
	}
	return f, errors.Join(err, o.read(low, &f.minSize), o.read(high, &f.maxSize))
}

// readOptions reads a field that is one of several kinds.
func readOptions(o object) (f field, err error) {
	var all []json.RawMessage
	if err := o.read("anyOf", &all); err != nil {
		return f, err
	}
	if len(all) == 0 {
		return f, errors.New("it has no type")
	}
	for _, raw := range all {
		one, err := readField(raw, false)
		if err != nil {
			return f, err
		}
		f.options = append(f.options, one)
	}
	return f, nil
}

// readItems reads what the items of an array may be, which has to be a choice of texts.
func readItems(o object) ([]string, error) {
	var items object
	if err := o.read("items", &items); err != nil {
		return nil, err
	}
	all, err := choices(items, "anyOf")
	if err == nil && all == nil {
		err = errors.New("its items have neither enum nor anyOf")
	}
	return all, err
}

// choices reads the values of an enum, or those that have titles.
func choices(o object, titled string) (all []string, err error) {
	if err := o.read("enum", &all); err != nil || all != nil {
		return all, err
	}
	var options []object
	if err := o.read(titled, &options); err != nil {
		return nil, err
	}
	for _, one := range options {
		var value *string
		if err := one.read("const", &value); err != nil || value == nil {
			return nil, fmt.Errorf("its %q has an option without a text as const", titled)
		}
		all = append(all, *value)
	}
	return all, nil
}

func (o object) readNumber(name string, into **big.Rat) error {
	var n json.Number
	if err := o.read(name, &n); err != nil || n == "" {
		return err
	}
	r, ok := number(n)
	if !ok {
		return fmt.Errorf("its %q cannot be read", name)
	}
	*into = r
	return nil
}

// number reads a number exactly. One like 1e999999999 would fill the memory.
func number(n json.Number) (*big.Rat, bool) {
	if f, err := n.Float64(); err != nil || len(n) > 400 || f == 0 && len(n) > 40 {
		return nil, false
	}
	return new(big.Rat).SetString(n.String())
}

// check returns what was entered, by field.
func (f form) check(content json.RawMessage) (map[string]any, error) {
	if len(content) == 0 || rawjson.IsNull(content) {
		content = json.RawMessage("{}")
	}
	if !json.Valid(content) {
		return nil, errors.New("it is not JSON")
	}
	if len(content) > maxSchema {
		return nil, fmt.Errorf("it is longer than %d KiB", maxSchema>>10)
	}
	members, err := rawjson.Members(content)
	if err != nil {
		return nil, fmt.Errorf("it %w", err)
	}
	entered := map[string]any{}
	for _, m := range members {
		shown := text.Printable(m.Name, 100)
		one, known := f.fields[m.Name]
		if _, again := entered[m.Name]; again {
			return nil, fmt.Errorf("%q is in it twice", shown)
		}
		if !known {
			continue // JSON Schema allows more than it names, and the server did not ask for it
		}
		if err := one.check(m.Value); err != nil {
			return nil, fmt.Errorf("%q %w", shown, err)
		}
		entered[m.Name] = m.Value
	}
	for _, name := range f.required {
		if _, given := entered[name]; !given {
			return nil, fmt.Errorf("%q is missing", text.Printable(name, 100))
		}
	}
	return entered, nil
}

// check does not quote the value, which the server must not see.
func (f field) check(raw json.RawMessage) error {
	var s string
	var n json.Number
	switch f.kind {
	case "":
		if !slices.ContainsFunc(f.options, func(one field) bool { return one.check(raw) == nil }) {
			return errors.New("is none of the kinds that it may be")
		}
	case "null":
		if !rawjson.IsNull(raw) {
			return errors.New("is not null")
		}
	case "string":
		if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
			return errors.New("is not text")
		}
		return errors.Join(f.checkChoice(s), f.checkSize(utf8.RuneCountInString(s), "character"))
	case "boolean":
		if s := string(raw); s != "true" && s != "false" {
			return errors.New("is neither true nor false")
		}
	case "array":
		return f.checkList(raw)
	default:
		if raw[0] == '"' || json.Unmarshal(raw, &n) != nil || n == "" {
			return errors.New("is not a number")
		}
		return f.checkNumber(n)
	}
	return nil
}

func (f field) checkNumber(n json.Number) error {
	value, ok := number(n)
	switch {
	case !ok:
		return errors.New("is a number that is too large or too long")
	case f.kind == "integer" && !value.IsInt():
		return errors.New("is not an integer")
	case f.least != nil && value.Cmp(f.least) < 0, f.most != nil && value.Cmp(f.most) > 0:
		return errors.New("is out of range")
	}
	return nil
}

func (f field) checkList(raw json.RawMessage) error {
	var items []*string
	if raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
		return errors.New("is not a list of texts")
	}
	for _, item := range items {
		if item == nil {
			return errors.New("is not a list of texts")
		}
		if err := f.checkChoice(*item); err != nil {
			return err
		}
	}
	return f.checkSize(len(items), "item")
}

func (f field) checkChoice(s string) error {
	if f.choices != nil && !slices.Contains(f.choices, s) {
		return errors.New("is not one of the choices")
	}
	return nil
}

func (f field) checkSize(n int, what string) error {
	if f.minSize != nil && n < *f.minSize {
		return fmt.Errorf("has fewer than %s", text.Plural(*f.minSize, what))
	}
	if f.maxSize != nil && n > *f.maxSize {
		return fmt.Errorf("has more than %s", text.Plural(*f.maxSize, what))
	}
	return nil
}
