package transport

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// eventConn is the SDK's connection to an SSE server, over which a message that
// is refused costs no more than its own call. The SDK would take the whole
// connection for broken.
type eventConn struct {
	mcp.Connection
	r *remote
}

func newEventConn(conn mcp.Connection, r *remote) *eventConn { return &eventConn{conn, r} }

// Read implements mcp.Connection.
func (c *eventConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if resp, ok := msg.(*jsonrpc.Response); ok && err == nil && resp.Error == nil {
		return c.r.calls.keep(resp.ID, replyOf(resp.Result)), nil
	}
	return msg, err
}

// Write implements mcp.Connection.
func (c *eventConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	c.r.calls.add(ctx, msg)
	err := c.Connection.Write(ctx, msg)
	if err == nil || c.r.ctx.Err() != nil {
		return err
	}
	if req, ok := msg.(*jsonrpc.Request); !ok || !req.IsCall() {
		return nil // a notification, which has no answer that could be missed
	}
	made := callOf(ctx)
	if made == nil || made.failure() == nil {
		return err
	}
	made.giveUp() // no answer will come
	return nil
}
