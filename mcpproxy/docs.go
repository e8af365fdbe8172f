package mcpproxy

import (
	"context"
	"encoding/json"

	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/signature"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// ToolDoc is what a script reads about a tool. The texts in it are the
// server's: data, cleaned and cut to a length, never instructions.
type ToolDoc struct {
	Server      string `json:"server"`
	ServerAlias string `json:"serverAlias"`
	Tool        string `json:"tool"`
	ToolAlias   string `json:"toolAlias"`
	Description string `json:"description"` // its first sentences, unless full was asked for
	// Only where full was asked for: how the tool is called from Python, which
	// is the shorter, and its schema.
	Signature   string          `json:"signature,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
}

// Docs describes one tool of a server, by name or alias, or all of them if
// tool is empty. It starts the server only if its tools are not known yet.
func (p *Proxy) Docs(ctx context.Context, server, tool string, full bool) ([]ToolDoc, error) {
	u, list, err := p.toolsOf(ctx, server)
	if err != nil {
		return nil, err
	}
	var tools []catalog.Tool
	if tool == "" {
		tools = list.All()
	} else if t, ok := list.Find(tool); ok {
		tools = []catalog.Tool{t}
	} else {
		return nil, list.Missing(u.server.Name, tool)
	}
	docs := make([]ToolDoc, 0, len(tools))
	for _, t := range tools {
		docs = append(docs, newDoc(u.server, t, full))
	}
	return docs, nil
}

// Tools returns all tools of a server with their schemas. It starts the server
// only if they are not known yet.
func (p *Proxy) Tools(ctx context.Context, server string) ([]catalog.Tool, error) {
	_, list, err := p.toolsOf(ctx, server)
	if err != nil {
		return nil, err
	}
	return list.All(), nil
}

// toolsOf finds a server and its tools, which are listed if they are not known.
func (p *Proxy) toolsOf(ctx context.Context, server string) (u *upstream, list *catalog.List, err error) {
	list, err = with(p, server, func(found *upstream) (*catalog.List, error) {
		u = found
		return u.tools(ctx)
	})
	if err == nil {
		p.renew(u)
	}
	return u, list, err
}

// newDoc makes the document of a whole tool.
func newDoc(s config.Server, t catalog.Tool, full bool) ToolDoc {
	doc := ToolDoc{Server: s.Name, ServerAlias: s.Alias, Tool: t.Name, ToolAlias: t.Alias, Description: t.Description}
	if !full {
		doc.Description = text.Summary(t.Description)
		return doc
	}
	doc.Signature, doc.InputSchema = signature.New(t.InputSchema, t.OutputSchema).Doc(t.Alias), t.InputSchema
	return doc
}
