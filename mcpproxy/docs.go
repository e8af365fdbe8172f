package mcpproxy

import (
	"context"
	"encoding/json"
)

// ToolDoc is what a script reads about a tool.
type ToolDoc struct {
	Server      string `json:"server"`
	ServerAlias string `json:"serverAlias"`
	Tool        string `json:"tool"`
	ToolAlias   string `json:"toolAlias"`
	Description string `json:"description"`
	// Only where full was asked for: how the tool is called from Python, which
	// is the shorter, and its schema.
	Signature   string          `json:"signature,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
}

// Docs describes one tool of a server, by name or alias, or all of them if
// tool is empty.
func (p *Proxy) Docs(ctx context.Context, server, tool string, full bool) ([]ToolDoc, error) {
	u, err := p.upstream(server)
	if err != nil {
		return nil, err
	}
	list, err := u.known(ctx)
	if err != nil {
		return nil, err
	}
	tools := list.tools
	if tool != "" {
		t, ok := list.find(tool)
		if !ok {
			return nil, noTool(u.server.Name, tool, list)
		}
		tools = []Tool{t}
	}
	docs := make([]ToolDoc, 0, len(tools))
	for _, t := range tools {
		docs = append(docs, newDoc(u.server, t, full))
	}
	return docs, nil
}

func newDoc(s Server, t Tool, full bool) ToolDoc {
	doc := ToolDoc{Server: s.Name, ServerAlias: s.Alias, Tool: t.Name, ToolAlias: t.Alias, Description: t.Description}
	if full {
		doc.Signature, doc.InputSchema = NewSignature(t).Doc(t.Alias), t.InputSchema
	}
	return doc
}
