package mcpproxy

import (
	"context"
	"fmt"
	"slices"

	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/signature"
)

const maxStubNames = 1000

// Stubs writes the tools of a server, or those of them that are named, as the
// text of a .pyi file. It is bounded, and what was cut is named at its end.
func (p *Proxy) Stubs(ctx context.Context, server string, names []string) (string, error) {
	u, list, err := p.toolsOf(ctx, server)
	if err != nil {
		return "", err
	}
	var tools []catalog.Tool
	if len(names) > maxStubNames {
		return "", fmt.Errorf("writing the stubs of server %q: %d tools are named, the most is %d; name none for all", u.server.Name, len(names), maxStubNames)
	}
	if len(names) == 0 {
		tools = list.All()
	} else {
		for _, name := range names {
			t, ok := list.Find(name)
			if !ok {
				return "", list.Missing(u.server.Name, name)
			}
			if !slices.ContainsFunc(tools, func(have catalog.Tool) bool { return have.Name == t.Name }) {
				tools = append(tools, t)
			}
		}
	}
	functions := make([]signature.Function, len(tools))
	for i, t := range tools {
		functions[i] = signature.Function{
			Name: t.Name, Alias: t.Alias, Description: t.Description,
			Signature: func() *signature.Signature { return p.signatures.get(u.server.Name, t) },
		}
	}
	return signature.Stubs(u.server.Name, u.server.Alias, functions, len(names) > 0), nil
}
