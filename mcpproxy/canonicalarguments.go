package mcpproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/rawjson"
)

// CanonicalArguments returns the canonical form of the arguments of a call. It is decided
// on, shown to the user, and sent: a check would be worthless if the server read the
// arguments differently. Without arguments it is the empty object. It returns an error if
// args are not a JSON object or cannot be sent, or if ctx ends while it waits for room.
func CanonicalArguments(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	args = bytes.TrimSpace(args)
	if len(args) == 0 || rawjson.IsNull(args) {
		return json.RawMessage("{}"), nil
	}
	if args[0] != '{' {
		return nil, errNoObject
	}
	args, err := memory.Decode(ctx, "reading the arguments of a call", len(args), memory.Arguments, func() (json.RawMessage, error) { return rawjson.Canonical(args) })
	switch {
	case errors.Is(err, rawjson.ErrNotJSON):
		return nil, errNoObject
	case err != nil:
		return nil, fmt.Errorf("the arguments cannot be sent: %w", err)
	}
	return args, nil
}

var errNoObject = errors.New("the arguments are not a JSON object")
