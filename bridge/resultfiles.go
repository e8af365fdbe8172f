package bridge

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/toon"
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

// pictureRows and fileRows have their columns in the order in which one reads
// them.
func (r resultText) pictureRows() []any {
	rows := make([]any, len(r.Pictures))
	for i, p := range r.Pictures {
		rows[i] = toon.Object{{Key: "name", Value: p.Name}, {Key: "type", Value: p.Type}, {Key: "width", Value: p.Width}, {Key: "height", Value: p.Height}, {Key: "uri", Value: p.URI}}
	}
	return rows
}

func (r resultText) fileRows() []any {
	rows := make([]any, len(r.Files))
	for i, f := range r.Files {
		rows[i] = toon.Object{{Key: "name", Value: f.Name}, {Key: "type", Value: f.Type}, {Key: "size", Value: f.Size}, {Key: "uri", Value: f.URI}}
	}
	return rows
}
