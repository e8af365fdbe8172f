package bridge

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/bridge/toon"
	"github.com/toolcell/toolcell/internal/text"
)

// maxListedFiles bounds the files listed in a text; the structured content has
// all of them.
const maxListedFiles = 20

// fileLines lists the files for a reader.
func (r *Result) fileLines() []string {
	var out []string
	for _, f := range r.Files[:min(len(r.Files), maxListedFiles)] {
		out = append(out, fmt.Sprintf("file: %s (%s, %s) %s", f.Name, f.Type, text.Size(f.Size), f.URI))
	}
	if more := len(r.Files) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %s more, beside the last one", text.Plural(more, "file")))
	}
	return out
}

// leftText summarizes the files of a run that printed nothing.
func (r *Result) leftText() string {
	var left []string
	if n := len(r.Pictures); n > 0 {
		left = append(left, text.Plural(n, "picture"))
	}
	if n := len(r.Files); n > 0 {
		left = append(left, text.Plural(n, "file"))
	}
	if len(left) == 0 {
		return "no output"
	}
	return strings.Join(left, ", ")
}

// A LocalFile is a file or a picture on this host.
type LocalFile struct {
	Path string
	Text string // a short description
}

// LocalFiles lists where on this host the run's files are. A picture that the
// result shows scaled down is there in its original size.
func (r *Result) LocalFiles() []LocalFile {
	var out []LocalFile
	listed := map[string]bool{}
	for _, f := range r.Files {
		listed[f.Name] = true
		out = append(out, LocalFile{filepath.Join(r.folder, f.Name), f.Type + ", " + text.Size(f.Size)})
	}
	for _, p := range r.Pictures {
		if p.URI != "" && !listed[p.Name] {
			out = append(out, LocalFile{filepath.Join(r.folder, p.Name), fmt.Sprintf("%s, %d×%d", p.Type, p.Width, p.Height)})
		}
	}
	return out
}

// contents are the content blocks for a client: the text, then the pictures.
// Text never contains a picture's bytes.
func (r *Result) contents(mode OutputMode) []mcp.Content {
	out := []mcp.Content{&mcp.TextContent{Text: r.Text(mode)}}
	for _, p := range r.Pictures {
		out = append(out, &mcp.ImageContent{Data: p.Data, MIMEType: p.Type})
	}
	return out
}

// pictureRows and fileRows have their columns in the order in which one reads
// them.
func (r *Result) pictureRows() []any {
	rows := make([]any, len(r.Pictures))
	for i, p := range r.Pictures {
		rows[i] = toon.Object{{Key: "name", Value: p.Name}, {Key: "type", Value: p.Type}, {Key: "width", Value: p.Width}, {Key: "height", Value: p.Height}, {Key: "uri", Value: p.URI}}
	}
	return rows
}

func (r *Result) fileRows() []any {
	rows := make([]any, len(r.Files))
	for i, f := range r.Files {
		rows[i] = toon.Object{{Key: "name", Value: f.Name}, {Key: "type", Value: f.Type}, {Key: "size", Value: f.Size}, {Key: "uri", Value: f.URI}}
	}
	return rows
}
