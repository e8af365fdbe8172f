package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
)

const (
	maxSchema      = 256 << 10 // bytes; a model cannot read more anyway
	longSchema     = 32 << 10  // above it, long texts in a schema are cut
	maxScannedJSON = 8 << 20

	// maxNesting is how deep a schema may nest. Python's reader of JSON stops below
	// 1,000, and one schema must not spoil the list that it is in.
	maxNesting = 200
)

// sanitize makes a schema fit to be shown. Nearly all come out as the server wrote
// them. Texts in it lose invisible characters, and are cut in a long schema. A
// schema that is still too large, or nests too deep, is replaced by a note.
func sanitize(schema json.RawMessage) json.RawMessage {
	if schema != nil && !rawjson.NestsAtMost(schema, maxNesting) {
		return note(fmt.Sprintf("it nests more than %d deep", maxNesting))
	}
	long := len(schema) > longSchema
	if len(schema) <= maxScannedJSON && (long || !harmless(schema)) {
		clean := func(txt string) string {
			if txt = text.Clean(txt); long {
				txt = text.CutAfter(txt, maxDescription)
			}
			return txt
		}
		schema = rawjson.Edit(schema, func(name, token []byte) []byte {
			if !texts[string(name)] {
				return token
			}
			return editString(token, clean)
		})
	}
	if len(schema) > maxSchema {
		return note(fmt.Sprintf("it has %d bytes", len(schema)))
	}
	return schema
}

// note is a schema that says why the server's is not here.
func note(reason string) json.RawMessage {
	said, _ := json.Marshal("the server's schema is left out: " + reason)
	return json.RawMessage(`{"type":"object","description":` + string(said) + `}`)
}

// harmless reports whether no text in the JSON can need cleaning: it is ASCII
// and escapes no characters.
func harmless(raw []byte) bool {
	for _, c := range raw {
		if c >= 0x7f || c == '\\' {
			return false
		}
	}
	return true
}

// visible writes the hidden characters in all strings of JSON as escapes, names of
// members among them, and touches no other byte.
func visible(raw json.RawMessage) json.RawMessage {
	if harmless(raw) {
		return raw
	}
	return rawjson.Edit(raw, func(_, token []byte) []byte { return editString(token, text.VisibleInJSON) })
}

// texts are the keys of a schema whose values are for people. All others, such
// as enum, are part of what a call must look like.
var texts = map[string]bool{`"description"`: true, `"title"`: true, `"$comment"`: true}

// editString passes a string of JSON through edit, and returns anything else as it is.
func editString(token []byte, edit func(string) string) []byte {
	var txt string
	if token[0] != '"' || json.Unmarshal(token, &txt) != nil {
		return token
	}
	edited := edit(txt)
	if edited == txt {
		return token
	}
	quoted, _ := json.Marshal(edited) // strings always encode
	return quoted
}

// An outline is what of a schema can say something to a search: the names of
// parameters, what they are for, and the values they take, two levels deep.
type outline struct {
	Title       string              `json:"title,omitempty"`
	Description string              `json:"description,omitempty"`
	Enum        []json.RawMessage   `json:"enum,omitempty"`
	Properties  map[string]*outline `json:"properties,omitempty"`
	Items       *outline            `json:"items,omitempty"`
}

const (
	outlineDepth      = 2
	outlineParameters = 100
	outlineText       = 200 // characters
	outlineValues     = 20
)

// Outline returns the outline of a schema, so that an index over many tools
// need not hold all their schemas. Of one that makes no sense it has what does.
func Outline(schema json.RawMessage) json.RawMessage {
	var o outline
	var odd *json.UnmarshalTypeError // a description that is a number spoils no other field
	if err := json.Unmarshal(schema, &o); err != nil && !errors.As(err, &odd) {
		return nil
	}
	o.cut(outlineDepth)
	out, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	return out
}

// cut bounds an outline, so that one tool cannot fill the index.
func (o *outline) cut(depth int) {
	o.Title, _ = text.SplitAt(o.Title, outlineText)
	o.Description, _ = text.SplitAt(o.Description, outlineText)
	o.Enum = slices.DeleteFunc(o.Enum, func(v json.RawMessage) bool { return len(v) > outlineText })
	o.Enum = o.Enum[:min(len(o.Enum), outlineValues)]
	if depth == 0 {
		o.Properties, o.Items = nil, nil
		return
	}
	if len(o.Properties) > outlineParameters {
		for _, name := range slices.Sorted(maps.Keys(o.Properties))[outlineParameters:] {
			delete(o.Properties, name)
		}
	}
	for name, inner := range o.Properties {
		if len(name) > outlineText {
			delete(o.Properties, name)
		} else if inner != nil {
			inner.cut(depth - 1)
		}
	}
	if o.Items != nil {
		o.Items.cut(depth - 1)
	}
}
