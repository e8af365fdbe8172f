package catalog

import (
	"bytes"
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
		schema = rawjson.Edit(schema, func(name []byte, value string) string {
			if !texts[string(name)] {
				return value
			}
			if value = text.Clean(value); long {
				value = text.CutAfter(value, maxDescription)
			}
			return value
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
	return !bytes.ContainsFunc(raw, func(c rune) bool { return c >= 0x7f || c == '\\' })
}

// texts are the keys of a schema whose values are for people. All others, such
// as enum, are part of what a call must look like.
var texts = map[string]bool{`"description"`: true, `"title"`: true, `"$comment"`: true}
