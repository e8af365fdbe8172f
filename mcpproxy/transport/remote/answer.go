package remote

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/text"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// openStream is the GET of an SSE server, or that which takes up an answer
// again that was cut off.
func (r *Link) openStream(req *http.Request, c *message.Call) (*http.Response, error) {
	resp, cancel, err := r.send(req)
	if err != nil {
		return nil, err
	}
	r.answered.Store(true)
	if resp.StatusCode != http.StatusOK {
		defer cancel()
		return nil, r.refused(resp)
	}
	if mediaType(resp) != eventStream {
		defer cancel()
		return nil, r.notMCP(resp)
	}
	resp.Body = newEvents(r, resp.Body, cancel, c)
	return resp, nil
}

// checkResponse lets an answer to a message through, or says what is wrong with it.
func (r *Link) checkResponse(resp *http.Response, cancel context.CancelFunc, isCall bool, c *message.Call) (_ *http.Response, err error) {
	done := cancel
	defer func() {
		if done != nil {
			resp.Body.Close()
			done()
		}
	}()
	if sessionGone(resp) {
		r.markDown(errExpired)
		if c != nil {
			c.Fail(&Error{Expired: true, Lost: true, text: errExpired.Error()})
		}
		resp.StatusCode, resp.Body = http.StatusNotFound, http.NoBody // the SDK knows what that means
		return resp, nil
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, r.refused(resp)
	}
	if !isCall || r.transport == config.SSE { // nothing is to be read but that it came
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody))
		resp.Body.Close()
		resp.Body = http.NoBody
		return resp, nil
	}
	switch mediaType(resp) {
	case eventStream:
		done = nil
		resp.Body = newEvents(r, resp.Body, cancel, c)
		return resp, nil
	case "application/json":
		answer, err := r.readAnswer(resp.Body, c)
		if err != nil {
			return nil, err
		}
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(answer)), int64(len(answer))
		return resp, nil
	}
	return nil, r.notMCP(resp)
}

// readAnswer reads a body that is one answer, and checks that it is.
func (r *Link) readAnswer(body io.Reader, c *message.Call) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(body, int64(r.limit)+1))
	if err != nil {
		return nil, &Error{Lost: true, text: "its answer broke off: " + PlainText(err)}
	}
	if len(raw) > r.limit {
		return nil, &Error{Lost: true, text: "the server " + (&message.TooLongError{Limit: r.limit}).Error()}
	}
	for _, one := range message.Batch(raw) {
		msg, err := r.notes.Decode(one, c)
		if err != nil {
			return nil, &Error{Lost: true, text: "the server's answer is not JSON-RPC: " + text.Excerpt(one)}
		}
		if _, ok := msg.(*jsonrpc.Response); ok {
			return passable(msg, one, c)
		}
	}
	return nil, &Error{Lost: true, text: "the server took the request but gave no answer to it"}
}
