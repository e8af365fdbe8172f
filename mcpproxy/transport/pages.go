package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/mcpproxy/rawjson"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

const (
	maxPages  = 1000 // of one list
	maxCursor = 64 << 10
)

// ErrTooManyPages means that a server has not come to the end of a list.
var ErrTooManyPages = fmt.Errorf("the list has more than %d pages", maxPages)

// A PageError says that a page of a list cannot be read. The pages before it were.
type PageError struct {
	Page int // the first is 1
	Err  error
}

func (e *PageError) Error() string { return fmt.Sprintf("page %d of the list: %s", e.Page, e.Err) }
func (e *PageError) Unwrap() error { return e.Err }

// Pages calls add with the items of one page of a list after the other, until there are
// no more or add wants none. field is the member of a page that has them. A server that
// does not know the method has an empty list. An error behind the first page is a
// *PageError if that page is what is wrong.
func (s *Session) Pages(ctx context.Context, method, field string, add func(items []json.RawMessage) (more bool, err error)) error {
	cursors := map[string]bool{"": true}
	for cursor, count := "", 1; ; count++ {
		if count > maxPages {
			return ErrTooManyPages
		}
		page, err := s.Request(ctx, method, &Params{Cursor: cursor})
		var wireErr *jsonrpc.Error
		if errors.As(err, &wireErr) && wireErr.Code == jsonrpc.CodeMethodNotFound && count == 1 {
			return nil
		}
		var items []json.RawMessage
		if err == nil {
			err = page.CheckList()
		}
		if err == nil {
			items, err = itemsOf(page.Result, field)
		}
		if err != nil {
			return pageError(count, err)
		}
		if more, err := add(items); err != nil || !more {
			return err
		}
		if cursor, err = cursorOf(page.Result); err != nil {
			return &PageError{count + 1, err}
		}
		if cursors[cursor] || len(cursor) > maxCursor { // a repeated cursor would go round for ever
			return nil
		}
		cursors[cursor] = true
	}
}

// pageError says so if the page is what is wrong, and not the connection.
func pageError(page int, err error) error {
	var unreadable *message.UnreadableError
	if page > 1 && errors.As(err, &unreadable) {
		return &PageError{page, err}
	}
	return err
}

// itemsOf returns the items of a page. An empty object is the empty list of some
// languages, and null is one as well.
func itemsOf(page json.RawMessage, field string) ([]json.RawMessage, error) {
	raw := wire.Member(page, field)
	if raw == nil || rawjson.IsNull(raw) || isEmptyObject(raw) {
		return nil, nil
	}
	items, err := rawjson.Items(raw)
	if err != nil {
		return nil, message.Unreadable("its %q must be a list, not %s", field, wire.KindOf(raw))
	}
	return items, nil
}

func isEmptyObject(raw json.RawMessage) bool {
	members, err := rawjson.Members(raw)
	return err == nil && len(members) == 0
}

// cursorOf returns where the next page begins, or nothing.
func cursorOf(page json.RawMessage) (cursor string, err error) {
	raw := wire.Member(page, "nextCursor")
	if raw == nil || rawjson.IsNull(raw) {
		return "", nil
	}
	if json.Unmarshal(raw, &cursor) != nil {
		return "", message.Unreadable(`"nextCursor" must be text, not %s`, wire.KindOf(raw))
	}
	return cursor, nil
}
