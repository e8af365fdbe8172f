package mcpproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/toolcell/toolcell/mcpproxy/text"
)

const (
	maxTools      = 20_000
	maxToolBytes  = 64 << 20 // all definitions of one server, as it sends them
	maxKeptBytes  = 32 << 20 // and as they are kept
	maxToolName   = 512
	maxTitle      = 200 // characters
	maxAnnotation = 2 << 10
	maxLeftOut    = 20
)

// Tool is one tool of one server. The schemas are as the server wrote them.
type Tool struct {
	Name         string          `json:"name"`
	Alias        string          `json:"alias"` // the Python identifier, unique in its server
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// toolBuilder makes definitions of what a server sends, whatever that is.
type toolBuilder struct {
	log   *slog.Logger
	seen  map[string]bool
	defs  definitions
	bytes int // that came
	kept  int
}

func newToolBuilder(log *slog.Logger) *toolBuilder {
	return &toolBuilder{log: log, seen: map[string]bool{}}
}

// add takes in one page, and reports false when there is no room for more. A
// tool that makes no sense is left out and spoils none of the others.
func (b *toolBuilder) add(page []json.RawMessage) bool {
	for _, raw := range page {
		if b.bytes += len(raw); b.bytes > maxToolBytes || b.kept > maxKeptBytes || len(b.defs.tools) == maxTools {
			return false
		}
		t, err := readTool(raw)
		if err == nil && b.seen[t.Name] {
			err = errors.New("the server has another of this name")
		}
		if err != nil {
			b.leaveOut(t.Name, err)
			continue
		}
		b.seen[t.Name] = true
		b.defs.tools = append(b.defs.tools, t)
		b.kept += t.size()
	}
	return true
}

// leaveOut notes why, for the log and for who asks for the tool.
func (b *toolBuilder) leaveOut(name string, reason error) {
	name = text.Printable(name, maxToolName)
	if len(b.defs.left) < maxLeftOut {
		b.log.Warn("leaving out a tool", "tool", name, "reason", reason)
		b.defs.left = append(b.defs.left, leftOut{name, reason.Error()})
	}
}

// count returns how many tools add took in.
func (b *toolBuilder) count() int { return len(b.defs.tools) }

// finish returns what add took in.
func (b *toolBuilder) finish() definitions { return b.defs }

// readTool decodes one tool and makes it fit to be shown.
func readTool(raw json.RawMessage) (Tool, error) {
	var t Tool
	if err := json.Unmarshal(raw, &t); err != nil {
		return t, fmt.Errorf("reading its definition: %w", err)
	}
	if err := checkToolName(t.Name); err != nil {
		return t, err
	}
	t.Alias = "" // not a field of the protocol
	t.Title, _ = text.SplitAt(text.Clean(t.Title), maxTitle)
	t.Description = text.CutAfter(text.Clean(t.Description), text.MaxDescription)
	t.InputSchema = compact(sanitize(object(t.InputSchema, `{"type":"object"}`)))
	t.OutputSchema = compact(sanitize(object(t.OutputSchema, "")))
	if t.Annotations = compact(object(t.Annotations, "")); len(t.Annotations) > maxAnnotation {
		t.Annotations = nil
	}
	return t, nil
}

// compact removes the space between the tokens of valid JSON.
func compact(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return raw
	}
	return bytes.Clone(out.Bytes())
}

// object returns raw if it is a JSON object, else the replacement.
func object(raw json.RawMessage, otherwise string) json.RawMessage {
	if t := bytes.TrimSpace(raw); len(t) > 0 && t[0] == '{' {
		return t
	}
	if otherwise == "" {
		return nil
	}
	return json.RawMessage(otherwise)
}

// ReadOnly reports whether the server says that the tool changes nothing.
func (t Tool) ReadOnly() bool {
	var a struct {
		ReadOnlyHint bool `json:"readOnlyHint"`
	}
	return len(t.Annotations) < maxAnnotations && json.Unmarshal(t.Annotations, &a) == nil && a.ReadOnlyHint
}

const maxAnnotations = 64 << 10

// size is how many bytes a tool takes.
func (t Tool) size() int {
	return len(t.Name) + len(t.Title) + len(t.Description) + len(t.InputSchema) + len(t.OutputSchema) + len(t.Annotations)
}

// equal reports whether two definitions are the same.
func (t Tool) equal(other Tool) bool {
	return t.Name == other.Name && t.Title == other.Title && t.Description == other.Description &&
		bytes.Equal(t.InputSchema, other.InputSchema) && bytes.Equal(t.OutputSchema, other.OutputSchema) && bytes.Equal(t.Annotations, other.Annotations)
}
