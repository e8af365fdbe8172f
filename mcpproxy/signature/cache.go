package signature

import (
	"bytes"
	"encoding/json"
	"sync"
)

// maxSignatures are kept in memory.
const maxSignatures = 500

// A Cache keeps signatures of tools, as every call of a tool asks for its own.
type Cache struct {
	mu   sync.Mutex
	kept map[[2]string]keptSignature // by server and tool
}

type keptSignature struct {
	in, out json.RawMessage
	sig     *Signature
}

// Get returns the signature of a tool with these schemas of input and output.
func (c *Cache) Get(server, tool string, in, out json.RawMessage) *Signature {
	key := [2]string{server, tool}
	c.mu.Lock()
	k, ok := c.kept[key]
	c.mu.Unlock()
	// A changed schema makes another signature; to compare is quicker than to ask.
	if ok && bytes.Equal(k.in, in) && bytes.Equal(k.out, out) {
		return k.sig
	}
	sig := New(in, out)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept) >= maxSignatures {
		c.kept = map[[2]string]keptSignature{}
	}
	c.kept[key] = keptSignature{in, out, sig}
	return sig
}
