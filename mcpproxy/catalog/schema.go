package catalog

import (
	"encoding/json"
	"fmt"

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

// sanitize makes a schema safe to show. Nearly all schemas stay as the server wrote them.
// Texts in it lose invisible characters, and are cut in a long schema. A schema that is
// still too large, or nests too deep, is replaced by a note.
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
