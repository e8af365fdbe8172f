package mcpproxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/mcpproxy/elicitation"
	"github.com/toolcell/toolcell/mcpproxy/transport"
)

const (
	maxItems      = 20_000   // of one list
	maxItemBytes  = 16 << 20 // of one list
	maxURI        = 64 << 10
	maxPromptName = 512
)

func hasResources(c *mcp.ServerCapabilities) bool { return c.Resources != nil }
func hasPrompts(c *mcp.ServerCapabilities) bool   { return c.Prompts != nil }

// itemList is what pages have given so far.
type itemList struct {
	items [][]byte
	bytes int
}

// add refuses a list that is too long: part of one would pass for the whole.
func (l *itemList) add(items []json.RawMessage) (more bool, err error) {
	for _, item := range items {
		if l.bytes += len(item); l.bytes > maxItemBytes || len(l.items) == maxItems {
			return false, fmt.Errorf("the list has more than %d entries or %d MiB", maxItems, maxItemBytes>>20)
		}
		if item = bytes.TrimSpace(item); len(item) > 0 && item[0] == '{' { // anything else makes no sense and is left out
			l.items = append(l.items, item)
		}
	}
	return true, nil
}

// itemKind is a kind of list that servers have; field is where each page has its part.
type itemKind struct {
	method, what, field string
	has                 func(*mcp.ServerCapabilities) bool
}

// itemRequest is a request for one item; what names it in errors.
type itemRequest struct {
	method, kind string
	has          func(*mcp.ServerCapabilities) bool
	what         string
}

// listItems joins the pages of a list.
func listItems(ctx context.Context, u *upstream, kind itemKind) (json.RawMessage, error) {
	ctx, cancel := within(ctx, cmp.Or(u.callTimeout, listWithin))
	defer cancel()
	s, release, err := u.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if !s.Offers(kind.has) {
		return json.RawMessage("[]"), nil
	}
	var all itemList
	if err := s.Pages(ctx, kind.method, kind.field, all.add); err != nil {
		return nil, u.explainReadError(ctx, s, err, fmt.Sprintf("listing the %s of server %q", kind.what, u.server.Name))
	}
	return append(append([]byte{'['}, bytes.Join(all.items, []byte(","))...), ']'), nil
}

// requestItem sends one request and returns its result.
func requestItem(ctx context.Context, u *upstream, r itemRequest, params *transport.Params) (json.RawMessage, error) {
	ctx, left, cancel := elicitation.StartClock(ctx, u.callTimeout, noAnswer(u.callTimeout))
	defer cancel()
	s, release, err := u.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	what := fmt.Sprintf("%s of server %q", r.what, u.server.Name)
	if !s.Offers(r.has) {
		return nil, fmt.Errorf("%s: the server has no %s", what, r.kind)
	}
	reply, err := newRelay(u, s, "", askingOf(ctx), left).request(ctx, r.method, params)
	if err == nil {
		err = reply.Check()
	}
	if err != nil {
		return nil, u.explainReadError(ctx, s, err, what)
	}
	return reply.Result, nil
}

// within bounds a request; 0 is no bound.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, noAnswer(limit))
}

// A silence is the error of a request that got no answer in time.
type silence struct{ limit time.Duration }

func (e *silence) Error() string { return fmt.Sprintf("no answer within %v", e.limit) }
func (e *silence) Unwrap() error { return context.DeadlineExceeded }

func noAnswer(limit time.Duration) error { return &silence{limit} }
