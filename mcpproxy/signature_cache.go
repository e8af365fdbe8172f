package mcpproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/signature"
)

// maxSignatures are kept in memory.
const maxSignatures = 500

// A signatureCache keeps what was made of schemas, as every call of a tool
// asks for it.
type signatureCache struct {
	mu   sync.Mutex
	kept map[[2]string]keptSignature // by server and tool
}

type keptSignature struct {
	in, out json.RawMessage
	sig     *signature.Signature
}

func (c *signatureCache) get(server string, t catalog.Tool) *signature.Signature {
	key := [2]string{server, t.Name}
	c.mu.Lock()
	k, ok := c.kept[key]
	c.mu.Unlock()
	// A changed schema makes another signature; to compare is quicker than to ask.
	if ok && bytes.Equal(k.in, t.InputSchema) && bytes.Equal(k.out, t.OutputSchema) {
		return k.sig
	}
	sig := signature.New(t.InputSchema, t.OutputSchema)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept) >= maxSignatures {
		c.kept = map[[2]string]keptSignature{}
	}
	c.kept[key] = keptSignature{t.InputSchema, t.OutputSchema, sig}
	return sig
}

// Signature returns a tool, by name or alias, and how it is called. It goes by
// what is known of the server, which may have changed since: live asks the
// running server, which is started if need be.
func (p *Proxy) Signature(ctx context.Context, server, tool string, live bool) (catalog.Tool, *signature.Signature, error) {
	if !live {
		u, list, err := p.toolsOf(ctx, server)
		if err != nil {
			return catalog.Tool{}, nil, err
		}
		if t, ok := list.Find(tool); ok {
			return t, p.signatures.get(u.server.Name, t), nil
		}
	}
	name := ""
	t, err := with(p, server, func(u *upstream) (catalog.Tool, error) {
		name = u.server.Name
		s, release, err := u.acquire(ctx)
		if err != nil {
			return catalog.Tool{}, err
		}
		defer release()
		return u.resolve(ctx, s, tool)
	})
	if err != nil {
		return catalog.Tool{}, nil, err
	}
	return t, p.signatures.get(name, t), nil
}
