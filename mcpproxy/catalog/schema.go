package catalog

import (
	"bytes"
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
		schema = editTexts(schema, func(txt string) string {
			if txt = text.Clean(txt); long {
				txt = text.CutAfter(txt, maxDescription)
			}
			return txt
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
	return editStrings(raw, func([]byte) bool { return true }, text.VisibleInJSON)
}

// texts are the keys of a schema whose values are for people. All others, such
// as enum, are part of what a call must look like.
var texts = map[string]bool{`"description"`: true, `"title"`: true, `"$comment"`: true}

// editTexts passes the texts of a schema through edit. It touches no other byte:
// decoding and encoding would lose the order of the parameters. raw is valid JSON.
func editTexts(raw json.RawMessage, edit func(string) string) json.RawMessage {
	return editStrings(raw, func(key []byte) bool { return texts[string(key)] }, edit)
}

// editStrings passes strings of JSON through edit: values whose key is wanted, nil for
// those in lists, and the keys themselves if nil is wanted.
func editStrings(raw json.RawMessage, wanted func(key []byte) bool, edit func(string) string) json.RawMessage {
	var out, key []byte
	done := 0
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			if raw[i] == ',' || raw[i] == '[' || raw[i] == '{' {
				key = nil
			}
			i++
			continue
		}
		end := endOfString(raw, i)
		next := bytes.TrimLeft(raw[end:], " \t\r\n")
		isKey := len(next) > 0 && next[0] == ':'
		if isKey {
			key = raw[i:end]
		}
		if isKey && wanted(nil) || !isKey && wanted(key) {
			var text string
			if json.Unmarshal(raw[i:end], &text) == nil {
				if edited := edit(text); edited != text {
					quoted, _ := json.Marshal(edited)
					out = append(append(out, raw[done:i]...), quoted...)
					done = end
				}
			}
		}
		i = end
	}
	if done == 0 {
		return raw
	}
	return append(out, raw[done:]...)
}

// endOfString returns where the JSON string that begins at i is over.
func endOfString(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
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
