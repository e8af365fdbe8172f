package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/search"
	"github.com/toolcell/toolcell/mcpproxy/signature"
)

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
	} else if t, ok := list.FindFold(tool); ok {
		tools = []catalog.Tool{t}
	} else {
		return nil, u.missing(list, tool)
	}
	docs := make([]ToolDoc, 0, len(tools))
	for _, t := range tools {
		docs = append(docs, newDoc(u.server, t, full))
	}
	return docs, nil
}

// KnownDocs describes the tools of a server that are known, at most limit of them, as Docs does without
// full. It starts nothing.
func (p *Proxy) KnownDocs(server string, limit int) []ToolDoc {
	u, err := p.upstream(server)
	if err != nil {
		return nil
	}
	known := p.KnownTools(server)
	known = known[:min(len(known), limit)]
	docs := make([]ToolDoc, 0, len(known))
	for _, t := range known {
		docs = append(docs, newDoc(u.server, t, false))
	}
	return docs
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

// AwaitTools waits until the tools of a server are known. It starts the server if
// need be.
func (p *Proxy) AwaitTools(ctx context.Context, server string) error {
	_, _, err := p.toolsOf(ctx, server)
	return err
}

// toolsOf finds a server and its tools, which are listed if they are not known.
func (p *Proxy) toolsOf(ctx context.Context, server string) (u *upstream, list *catalog.List, err error) {
	for range maxSwaps {
		if u, err = p.upstream(server); err != nil {
			return nil, nil, err
		}
		if list, err = u.tools(ctx); !errors.Is(err, errRetired) {
			break
		}
	}
	if err == nil {
		p.tools.renew(u)
	}
	return u, list, err
}

// Signature returns a tool, by name or alias, and how it is called. It uses the
// kept definition, which may be out of date, and starts the server only for a tool that it
// does not know.
func (p *Proxy) Signature(ctx context.Context, server, tool string) (catalog.Tool, *signature.Signature, error) {
	prepared, err := p.prepare(ctx, server, Want{Method: CallTool, Name: tool})
	if err != nil {
		return catalog.Tool{}, nil, err
	}
	return prepared.facts.Tool.Tool, prepared.Signature(), nil
}

// Refresh asks a server for its tools and returns them, whatever was known. The
// server is started if it does not run.
func (p *Proxy) Refresh(ctx context.Context, server string) ([]catalog.Tool, error) {
	u, err := p.upstream(server)
	if err != nil {
		return nil, err
	}
	u.record.Outdated() // what was asked before now does not count
	list, err := u.startAndList(ctx)
	if err != nil {
		return nil, err
	}
	return list.All(), nil
}

// Search ranks the tools of all discovered servers by how well they fit a
// query, best first, at most limit of them (0 is 5; 50 is the most). Servers
// whose tools are not known yet are started. One that cannot be searched is in
// the problems, with the reason. Servers that allowed refuses are left out and not
// started, as all are with nil.
func (p *Proxy) Search(ctx context.Context, query string, limit int, full bool, allowed func(name, alias string) bool) ([]ToolDoc, []config.Problem, error) {
	limit, err := checkSearch(query, limit)
	if err != nil {
		return nil, nil, err
	}
	upstreams := slices.DeleteFunc(slices.Clone(p.current().upstreams), func(u *upstream) bool {
		return allowed == nil || !allowed(u.server.Name, u.server.Alias)
	})
	return p.tools.search(ctx, upstreams, query, limit, full)
}

// SearchKnown is Search over the tools that are known, of all servers. It starts nothing, and returns the
// names of the servers whose tools are not known.
func (p *Proxy) SearchKnown(ctx context.Context, query string, limit int) (found []ToolDoc, unknown []string, err error) {
	if limit, err = checkSearch(query, limit); err != nil {
		return nil, nil, err
	}
	upstreams := p.current().upstreams
	lists := make([]*catalog.List, len(upstreams))
	for i, u := range upstreams {
		if lists[i], _ = u.record.Tools(); lists[i] == nil {
			unknown = append(unknown, u.server.Name)
		}
	}
	found, err = p.tools.rank(ctx, upstreams, lists, query, limit, false)
	return found, unknown, err
}

// checkSearch returns how many tools a search may find.
func checkSearch(query string, limit int) (int, error) {
	switch {
	case utf8.RuneCountInString(query) > maxQuery:
		return 0, fmt.Errorf("searching tools: the query is longer than %d characters", maxQuery)
	case !search.HasWords(query):
		return 0, errors.New("searching tools: the query is empty: give some words that say what the tool should do")
	case limit < 0:
		return 0, fmt.Errorf("searching tools: limit %d is not positive", limit)
	case limit == 0:
		limit = defaultHits
	}
	return min(limit, maxHits), nil
}

// AnyServer lets Search look at all servers.
func AnyServer(_, _ string) bool { return true }

func (p *Proxy) signature(server string, t catalog.Tool) *signature.Signature {
	return p.signatures.Get(server, t.Name, t.InputSchema, t.OutputSchema)
}
