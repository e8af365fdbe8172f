package remote

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// respondWithin bounds sending an answer to a request of the server.
const respondWithin = 10 * time.Second

// respond answers a request of the server.
func (r *Link) respond(ctx context.Context, answer *jsonrpc.Response) error {
	if r.transport == config.SSE {
		if conn := r.events.Load(); conn != nil {
			return conn.Connection.Write(ctx, answer)
		}
		return errNoEndpoint
	}
	return r.post(ctx, answer)
}

var errNoEndpoint = errors.New("the server has not said yet where to send to")

// post sends an answer over streamable HTTP.
func (r *Link) post(ctx context.Context, answer *jsonrpc.Response) error {
	body, err := r.notes.Encode(answer)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, respondWithin)
	defer cancel()
	version, _ := r.version.Load().(string)
	req, err := r.newRequest(ctx, http.MethodPost, cmp.Or(version, message.LegacyProtocol), body)
	if err != nil {
		return err
	}
	resp, done, err := r.send(req)
	if err != nil {
		return err
	}
	defer done()
	resp.Body.Close()
	return nil
}
