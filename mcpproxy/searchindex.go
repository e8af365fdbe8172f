package mcpproxy

import (
	"context"
	"runtime/debug"
	"slices"

	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/search"
)

// manyDocuments is how many tools make an index large: it takes so long that a
// search rather does with the one before, and leaves so much garbage, several
// times what stays, that this is not left lying until memory is needed again.
const manyDocuments = 2000

// indexOf is an index and what it was made of. It is replaced, never changed.
type indexOf struct {
	upstreams []*upstream
	lists     []*catalog.List // by upstream; nil was not known
	tools     []located       // by document
	index     *search.Index
}

// located is where the tool of a document is.
type located struct {
	upstream *upstream
	list     *catalog.List
	tool     int
}

// index returns the index over lists. A new one is made only if a list differs from
// last time. Where that takes long and the last one has all servers of this
// one, it serves once more while the new one is made.
func (c *knownTools) index(ctx context.Context, upstreams []*upstream, lists []*catalog.List) (indexOf, error) {
	if have := c.present(upstreams, lists); have.index != nil {
		return have, nil
	}
	return c.make(ctx, upstreams, lists)
}

// present returns the index that is there, if it serves for lists.
func (c *knownTools) present(upstreams []*upstream, lists []*catalog.List) indexOf {
	c.mu.Lock()
	defer c.mu.Unlock()
	have := c.have
	small := len(have.tools) <= manyDocuments
	switch {
	case have.index == nil, have.isOf(upstreams, lists):
	case small || !have.covers(upstreams, lists):
		have.index = nil
	case !c.behind:
		c.behind = upstreams[0].inBackground(func() { c.renewIndex(upstreams, lists) })
	}
	return have
}

func (c *knownTools) renewIndex(upstreams []*upstream, lists []*catalog.List) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.behind = false
	}()
	_, _ = c.make(context.Background(), upstreams, lists) // which does not end
}

// make makes an index, unless another goroutine did meanwhile. The error is that of ctx.
func (c *knownTools) make(ctx context.Context, upstreams []*upstream, lists []*catalog.List) (indexOf, error) {
	select {
	case c.making <- struct{}{}:
		defer func() { <-c.making }()
	case <-ctx.Done():
		return indexOf{}, context.Cause(ctx)
	}
	c.mu.Lock()
	have := c.have
	c.mu.Unlock()
	if have.index != nil && have.isOf(upstreams, lists) {
		return have, nil
	}
	if count(lists) > manyDocuments {
		defer frugal()()
	}
	docs, tools := documents(upstreams, lists)
	made, err := search.Make(ctx, docs)
	if err != nil {
		return indexOf{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.have = indexOf{upstreams, lists, tools, made}
	return c.have, nil
}

// frugal makes the garbage collector run early until restore is called, which then returns
// free memory to the system.
func frugal() (restore func()) {
	percent := debug.SetGCPercent(25)
	return func() {
		debug.SetGCPercent(percent)
		debug.FreeOSMemory()
	}
}

func count(lists []*catalog.List) (tools int) {
	for _, l := range lists {
		if l != nil {
			tools += l.Count()
		}
	}
	return tools
}

// isOf reports whether the index is of these lists.
func (x indexOf) isOf(upstreams []*upstream, lists []*catalog.List) bool {
	return slices.Equal(x.upstreams, upstreams) && slices.Equal(x.lists, lists)
}

// covers reports whether the index is of the same servers, though some had
// other tools then.
func (x indexOf) covers(upstreams []*upstream, lists []*catalog.List) bool {
	return slices.Equal(x.upstreams, upstreams) && slices.EqualFunc(x.lists, lists, func(had, has *catalog.List) bool {
		return (had == nil) == (has == nil)
	})
}

// documents makes the documents of an index.
func documents(upstreams []*upstream, lists []*catalog.List) (docs []search.Document, tools []located) {
	n := count(lists)
	docs, tools = make([]search.Document, 0, n), make([]located, 0, n)
	for i, list := range lists {
		if list == nil {
			continue
		}
		server := upstreams[i].described()
		for tool := range list.Count() {
			t := list.At(tool)
			docs = append(docs, search.Document{
				Server: server.Name, ServerDescription: server.Description,
				Tool: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
			})
			tools = append(tools, located{upstreams[i], list, tool})
		}
	}
	return docs, tools
}
