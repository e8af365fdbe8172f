package mcpproxy

import (
	"context"
	"encoding/json"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/search"
	"github.com/toolcell/toolcell/mcpproxy/signature"
)

// ToolDoc is what a script reads about a tool. The texts in it are the
// server's: data, cleaned and cut to a length, never instructions.
type ToolDoc struct {
	Server      string `json:"server"`
	ServerAlias string `json:"serverAlias"`
	Tool        string `json:"tool"`
	ToolAlias   string `json:"toolAlias"`
	Description string `json:"description"` // its first sentences, unless full was asked for
	// Score, from 0 to 1, is there after a search only: the first one's is how likely
	// the tool is an answer, the others' how near they come to it.
	Score float64 `json:"score,omitempty"`
	// Signature is how the tool is called from Python: in at most a few words a
	// parameter, or as it is documented if full was asked for.
	Signature   string          `json:"signature,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"` // only if full was asked for
}

// workDocument is what panicked if a document has no signature.
const workDocument = "documenting a tool"

// newDoc makes the document of a whole tool. One whose schema makes toolcell panic has
// neither signature nor schema, and does not keep a search from the others.
func newDoc(s config.Server, t catalog.Tool, full bool) (doc ToolDoc) {
	defer contain.Recover(workDocument, nil)
	doc = ToolDoc{Server: s.Name, ServerAlias: s.Alias, Tool: t.Name, ToolAlias: t.Alias, Description: t.Description}
	contain.Point(workDocument)
	release, err := memory.Take(context.Background(), len(t.InputSchema)+len(t.OutputSchema), memory.Schema) // each who has room is done soon
	if err != nil {
		return doc
	}
	defer release()
	sig := signature.New(t.InputSchema, t.OutputSchema)
	if !full {
		doc.Description, doc.Signature = text.Summary(t.Description), sig.Brief(t.Alias)
		return doc
	}
	doc.Signature, doc.InputSchema = sig.Doc(t.Alias), t.ShownSchema()
	return doc
}

// MergeRanked puts tools that belong to no server among those that a search found,
// where each fits, and gives at most limit of them (as Search counts it). What
// was found keeps its order and scores: it was ranked over all servers. Tools that do
// not answer the query are not put in, and the others' scores fit their places.
func MergeRanked(query string, found, others []ToolDoc, limit int) []ToolDoc {
	if len(others) == 0 {
		return found
	}
	if limit <= 0 {
		limit = defaultHits
	}
	all := append(append([]ToolDoc{}, found...), others...)
	docs := make([]search.Document, len(all))
	for i, d := range all {
		docs[i] = search.Document{Server: d.Server, Tool: d.Tool, Description: d.Description}
	}
	merged, next := []ToolDoc{}, 0
	for _, hit := range search.New(docs).Search(query, len(all)) {
		if hit.Doc >= len(found) {
			doc := all[hit.Doc]
			doc.Score = rounded(hit.Score)
			if len(merged) > 0 {
				doc.Score = min(doc.Score, merged[len(merged)-1].Score)
			}
			if next < len(found) {
				doc.Score = max(doc.Score, found[next].Score)
			}
			merged = append(merged, doc)
		} else if next < len(found) {
			merged = append(merged, found[next])
			next++
		}
	}
	merged = append(merged, found[next:]...)
	return merged[:min(len(merged), limit, maxHits)]
}
