package message

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	var shapes []boundtest.Shape
	for _, one := range []struct {
		before, after string
		shapes        []string
	}{
		{`{"jsonrpc":"2.0","id":1,"result":`, "}", []string{"deep lists", "open objects", "many small objects"}},
		{`{"jsonrpc":"2.0","id":1,"error":`, "}", []string{"twins", "escapes"}},
		{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"message":`, "}}", []string{"escapes"}},
		{`{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":`, "}}", []string{"escapes"}},
	} {
		for _, s := range boundtest.Pick(boundtest.JSON(one.before, one.after), one.shapes...) {
			shapes = append(shapes, boundtest.Shape{Name: s.Name + " in " + one.before[16:min(len(one.before), 60)], Make: s.Make})
		}
	}
	shapes = append(shapes,
		boundtest.Counted("inputs", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{`, `"k%d":{"method":"m"}`, ",", "}}}"),
		boundtest.Repeated("damaged IDs", "{", `"id":1,`, ""),
		boundtest.Repeated("names before blanks", "{", `"a"      `, ""),
		boundtest.Repeated("damaged messages", "[", `{"id":1,"result":NaN},`, ""),
	)
	boundtest.Run(t, boundtest.Parser{Row: "message of a server", Shapes: shapes, ParseContext: func(ctx context.Context, text []byte) (err error) {
		n := NewNotifications(func() {})
		_, stop := n.Listen(func(float64, float64, string) {})
		defer stop()
		id, _ := jsonrpc.MakeID(float64(1))
		for _, raw := range Batch(ctx, text) {
			calls := Calls{waiting: map[jsonrpc.ID]waiter{id: {method: MethodInitialize}}}
			var reply Reply
			if msg, failed := n.Decode(ctx, raw, nil); failed != nil {
				err = failed
				calls.unreadable(ctx, raw, err)
			} else if answer, ok := msg.(*jsonrpc.Response); ok && answer.Error == nil {
				if reply, err = ReplyOf(ctx, answer.Result); err != nil {
					return err
				}
			}
			if reply.NeedsInput() {
				_, err = reply.InputRequired()
			}
			calls.Keep(id, reply)
		}
		return err
	}})
}
