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

// AnswerOf reads a message that is an answer with a result, and nothing else:
// nil for others, as whatever is unusual about a message is the SDK's to judge, and if
// ctx ends. The result stays where it is.
func AnswerOf(ctx context.Context, raw []byte) *answer {
	s := rawjson.Scanner{Text: raw, Context: ctx}
	var a answer
	var version, number []byte
	count := 0
	ok := s.Object(func(name []byte) (ok bool) {
		count++
		switch string(name) {
		case `"jsonrpc"`:
			version, ok = s.Value(0)
		case `"id"`:
			number, ok = s.Value(0)
		case `"result"`:
			a.Reply, ok = readReply(&s)
		}
		return ok
	})
	s.SkipSpace()
	if !ok || s.Offset < len(raw) || count != 3 || string(version) != `"2.0"` || a.Result == nil {
		return nil
	}
	a.ID, ok = wire.OurID(number)
	if !ok {
		return nil
	}
	return &a
}

// ReplyOf reads a result that the SDK handed over. The error is that of ctx.
func ReplyOf(ctx context.Context, raw json.RawMessage) (Reply, error) {
	s := rawjson.Scanner{Text: raw, Context: ctx}
	r, ok := readReply(&s)
	switch {
	case ctx.Err() != nil: // a half of it may look as if it were no error
		return Reply{}, context.Cause(ctx)
	case !ok:
		return Reply{Result: raw}, nil
	}
	return r, nil
}

// readReply passes over a result, which is an object. One that nests deeper than values
// may is noted: a list can have it in one item of many.
func readReply(s *rawjson.Scanner) (r Reply, ok bool) {
	s.SkipSpace()
	from := s.Offset
	if r, ok = readMembers(s, maxNesting-2); !ok {
		s.Offset = from
		r, ok = readMembers(s, anyDepth)
		r.deep = true
	}
	r.Result = s.Text[from:s.Offset:s.Offset]
	return r, ok
}

// anyDepth is for members that nest as deep as they like.
const anyDepth = -1

func readMembers(s *rawjson.Scanner, depth int) (r Reply, ok bool) {
	ok = s.Object(func(name []byte) bool {
		var value []byte
		var ok bool
		if depth == anyDepth {
			value, ok = s.Any()
		} else {
			value, ok = s.Value(depth)
		}
		switch string(name) {
		case `"isError"`:
			r.IsError = string(value) == "true"
		case `"resultType"`:
			r.asks = string(value) == `"input_required"`
		}
		return ok
	})
	return r, ok
}
