package mcpproxy

import (
	"bytes"
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
