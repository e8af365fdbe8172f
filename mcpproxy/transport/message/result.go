package message

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

// maxNesting is how deep values may nest, as in the SDK.
const maxNesting = 1000

// An answer is a message that has a result.
type answer struct {
	ID jsonrpc.ID
	Reply
}

// AnswerOf reads a plain answer with a result. It returns nil for any other message, and if
// ctx ends. The result is not copied.
func AnswerOf(ctx context.Context, raw []byte) *answer {
	s := rawjson.Scanner{Text: raw, Context: ctx}
	var a answer
	var version, number []byte
	count := 0
	for name := range s.Object {
		count++
		switch string(name) {
		case `"jsonrpc"`:
			version = s.Value()
		case `"id"`:
			number = s.Value()
		case `"result"`:
			a.Reply = readReply(&s)
		default:
			return nil
		}
	}
	if !s.AtEnd() || count != 3 || string(version) != `"2.0"` || a.Result == nil {
		return nil
	}
	var ok bool
	if a.ID, ok = wire.OurID(number); !ok {
		return nil
	}
	return &a
}

// ReplyOf reads a result that the SDK handed over. The error is that of ctx.
func ReplyOf(ctx context.Context, raw json.RawMessage) (Reply, error) {
	s := rawjson.Scanner{Text: raw, Context: ctx}
	r := readReply(&s)
	switch {
	case ctx.Err() != nil: // a half of it may look as if it were no error
		return Reply{}, context.Cause(ctx)
	case !s.OK():
		return Reply{Result: raw}, nil
	}
	return r, nil
}

// readReply reads past a result, which is an object. It notes if the result nests deeper than
// values may: in a list, only one of many items may do so.
func readReply(s *rawjson.Scanner) (r Reply) {
	s.SkipSpace()
	from, depth := s.Offset, s.Depth
	s.Depth = rawjson.AnyDepth
	for name, value := range s.Members {
		r.deep = r.deep || s.Nested > maxNesting-2
		switch string(name) {
		case `"isError"`:
			r.IsError = string(value) == "true"
		case `"resultType"`:
			r.asks = string(value) == `"input_required"`
		}
	}
	s.Depth = depth
	r.Result = s.Text[from:s.Offset:s.Offset]
	return r
}
