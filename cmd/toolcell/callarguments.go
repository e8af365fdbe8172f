package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
)

// maxArguments bounds the arguments of a call that are read from a file.
const maxArguments = 16 << 20

// callArguments are the arguments of a call as they were typed: a JSON object, or names
// with values, whose types the tool's schema tells.
type callArguments struct {
	object json.RawMessage
	named  [][2]string
}

// howToGive says which forms there are.
const howToGive = `give a JSON object, such as '{"path": "/tmp"}', or path=/tmp, - for standard input, or @FILE`

// readCallArguments reads what follows the server and the tool.
func readCallArguments(given []string, stdin io.Reader) (a callArguments, err error) {
	if len(given) == 0 {
		return callArguments{object: json.RawMessage("{}")}, nil
	}
	if first := given[0]; len(given) == 1 && !isNamed(first) {
		what, data := text.Printable(first, 200), []byte(first)
		file, isFile := strings.CutPrefix(first, "@")
		switch {
		case first == "-":
			what = "standard input"
			data, err = readAllOf(stdin)
		case isFile:
			what = file
			data, err = readArgumentsFile(file)
		}
		if err != nil {
			return a, console.Invalidf("reading the arguments: %w", err)
		}
		a.object, err = objectOf(what, data)
		return a, err
	}
	for _, one := range given {
		if !isNamed(one) {
			return a, console.Usagef("%q is no argument: %s", text.Printable(one, 200), howToGive)
		}
		name, value, _ := strings.Cut(one, "=")
		if slices.ContainsFunc(a.named, func(other [2]string) bool { return other[0] == name }) {
			return a, console.Usagef("%q is given twice; a list is written as %[1]s='[1, 2]'", name)
		}
		a.named = append(a.named, [2]string{name, value})
	}
	return a, nil
}

// isNamed reports whether an argument is NAME=VALUE.
func isNamed(given string) bool {
	name, _, found := strings.Cut(given, "=")
	return found && name != "" && !strings.ContainsAny(name, "{}[]\"' \t\n") && name[0] != '@'
}

func readArgumentsFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAllOf(f)
}

func readAllOf(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxArguments+1))
	if len(data) > maxArguments {
		err = fmt.Errorf("there are more than %s", text.Size(maxArguments))
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), err
}

// objectOf returns text as the JSON object that it is.
func objectOf(what string, data []byte) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	var syntax *json.SyntaxError
	switch err := json.Unmarshal(data, &object); {
	case errors.As(err, &syntax) && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")): // else it is meant as something else
		return nil, console.Invalidf("%s is not a JSON object: %w; %s", what, err, howToGive)
	case err != nil || object == nil:
		return nil, console.Invalidf("%s is not a JSON object; %s", what, howToGive)
	}
	return data, nil
}

// asObject returns the arguments as a JSON object for a tool with this schema.
func (a callArguments) asObject(schema json.RawMessage) json.RawMessage {
	if a.object != nil {
		return a.object
	}
	var shape struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(schema, &shape) // what a schema does not say is guessed
	var out bytes.Buffer
	for i, arg := range a.named {
		name, _ := json.Marshal(arg[0]) // a string can be encoded
		fmt.Fprintf(&out, "%c%s:%s", "{,"[min(i, 1)], name, typedValue(arg[1], typesOf(shape.Properties[arg[0]], 0)))
	}
	return append(out.Bytes(), '}')
}

// typedValue writes a typed value as JSON: as one of the types, if it reads as one, else as
// a text if it may be one. No types are all of them.
func typedValue(value string, types []string) json.RawMessage {
	asText, _ := json.Marshal(value)
	raw := json.RawMessage(value)
	onlyText := len(types) == 1 && types[0] == "string"
	switch kind := kindOf(raw); {
	case kind == "" || onlyText || kind == "string" && len(types) > 0 && slices.Contains(types, "string"):
		return asText
	case len(types) == 0, slices.Contains(types, kind), kind == "integer" && slices.Contains(types, "number"), !slices.Contains(types, "string"):
		return raw
	}
	return asText
}

// kindOf returns the type of a JSON value as schemas call it; it is empty for other text.
func kindOf(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if !json.Valid(raw) {
		return ""
	}
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "number"
	}
	return "integer"
}

// maxAlternatives is how deep alternatives of a schema are looked at.
const maxAlternatives = 3

// typesOf returns the types that a schema names, its alternatives included.
func typesOf(schema json.RawMessage, depth int) (types []string) {
	members, err := rawjson.Members(schema)
	if err != nil || depth > maxAlternatives {
		return nil
	}
	for _, m := range members {
		var one string
		var several []string
		list, _ := rawjson.Items(m.Value)
		switch {
		case m.Name == "type" && json.Unmarshal(m.Value, &one) == nil:
			types = append(types, one)
		case m.Name == "type" && json.Unmarshal(m.Value, &several) == nil:
			types = append(types, several...)
		case m.Name == "anyOf" || m.Name == "oneOf":
			for _, alternative := range list {
				types = append(types, typesOf(alternative, depth+1)...)
			}
		case m.Name == "enum":
			for _, value := range list {
				types = append(types, kindOf(value))
			}
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}
