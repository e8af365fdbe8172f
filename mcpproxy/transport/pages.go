package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

const (
	maxPages  = 1000    // of one list
	maxItems  = 100_000 // of one page; no list of ours has as many
	maxCursor = 64 << 10
)

// ErrTooManyPages is the error of a list with too many pages.
var ErrTooManyPages = fmt.Errorf("the list has more than %d pages", maxPages)

// A PageError is the error of a page that cannot be read, after pages that could.
type PageError struct {
	Page int // the first is 1
	Err  error
}

func (e *PageError) Error() string { return fmt.Sprintf("page %d of the list: %s", e.Page, e.Err) }
func (e *PageError) Unwrap() error { return e.Err }

// Pages returns the items of a list, page by page. A server that does not know the method
// has an empty list. An error ends the pages; after the first page it is a *PageError if the
// page itself is wrong.
func (s *Session) Pages(ctx context.Context, method string) iter.Seq2[[]json.RawMessage, error] {
	return func(yield func([]json.RawMessage, error) bool) {
		cursors := map[string]bool{"": true}
		for cursor, count := "", 1; ; count++ {
			if count > maxPages {
				yield(nil, ErrTooManyPages)
				return
			}
			p, err := s.page(ctx, method, cursor)
			if wireErr, ok := errors.AsType[*jsonrpc.Error](err); ok && wireErr.Code == jsonrpc.CodeMethodNotFound && count == 1 {
				return
			}
			if err != nil {
				yield(nil, pageError(count, err))
				return
			}
			if !yield(p.items, nil) {
				return
			}
			if cursor, err = p.next(); err != nil {
				yield(nil, &PageError{count + 1, err})
				return
			}
			if cursors[cursor] || len(cursor) > maxCursor { // a repeated cursor would go round for ever
				return
			}
			cursors[cursor] = true
		}
	}
}

// page asks for one page.
func (s *Session) page(ctx context.Context, method, cursor string) (p page, err error) {
	reply, err := s.Request(ctx, method, &Params{Cursor: cursor})
	if err == nil {
		err = reply.CheckList()
	}
	if err != nil {
		return p, err
	}
	field := strings.TrimSuffix(method, "/list") // the member that has the items
	if method == MethodListTemplates {
		field = "resourceTemplates"
	}
	return readPage(ctx, reply.Result, field)
}

// pageError makes it a *PageError if the page is wrong, and not the connection.
func pageError(page int, err error) error {
	var unreadable *message.UnreadableError
	if page > 1 && errors.As(err, &unreadable) {
		return &PageError{page, err}
	}
	return err
}

// A page is one part of a list.
type page struct {
	items  []json.RawMessage
	cursor json.RawMessage // where the next page begins, as it is written, or nil
}

// readPage finds the items of a page, in the member field, and its cursor. The error may be
// that of ctx.
func readPage(ctx context.Context, result json.RawMessage, field string) (p page, err error) {
	release, err := memory.Take(ctx, len(result), memory.Message)
	if err != nil {
		return p, err
	}
	defer release()
	s := rawjson.Scanner{Text: result, Context: ctx, Depth: rawjson.AnyDepth}
	for name := range s.Object {
		switch {
		case wire.IsName(name, field):
			if p.items, err = readItems(&s, field); len(p.items) > maxItems {
				return p, err
			}
		case wire.IsName(name, "nextCursor"):
			p.cursor = s.Value()
		default:
			s.Value()
		}
	}
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case !s.OK() && err == nil:
		err = message.Unreadable("it is not JSON from byte %d on", s.Offset)
	}
	return p, err
}

// readItems passes over the items of a page, which may nest as deep as they like. An empty
// object is the empty list of some languages, and null is one as well. The error is nil if
// a later member of the same name can be read instead.
func readItems(s *rawjson.Scanner, field string) (items []json.RawMessage, err error) {
	s.SkipSpace()
	if s.Offset < len(s.Text) && s.Text[s.Offset] != '[' {
		if raw := s.Value(); raw != nil && !rawjson.IsNull(raw) && !wire.IsEmptyObject(raw) {
			err = message.Unreadable("its %q must be a list, not %s", field, wire.KindOf(raw))
		}
		return nil, err
	}
	for _, item := range s.Items {
		if items = append(items, item); len(items) > maxItems {
			return items, message.Unreadable("its %q has more than %d items", field, maxItems)
		}
	}
	return items, nil
}

// next returns where the next page begins, or nothing. A cursor that is too long is none.
func (p page) next() (cursor string, err error) {
	if p.cursor == nil || rawjson.IsNull(p.cursor) || p.cursor[0] == '"' && len(p.cursor) > 6*maxCursor { // an escape has six bytes at most
		return "", nil
	}
	if p.cursor[0] != '"' || json.Unmarshal(p.cursor, &cursor) != nil {
		return "", message.Unreadable(`"nextCursor" must be text, not %s`, wire.KindOf(p.cursor))
	}
	return cursor, nil
}
