package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"log/slog"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/pins"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

const (
	maxTools       = 20_000
	maxToolBytes   = 64 << 20 // all definitions of one server, as it sends them
	maxKeptBytes   = 32 << 20 // and as they are kept
	maxDefinition  = 4 << 20  // of one tool, as the server sends it
	maxToolName    = 512
	maxNames       = 1 << 20 // bytes of all their names
	maxTitle       = 200     // characters
	maxDescription = 4000    // characters
	maxAnnotation  = 2 << 10
	maxLeftOut     = 20
)

// Builder collects the definitions of tools that a server sends.
type Builder struct {
	// OverHTTP leaves out tools that name impossible headers for their arguments.
	OverHTTP bool

	log   *slog.Logger
	seen  map[string]bool
	defs  Definitions
	bytes int // that came
	kept  int
	names int
}

// NewBuilder returns an empty builder.
func NewBuilder(log *slog.Logger) *Builder {
	return &Builder{log: log, seen: map[string]bool{}}
}

// Add adds the tools of one page, and reports false when there is no room for more. It leaves
// out invalid tools. The error is that of ctx.
func (b *Builder) Add(ctx context.Context, page []json.RawMessage) (more bool, err error) {
	for _, raw := range page {
		if b.bytes += len(raw); b.bytes > maxToolBytes || b.kept > maxKeptBytes || b.names > maxNames || len(b.defs.tools) == maxTools {
			return false, nil
		}
		type definition struct {
			tool Tool
			sent pins.Definition
		}
		const work = "reading the definition of a tool"
		read, err := memory.Decode(ctx, work, min(len(raw), maxDefinition), memory.Definition, func() (d definition, err error) {
			err = contain.Call(work, func() (err error) { // of one: the others stay
				d.tool, d.sent, err = readTool(raw)
				if err == nil && b.OverHTTP {
					err = checkParameterHeaders(d.tool.InputSchema)
				}
				return err
			})
			return d, err
		})
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		t := read.tool
		if err == nil && b.seen[t.Name] {
			err = errors.New("the server has another of this name")
		}
		if err != nil {
			b.leaveOut(t.Name, err)
			continue
		}
		b.seen[t.Name] = true
		b.defs.tools = append(b.defs.tools, t)
		b.defs.sent = append(b.defs.sent, read.sent)
		b.kept += t.size()
		b.names += len(t.Name)
	}
	return true, nil
}

// leaveOut logs why a tool is left out, and keeps the reason for the error of a call.
func (b *Builder) leaveOut(name string, reason error) {
	name = text.Printable(name, maxToolName)
	level := slog.LevelWarn
	if errors.Is(reason, errOnlyAsTask) {
		level = slog.LevelInfo // nothing is wrong with it
	}
	if len(b.defs.left) < maxLeftOut {
		b.log.Log(context.Background(), level, "leaving out a tool", "tool", name, "reason", reason)
		b.defs.left = append(b.defs.left, leftOut{name, reason.Error()})
	}
}

// Count returns how many tools were added.
func (b *Builder) Count() int { return len(b.defs.tools) }

// Definitions returns the tools that were added.
func (b *Builder) Definitions() Definitions { return b.defs }

// readTool decodes and cleans one tool. sent is the definition that pins compare.
func readTool(raw json.RawMessage) (t Tool, sent pins.Definition, err error) {
	if len(raw) > maxDefinition {
		return Tool{Name: nameOf(raw)}, sent, fmt.Errorf("its definition has %d bytes; the most is %d", len(raw), maxDefinition)
	}
	if !rawjson.NestsAtMost(raw, rawjson.MaxDepth-1) { // where encoding/json stops
		return Tool{Name: nameOf(raw)}, sent, fmt.Errorf("its definition nests more than %d deep", rawjson.MaxDepth-1)
	}
	t, execution, err := decodeTool(raw)
	if err == nil {
		err = cmp.Or(checkToolName(t.Name), refuseTask(execution))
	}
	if err != nil {
		return t, sent, err
	}
	if sent, err = pins.Define(raw); err != nil {
		return t, sent, fmt.Errorf("reading its definition: %w", err)
	}
	sent.Name, t.Digest = t.Name, sent.Digest
	t.Title, _ = text.SplitAt(text.Clean(t.Title), maxTitle)
	t.Description = text.CutAfter(text.Clean(t.Description), maxDescription)
	if t.InputSchema = compact(sanitize(object(t.InputSchema))); t.InputSchema == nil {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	t.OutputSchema = compact(sanitize(object(t.OutputSchema)))
	if t.Annotations = compact(object(t.Annotations)); len(t.Annotations) > maxAnnotation || !rawjson.NestsAtMost(t.Annotations, maxNesting) {
		t.Annotations = nil
	}
	sent.Hints = pins.ReadHints(t.Annotations)
	return t, sent, nil
}

// decodeTool reads the members of a tool. Only its name has to be right: a text of
// another type is left out, and schemas are checked where they are used.
func decodeTool(raw json.RawMessage) (t Tool, execution json.RawMessage, err error) {
	members, err := rawjson.Members(raw)
	if kind := wire.KindOf(raw); err != nil && kind != "an object" {
		return t, nil, fmt.Errorf("its definition must be an object, not %s", kind)
	}
	if err != nil {
		return Tool{Name: nameOf(raw)}, nil, fmt.Errorf("its definition %w", err)
	}
	last := map[string]json.RawMessage{} // of two of one name
	for _, m := range members {
		last[m.Name] = m.Value
	}
	t = Tool{InputSchema: last["inputSchema"], OutputSchema: last["outputSchema"], Annotations: last["annotations"]}
	t.Title, _ = rawjson.Text(last["title"])
	t.Description, _ = rawjson.Text(last["description"])
	if json.Unmarshal(last["name"], &t.Name) != nil {
		return t, nil, fmt.Errorf("its name must be text, not %s", wire.KindOf(last["name"]))
	}
	return t, last["execution"], nil
}

// nameOf returns the name of a definition that cannot be decoded, if it has one.
func nameOf(raw json.RawMessage) (name string) {
	_ = json.Unmarshal(wire.Member(raw[:min(len(raw), maxDefinition)], "name"), &name)
	return name
}

var errOnlyAsTask = errors.New("it runs only as a task of MCP, which toolcell does not support")

// refuseTask refuses a tool that refuses calls that do not ask for a task. Of "required" MCP
// 2025-11-25 says: "clients MUST invoke the tool as a task".
func refuseTask(execution json.RawMessage) error {
	if support, _ := rawjson.Text(wire.Member(execution, "taskSupport")); support == "required" {
		return errOnlyAsTask
	}
	return nil
}

// compact removes the space between the tokens of valid JSON.
func compact(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	out := jsontext.Value(bytes.Clone(raw))
	if out.Compact() != nil {
		return raw
	}
	return bytes.Clone(out)
}

// object returns raw if it is a JSON object, else nil.
func object(raw json.RawMessage) json.RawMessage {
	if raw.Kind() != jsontext.KindBeginObject {
		return nil
	}
	return bytes.TrimSpace(raw)
}
