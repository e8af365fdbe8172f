package runner

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/internal/rawjson"
)

// maxParam bounds the text of a parameter that is decoded, in bytes. The longest
// is a URI, every byte of it escaped.
const maxParam = 6*maxURI + 2

// maxURI bounds the URI of a resource, in bytes.
const maxURI = 64 << 10

// Params are the parameters of all methods; each takes what it needs. Raw ones are
// parts of their frame, not copies. Args and Named are split within bounds: a frame has
// room for millions of empty ones.
type Params struct {
	gate.Request // as far as the code says it
	Tool         string
	Tools        json.RawMessage
	URI          string
	Query        string
	Limit        int
	Offset       int64
	Detail       string
	Source       string
	Data         []byte // a picture
	Drawn        bool   // its raster form is displayed too, or the code was told why not
}

// members are where the parameters go, by their names in quotes.
func (p *Params) members() map[string]any {
	return map[string]any{
		`"server"`: &p.Server, `"tool"`: &p.Tool, `"arguments"`: &p.Arguments, `"args"`: &p.Args, `"named"`: &p.Named,
		`"more"`: &p.More, `"line"`: &p.Line, `"derived"`: &p.Derived, `"unchecked"`: &p.Unchecked, `"uri"`: &p.URI, `"name"`: &p.Name,
		`"query"`: &p.Query, `"limit"`: &p.Limit, `"detail"`: &p.Detail, `"tools"`: &p.Tools, `"source"`: &p.Source,
		`"offset"`: &p.Offset, `"data"`: &p.Data, `"drawn"`: &p.Drawn,
	}
}

// Full reports whether the documentation should be more than a summary.
func (p Params) Full() bool { return p.Detail == "full" || p.Detail == "schema" }

// readParams finds the parameters in the JSON of a call. null stands for none. It ends
// with ctx.
func readParams(ctx context.Context, raw json.RawMessage) (p Params, err error) {
	if len(raw) == 0 || rawjson.IsNull(raw) {
		return p, nil
	}
	s, to := rawjson.Scanner{Text: raw, Context: ctx}, p.members()
	for name, value := range s.Members {
		if err = p.set(ctx, to[string(name)], name, value); err != nil {
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
func (p *Params) set(ctx context.Context, to any, name []byte, value json.RawMessage) error {
	switch {
	case to == &p.Data:
		return p.setData(ctx, value)
	case to == &p.Source && len(value) > maxParam:
		return nil // save_tool reads the source itself, and its error says how long it may be
	}
	err := setMember(to, name, value, maxParam)
	if _, wrong := errors.AsType[*json.UnmarshalTypeError](err); wrong {
		return wrongType(string(name), to, value)
	}
	return err
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
