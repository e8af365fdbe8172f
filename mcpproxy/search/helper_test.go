package search

// found returns the documents that a query finds, without their scores.
func (ix *Index) found(query string, limit int) []int {
	var docs []int
	for _, h := range ix.Search(query, limit) {
		docs = append(docs, h.Doc)
	}
	return docs
}
