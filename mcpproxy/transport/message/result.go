package message

import (
	"context"
	"encoding/json"

	"github.com/toolcell/toolcell/internal/rawjson"
)

// maxNesting is how deep values may nest, as in the SDK.
const maxNesting = 1000

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
