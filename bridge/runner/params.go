package runner

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/internal/rawjson"
)

// maxParam bounds the text of a parameter that is decoded, in bytes. The longest
// is a URI, every byte of it escaped.
const maxParam = 6*maxURI + 2

// maxURI bounds the URI of a resource, in bytes.
const maxURI = 64 << 10

// maxParamName is as long as the longest name, in its quotes.
const maxParamName = len(`"arguments"`)

// Params are the parameters of all methods; each takes what it needs. Raw ones are
// parts of their frame, not copies.
type Params struct {
	Server    string
	Tool      string
	Arguments json.RawMessage
	More      bool // other calls may follow at once
	Derived   bool // the code has something of a planned result that does not show it
	Unchecked bool // Arguments go out whatever the tool's schema says
	// Args and Named are there instead of Arguments if they are to be bound to
	// the tool's parameters, as the arguments of a function. They are split
	// within bounds: a frame has room for millions of empty ones.
	Args   json.RawMessage
	Named  json.RawMessage
	Tools  json.RawMessage
	URI    string
	Query  string
	Limit  int
	Offset int64
	Detail string
	Name   string
	Source string
	Data   []byte // a picture
	Drawn  bool   // its raster form is displayed too, or the code was told why not
}

// Full reports whether the documentation should be more than a summary.
func (p Params) Full() bool { return p.Detail == "full" || p.Detail == "schema" }

// readParams finds the parameters in the JSON of a call. null stands for none. It ends
// with ctx.
func readParams(ctx context.Context, raw json.RawMessage) (p Params, err error) {
	if len(raw) == 0 || rawjson.IsNull(raw) {
		return p, nil
	}
	s := rawjson.Scanner{Text: raw, Context: ctx}
	for name, value := range s.Members {
		if err = p.set(ctx, name, value); err != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return p, context.Cause(ctx)
	}
	if !s.OK() {
		err = errors.New("they are not a JSON object")
	}
	return p, err
}

// set sets a parameter; its name includes the quotes.
func (p *Params) set(ctx context.Context, quoted []byte, value json.RawMessage) error {
	if len(quoted) > maxParamName {
		return nil // there is none that is as long
	}
	var to any
	name := string(quoted)
	switch name {
	case `"arguments"`:
		p.Arguments = value
	case `"args"`:
		p.Args = value
	case `"named"`:
		p.Named = value
	case `"tools"`:
		p.Tools = value
	case `"data"`:
		return p.setData(ctx, value)
	case `"server"`:
		to = &p.Server
	case `"tool"`:
		to = &p.Tool
	case `"more"`:
		to = &p.More
	case `"derived"`:
		to = &p.Derived
	case `"unchecked"`:
		to = &p.Unchecked
	case `"uri"`:
		to = &p.URI
	case `"query"`:
		to = &p.Query
	case `"limit"`:
		to = &p.Limit
	case `"offset"`:
		to = &p.Offset
	case `"detail"`:
		to = &p.Detail
	case `"name"`:
		to = &p.Name
	case `"source"`:
		if len(value) > maxParam {
			return nil // save_tool reads the source itself, and its error says how long it may be
		}
		to = &p.Source
	case `"drawn"`:
		to = &p.Drawn
	}
	switch {
	case to == nil:
		return nil
	case len(value) > maxParam:
		return fmt.Errorf("%s has %d bytes, the most is %d", name, len(value), maxParam)
	}
	if json.Unmarshal(value, to) != nil {
		return wrongType(name, to, value)
	}
	return nil
}

// setData sets a picture. The runner writes base64 without escapes.
func (p *Params) setData(ctx context.Context, value json.RawMessage) error {
	switch {
	case rawjson.IsNull(value):
		p.Data = nil
		return nil
	case value[0] != '"':
		return wrongType(`"data"`, new(string), value)
	}
	text := value[1 : len(value)-1]
	p.Data = make([]byte, 0, base64.StdEncoding.DecodedLen(len(text)))
	for len(text) > 0 && ctx.Err() == nil {
		part := text[:min(len(text), decodedAtOnce)]
		text = text[len(part):]
		before, err := len(p.Data), error(nil)
		p.Data, err = base64.StdEncoding.AppendDecode(p.Data, part)
		if err != nil || len(text) > 0 && len(p.Data)-before < base64.StdEncoding.DecodedLen(len(part)) { // padding is last
			return &CallError{Kind: "ValueError", Message: "data is not base64"}
		}
	}
	return nil
}

// decodedAtOnce is how much base64 is decoded before the context is looked at again.
const decodedAtOnce = 1 << 20

// wrongType says in words of Python what is wrong with a parameter: the code, and the
// model that wrote it, know no others.
func wrongType(name string, to any, value json.RawMessage) error {
	name = strings.Trim(name, `"`)
	given, wanted := pythonType(value), "a str"
	switch to.(type) {
	case *int, *int64:
		wanted = "an int"
		if given == "int" {
			return &CallError{Kind: "ValueError", Message: name + " is out of range"}
		}
	case *bool:
		wanted = "a bool"
	}
	return &CallError{Kind: "TypeError", Message: fmt.Sprintf("%s must be %s, not %s", name, wanted, given)}
}

// pythonType names the type that a JSON value has in Python.
func pythonType(value json.RawMessage) string {
	switch c := value[0]; {
	case c == '{':
		return "dict"
	case c == '[':
		return "list"
	case c == '"':
		return "str"
	case c == 't' || c == 'f':
		return "bool"
	case bytes.ContainsAny(value, ".eE"):
		return "float"
	}
	return "int"
}
