package mcpproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/text"
	"github.com/toolcell/toolcell/mcpproxy/transport"
)

const (
	maxTools      = 20_000
	maxToolBytes  = 64 << 20 // all definitions of one server
	maxToolName   = 512
	maxTitle      = 200 // characters
	maxAnnotation = 2 << 10
	maxLeftOut    = 20
	listWithin    = 60 * time.Second // over all pages
)

// listTools follows the pages of tools/list to their end or to our bounds.
func listTools(ctx context.Context, s *transport.Session, log *slog.Logger) (definitions, error) {
	b := newToolBuilder(log)
	err := s.Pages(ctx, transport.MethodListTools, func(page json.RawMessage) (bool, error) {
		var res struct {
			Tools []json.RawMessage `json:"tools"`
		}
		if err := json.Unmarshal(page, &res); err != nil {
			return false, fmt.Errorf("reading the answer: %w", err)
		}
		more := b.add(res.Tools)
		if !more {
			log.Warn("the tool list is too long", "kept", len(b.names))
		}
		return more, nil
	})
	if errors.Is(err, transport.ErrTooManyPages) {
		log.Warn("the tool list has too many pages", "kept", len(b.names))
		err = nil
	}
	if err != nil {
		return definitions{}, err
	}
	return b.finish()
}

// toolBuilder makes definitions of what a server sends, whatever that is.
type toolBuilder struct {
	log    *slog.Logger
	names  []toolName
	seen   map[string]bool
	left   []leftOut
	packer packer
	bytes  int
}

func newToolBuilder(log *slog.Logger) *toolBuilder {
	return &toolBuilder{log: log, seen: map[string]bool{}}
}

// add takes in one page, and reports false when there is no room for more. A
// tool that makes no sense is left out and spoils none of the others.
func (b *toolBuilder) add(page []json.RawMessage) bool {
	for _, raw := range page {
		if b.bytes += len(raw); b.bytes > maxToolBytes || len(b.names) == maxTools {
			return false
		}
		t, err := readTool(raw)
		if err == nil && b.seen[t.Name] {
			err = errors.New("the server has another of this name")
		}
		if err == nil {
			err = b.packer.add(t)
		}
		if errors.Is(err, errTooMuch) {
			return false
		}
		if err != nil {
			b.leaveOut(t.Name, err)
			continue
		}
		b.seen[t.Name] = true
		b.names = append(b.names, toolName{t.Name, t.Annotations})
	}
	return true
}

// leaveOut notes why, for the log and for who asks for the tool.
func (b *toolBuilder) leaveOut(name string, reason error) {
	name = text.Printable(name, maxToolName)
	if len(b.left) < maxLeftOut {
		b.log.Warn("leaving out a tool", "tool", name, "reason", reason)
		b.left = append(b.left, leftOut{name, reason.Error()})
	}
}

func (b *toolBuilder) finish() (definitions, error) {
	p, err := b.packer.finish()
	return definitions{names: b.names, packed: p, left: b.left}, err
}

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
	t.InputSchema = sanitize(object(t.InputSchema, `{"type":"object"}`))
	t.OutputSchema = sanitize(object(t.OutputSchema, ""))
	if t.Annotations = object(t.Annotations, ""); len(t.Annotations) > maxAnnotation {
		t.Annotations = nil
	}
	return t, nil
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
