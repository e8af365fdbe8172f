package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

// openStream sends the GET of an SSE server, or one that resumes an answer that was
// cut off.
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
	resp.Body = newEvents(req.Context(), r, resp.Body, cancel, c)
	return resp, nil
}

// checkResponse returns an answer that the SDK can read, or an error.
func (r *Link) checkResponse(ctx context.Context, resp *http.Response, cancel context.CancelFunc, asked outgoingBody, c *message.Call) (_ *http.Response, err error) {
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
	if !asked.isCall() || r.transport == config.SSE { // nothing is to be read but that it came
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody))
		resp.Body.Close()
		resp.Body = http.NoBody
		return resp, nil
	}
	switch mediaType(resp) {
	case eventStream:
		done = nil
		stream := newEvents(ctx, r, resp.Body, cancel, c)
		stream.asked = asked
		resp.Body = stream
		return resp, nil
	case "application/json":
		answer, err := r.readAnswer(ctx, resp.Body, cancel, asked, c)
		if err != nil {
			return nil, err
		}
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(answer)), int64(len(answer))
		return resp, nil
	}
	return nil, r.notMCP(resp)
}

// readAnswer reads a body that is one answer, and checks that it is. cancel ends the
// request.
func (r *Link) readAnswer(ctx context.Context, body io.Reader, cancel func(), asked outgoingBody, c *message.Call) ([]byte, error) {
	late := make(chan error, 1)
	raw := message.Buffer{Limit: r.limit, End: func(err error) { late <- err; cancel() }}
	defer func() { raw.Release() }()
	err := raw.ReadAll(ctx, body)
	select {
	case err = <-late:
	default:
	}
	var long *message.TooLongError
	switch {
	case errors.As(err, &long):
		return nil, &Error{Lost: true, text: "the server " + err.Error()}
	case err != nil:
		return nil, &Error{Lost: true, text: "its answer broke off: " + PlainText(err)}
	}
	release, err := memory.Take(ctx, len(raw.Text), memory.Message)
	if err != nil {
		return nil, err
	}
	defer release()
	e := events{ctx: ctx, r: r, call: c, asked: asked}
	for _, one := range message.Batch(ctx, raw.Text) {
		if answer, isAnswer, err := e.take(one); err != nil || isAnswer {
			return answer, err
		}
	}
	return nil, &Error{Lost: true, text: "the server took the request but gave no answer to it"}
}

// undecoded takes a body that is not a message with our ID. It returns the answer that the
// body stands for, or an error.
func (o outgoingBody) undecoded(raw []byte, why error) (jsonrpc.Message, error) {
	var stray *message.StrayError
	var said *jsonrpc.Error
	if errors.As(why, &stray) && (stray.ID == "" || stray.ID == "null") && errors.As(stray.Err, &said) {
		id, _ := wire.OurID(o.ID)
		return &jsonrpc.Response{ID: id, Error: said}, nil // it could not read the request
	}
	var unknown *message.UnknownIDError
	var useless *message.UnreadableError
	if stray != nil || errors.As(why, &unknown) || errors.As(why, &useless) {
		return nil, &Error{Lost: true, text: why.Error()}
	}
	return nil, &Error{Lost: true, text: "the server's answer is not JSON-RPC: " + why.Error() + said200(raw, why)}
}

// said200 quotes a body that is not even JSON, such as a page for people.
func said200(raw []byte, why error) string {
	if _, ok := errors.AsType[*wire.Unreadable](why); ok && len(raw) > 0 && raw[0] == '{' {
		return "" // it has the piece that is wrong
	}
	said := text.Excerpt(raw)
	if said == "" {
		return ""
	}
	return ": " + said
}

// answeredBy checks that an answer is to this request.
func (o outgoingBody) answeredBy(answer *jsonrpc.Response, c *message.Call) error {
	id, known := wire.OurID(o.ID)
	if c != nil && c.HasID(answer.ID) || known && answer.ID == id || c == nil && !known {
		return nil
	}
	return &Error{Lost: true, text: fmt.Sprintf("the server answered another request (its id is %v)", answer.ID.Raw())}
}
