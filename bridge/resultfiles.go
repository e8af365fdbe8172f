package bridge

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/internal/text"
)

// maxListedFiles bounds the files listed in a text; the structured content has
// all of them.
const maxListedFiles = 20

// fileLines lists the files for a reader.
func (r resultText) fileLines() []string {
	var out []string
	for _, f := range r.Files[:min(len(r.Files), maxListedFiles)] {
		out = append(out, fmt.Sprintf("file: %s (%s, %s) %s", f.Name, f.Type, text.Size(f.Size), f.URI))
	}
	if more := len(r.Files) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %s more, beside the last one", text.Plural(more, "file")))
	}
	return out
}

// contents are the content blocks for a client: the text, then the pictures.
// Text never contains a picture's bytes.
func (r resultText) contents(mode OutputMode) []mcp.Content {
	out := []mcp.Content{&mcp.TextContent{Text: Text(r.Result, mode)}}
	for _, p := range r.Pictures {
		out = append(out, &mcp.ImageContent{Data: p.Data, MIMEType: p.Type})
	}
	return out
}
