package mcpproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/mcpproxy/text"
	"github.com/toolcell/toolcell/mcpproxy/transport"
)

const (
	maxItems      = 20_000   // of one list
	maxItemBytes  = 16 << 20 // of one list
	maxURI        = 64 << 10
	maxPromptName = 512
)

// ListResources returns the resources of a server as a JSON array of what it
// wrote, all pages of it. A server without resources gives an empty one.
func (p *Proxy) ListResources(ctx context.Context, server string) (json.RawMessage, error) {
	return p.listItems(ctx, server, transport.MethodListResources, "resources", "resources", hasResources)
}

// ListResourceTemplates is ListResources for the templates of URIs.
func (p *Proxy) ListResourceTemplates(ctx context.Context, server string) (json.RawMessage, error) {
	return p.listItems(ctx, server, transport.MethodListTemplates, "resource templates", "resourceTemplates", hasResources)
}

// ListPrompts returns the prompts of a server as ListResources does resources.
func (p *Proxy) ListPrompts(ctx context.Context, server string) (json.RawMessage, error) {
	return p.listItems(ctx, server, transport.MethodListPrompts, "prompts", "prompts", hasPrompts)
}

// ReadResource returns the ReadResourceResult as the server wrote it.
func (p *Proxy) ReadResource(ctx context.Context, server, uri string) (json.RawMessage, error) {
	if uri == "" || len(uri) > maxURI {
		return nil, fmt.Errorf("reading a resource of server %q: the URI is empty or longer than %d bytes", server, maxURI)
	}
	return p.request(ctx, server, fmt.Sprintf("reading resource %q", text.Printable(uri, 200)), "resources", hasResources,
		transport.MethodReadResource, &transport.Params{URI: uri})
}

// GetPrompt returns the GetPromptResult as the server wrote it.
func (p *Proxy) GetPrompt(ctx context.Context, server, name string, args map[string]string) (json.RawMessage, error) {
	params := &transport.Params{Name: name}
	if len(args) > 0 {
		raw, err := json.Marshal(args)
		if err != nil {
			return nil, err
		}
		params.Arguments = raw
	}
	return p.request(ctx, server, fmt.Sprintf("getting prompt %q", text.Printable(name, maxPromptName)), "prompts", hasPrompts,
		transport.MethodGetPrompt, params)
}

func hasResources(c *mcp.ServerCapabilities) bool { return c.Resources != nil }
func hasPrompts(c *mcp.ServerCapabilities) bool   { return c.Prompts != nil }

// listItems joins the pages of a list; field is where each has its part.
func (p *Proxy) listItems(ctx context.Context, server, method, what, field string, has func(*mcp.ServerCapabilities) bool) (json.RawMessage, error) {
	return p.withSession(ctx, server, listWithin, func(ctx context.Context, u *upstream, s *transport.Session) (json.RawMessage, error) {
		if !s.Offers(has) {
			return json.RawMessage("[]"), nil
		}
		var all itemList
		if err := s.Pages(ctx, method, func(page json.RawMessage) (bool, error) { return all.add(page, field) }); err != nil {
			return nil, u.explainReadError(ctx, s, err, fmt.Sprintf("listing the %s of server %q", what, u.server.Name))
		}
		return append(append([]byte{'['}, bytes.Join(all.items, []byte(","))...), ']'), nil
	})
}

// withSession does something with a running server, within its time for a call or else
// within otherwise.
func (p *Proxy) withSession(ctx context.Context, server string, otherwise time.Duration, do func(context.Context, *upstream, *transport.Session) (json.RawMessage, error)) (json.RawMessage, error) {
	return with(p, server, func(u *upstream) (json.RawMessage, error) {
		ctx, cancel := p.within(ctx, u, otherwise)
		defer cancel()
		s, release, err := u.acquire(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
		return do(ctx, u, s)
	})
}

// itemList is what pages have given so far.
type itemList struct {
	items [][]byte
	bytes int
}

// add refuses a list that is too long: part of one would pass for the whole.
func (l *itemList) add(page json.RawMessage, field string) (more bool, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(page, &fields); err != nil {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	var items []json.RawMessage
	if raw := fields[field]; raw != nil {
		if err := json.Unmarshal(raw, &items); err != nil {
			return false, fmt.Errorf("reading the answer: %q is not a list", field)
		}
	}
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

// request sends one request and returns its result.
func (p *Proxy) request(ctx context.Context, server, what, kind string, has func(*mcp.ServerCapabilities) bool, method string, params *transport.Params) (json.RawMessage, error) {
	return p.withSession(ctx, server, 0, func(ctx context.Context, u *upstream, s *transport.Session) (json.RawMessage, error) {
		what := fmt.Sprintf("%s of server %q", what, u.server.Name)
		if !s.Offers(has) {
			return nil, fmt.Errorf("%s: the server has no %s", what, kind)
		}
		r, err := s.Request(ctx, method, params)
		if err == nil {
			err = r.Check()
		}
		if err != nil {
			return nil, u.explainReadError(ctx, s, err, what)
		}
		return r.Result, nil
	})
}

// within bounds a request by the server's time for a call, or the program's, or
// else by otherwise.
func (p *Proxy) within(ctx context.Context, u *upstream, otherwise time.Duration) (context.Context, context.CancelFunc) {
	for _, limit := range []time.Duration{u.server.CallTimeout, p.options.CallTimeout, otherwise} {
		if limit > 0 {
			cause := fmt.Errorf("no answer within %v: %w", limit, context.DeadlineExceeded)
			return context.WithTimeoutCause(ctx, limit, cause)
		}
	}
	return ctx, func() {}
}

// explainReadError puts the error of a request that changes nothing into words.
func (u *upstream) explainReadError(ctx context.Context, s *transport.Session, err error, what string) error {
	if cause := context.Cause(ctx); cause != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, cause)) {
		return fmt.Errorf("%s: %w", what, cause)
	}
	return u.explainError(s, err, what, nil)
}
