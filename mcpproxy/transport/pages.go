package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	maxPages  = 1000 // of one list
	maxCursor = 64 << 10
)

// ErrTooManyPages means that a server has not come to the end of a list.
var ErrTooManyPages = fmt.Errorf("the list has more than %d pages", maxPages)

// Pages calls add with one page of a list after the other, until there are no more
// or add wants none. A server that does not know the method has an empty list.
func (s *Session) Pages(ctx context.Context, method string, add func(page json.RawMessage) (bool, error)) error {
	cursors := map[string]bool{"": true}
	for cursor, count := "", 0; ; count++ {
		if count == maxPages {
			return ErrTooManyPages
		}
		page, err := s.Request(ctx, method, &Params{Cursor: cursor})
		var wireErr *jsonrpc.Error
		if errors.As(err, &wireErr) && wireErr.Code == jsonrpc.CodeMethodNotFound && count == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		if more, err := add(page.Result); err != nil || !more {
			return err
		}
		var res struct {
			NextCursor string `json:"nextCursor"`
		}
		if err := json.Unmarshal(page.Result, &res); err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		cursor = res.NextCursor
		if cursors[cursor] || len(cursor) > maxCursor { // a repeated cursor would go round for ever
			return nil
		}
		cursors[cursor] = true
	}
}
