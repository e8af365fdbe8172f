package search

// found returns the documents that a query finds, without their scores.
func (ix *Index) found(query string, limit int) []int {
	var docs []int
	for _, h := range ix.Search(query, limit) {
		docs = append(docs, h.Doc)
	}
	return docs
}

// toolsFound returns the names of the tools that a query finds, best first.
func toolsFound(query string, lines ...string) []string {
	ix, docs := catalogOf(lines...)
	var names []string
	for _, doc := range ix.found(query, 5) {
		names = append(names, docs[doc].Tool)
	}
	return names
}
