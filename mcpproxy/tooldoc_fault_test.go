package mcpproxy

import (
	"testing"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// TestFaultInADocumentLeavesTheRest: what a search finds is not lost for one schema.
func TestFaultInADocumentLeavesTheRest(t *testing.T) {
	contain.Inject(t, func(at string) bool { return at == workDocument })
	doc := newDoc(config.Server{Name: "s"}, catalog.Tool{Name: "pay", Alias: "pay", Description: "Pays."}, true)
	if doc.Tool != "pay" || doc.Description != "Pays." || doc.Signature != "" {
		t.Errorf("the document is %+v", doc)
	}
}
