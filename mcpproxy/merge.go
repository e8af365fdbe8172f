package mcpproxy

import "github.com/toolcell/toolcell/mcpproxy/search"

// MergeRanked puts tools that belong to no server among those that a search found,
// where each fits, and gives at most limit of them (as Search counts it). What
// was found keeps its order: it was ranked over all servers. Tools that do not
// answer the query are not put in.
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
	for _, i := range search.New(docs).Search(query, len(all)) {
		if i >= len(found) {
			merged = append(merged, all[i])
		} else if next < len(found) {
			merged = append(merged, found[next])
			next++
		}
	}
	merged = append(merged, found[next:]...)
	return merged[:min(len(merged), limit, maxHits)]
}
