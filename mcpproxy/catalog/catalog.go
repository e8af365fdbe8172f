// Package catalog keeps the tools of one server, in memory and on
// disk.
//
// A [Builder] takes in what the server lists, whatever that is: texts are cleaned
// and cut, schemas bounded, tools that make no sense left out, and all of it has a
// limit. A [List] shows the tools that the entry of the server does not hide. A
// [Record] keeps the list, and what the server said of itself, in a [Store] from
// one process to the next. The store is a cache: what cannot be read from it is
// listed again.
package catalog

import (
	"encoding/json"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/pins"
)

// Tool is one tool of one server. The schemas are as the server wrote them, without
// the space between tokens.
type Tool struct {
	Name         string          `json:"name"`
	Alias        string          `json:"alias"` // the Python identifier, unique in its server
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
	// Digest is of the definition as the server sent it, before anything was cleaned or
	// cut. Pins compare it.
	Digest string `json:"digest"`

	twins []string // shared
}

// Twins returns names and aliases of tools of the server that differ from this one's in
// their case only, its own among them. It is empty if there is no other, and not to be
// changed.
func (t Tool) Twins() []string { return t.twins }

// ShownSchema returns the input schema for a reader: hidden characters in it are
// written as escapes, at any depth. Calls are checked by the schema as it is.
func (t Tool) ShownSchema() json.RawMessage {
	if harmless(t.InputSchema) {
		return t.InputSchema
	}
	return rawjson.Edit(t.InputSchema, func(_ []byte, value string) string { return text.VisibleInJSON(value) })
}

// Definition returns the tool as pins compare it. What the server says of it in hints
// counts only if its pin says the same: nothing else may go by the annotations.
func (t Tool) Definition() pins.Definition {
	return pins.Definition{Name: t.Name, Digest: t.Digest, Hints: pins.ReadHints(t.Annotations)}
}

// size is how many bytes a tool takes.
func (t Tool) size() int {
	return len(t.Name) + len(t.Title) + len(t.Description) + len(t.InputSchema) + len(t.OutputSchema) + len(t.Annotations)
}
