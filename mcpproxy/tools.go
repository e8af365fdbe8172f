package mcpproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	methodListTools = "tools/list"

	maxToolPages    = 1000
	maxTools        = 20_000
	maxToolBytes    = 64 << 20 // all definitions of one server
	maxToolName     = 512
	maxCursor       = 64 << 10
	listToolsWithin = 60 * time.Second // over all pages
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

// toolList is what one tools/list gave. It is not changed once it is made.
type toolList struct {
	tools []Tool
	byKey map[string]int // names, and aliases where no tool has such a name
}

// find returns the tool with this name or alias.
func (l *toolList) find(key string) (Tool, bool) {
	i, ok := l.byKey[key]
	if !ok {
		return Tool{}, false
	}
	return l.tools[i], true
}

// known returns the tools, from memory if they are there, even if the server
// does not run.
func (u *upstream) known(ctx context.Context) (*toolList, error) {
	u.mu.Lock()
	list := u.tools
	u.mu.Unlock()
	if list != nil {
		return list, nil
	}
	s, release, err := u.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	list, _, err = u.current(ctx, s)
	return list, err
}

// current returns the tools of a running session. fresh says that it asked the
// server just now. Callers at the same time share one request.
func (u *upstream) current(ctx context.Context, s *session) (list *toolList, fresh bool, err error) {
	u.mu.Lock()
	if u.tools != nil {
		defer u.mu.Unlock()
		return u.tools, false, nil
	}
	f := u.listing
	if f == nil {
		f = newFlight[*toolList]()
		u.listing = f
		version := u.version
		u.finished.Add(1)
		go func() {
			defer u.finished.Done()
			ctx, cancel := context.WithTimeout(u.ctx, listToolsWithin)
			defer cancel()
			list, err := listTools(ctx, s, u.dialer.log.With("server", u.server.Name))
			if err != nil {
				err = u.lost(s, err, fmt.Sprintf("listing the tools of server %q", u.server.Name), nil)
			}
			u.mu.Lock()
			if u.listing == f {
				u.listing = nil
			}
			if err == nil && u.version == version {
				u.tools = list
			}
			u.mu.Unlock()
			f.land(list, err)
		}()
	}
	u.mu.Unlock()
	list, err = f.wait(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("listing the tools of server %q: %w", u.server.Name, context.Cause(ctx))
	}
	return list, true, err
}

// listTools follows the pages of tools/list to their end or to our bounds.
func listTools(ctx context.Context, s *session, log *slog.Logger) (*toolList, error) {
	b := newToolBuilder(log)
	cursors := map[string]bool{"": true}
	for cursor, page := "", 0; ; page++ {
		if page == maxToolPages {
			log.Warn("the tool list has too many pages", "kept", len(b.list.tools))
			break
		}
		raw, err := s.request(ctx, methodListTools, &rawParams{Cursor: cursor})
		var wireErr *jsonrpc.Error
		if errors.As(err, &wireErr) && wireErr.Code == jsonrpc.CodeMethodNotFound && page == 0 {
			break // a server of resources and prompts only
		}
		if err != nil {
			return nil, err
		}
		var res struct {
			Tools      []json.RawMessage `json:"tools"`
			NextCursor string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &res); err != nil {
			return nil, fmt.Errorf("reading the answer: %w", err)
		}
		if !b.add(res.Tools) {
			log.Warn("the tool list is too long", "kept", len(b.list.tools))
			break
		}
		cursor = res.NextCursor
		if cursors[cursor] || len(cursor) > maxCursor { // a repeated cursor would go round for ever
			break
		}
		cursors[cursor] = true
	}
	return b.list, nil
}

// toolBuilder makes a toolList of what a server sends, whatever that is.
type toolBuilder struct {
	log     *slog.Logger
	list    *toolList
	aliases map[string]bool
	bytes   int
}

func newToolBuilder(log *slog.Logger) *toolBuilder {
	return &toolBuilder{log: log, list: &toolList{byKey: map[string]int{}}, aliases: map[string]bool{}}
}

// add takes in one page, and reports false when there is no room for more. A
// tool that makes no sense is left out and spoils none of the others.
func (b *toolBuilder) add(page []json.RawMessage) bool {
	for _, raw := range page {
		if b.bytes += len(raw); b.bytes > maxToolBytes || len(b.list.tools) == maxTools {
			return false
		}
		var t Tool
		if err := json.Unmarshal(raw, &t); err != nil {
			b.log.Debug("leaving out a tool", "err", err)
			continue
		}
		if err := checkToolName(t.Name); err != nil {
			b.log.Debug("leaving out a tool", "name", printable(t.Name, 64), "err", err)
			continue
		}
		if _, ok := b.list.byKey[t.Name]; ok {
			b.log.Debug("leaving out a tool", "name", t.Name, "err", "it is there twice")
			continue
		}
		t.Alias = "" // not a field of the protocol
		t.Description = clip(t.Description, maxDescription)
		t.InputSchema = object(t.InputSchema, `{"type":"object"}`)
		t.OutputSchema = object(t.OutputSchema, "")
		b.list.byKey[t.Name] = len(b.list.tools)
		b.list.tools = append(b.list.tools, t)
	}
	b.name()
	return true
}

// name gives aliases to the tools that have none yet. A tool's own name goes
// before another's alias.
func (b *toolBuilder) name() {
	for i := range b.list.tools {
		if t := &b.list.tools[i]; t.Alias == "" {
			t.Alias = Alias(t.Name, "tool", b.aliases)
			if _, ok := b.list.byKey[t.Alias]; !ok {
				b.list.byKey[t.Alias] = i
			}
		}
	}
}

func checkToolName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("its name is empty")
	case len(name) > maxToolName:
		return errors.New("its name is too long")
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("its name contains control characters")
	}
	return nil
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
