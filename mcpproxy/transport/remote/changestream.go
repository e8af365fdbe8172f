package remote

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

const (
	listenAgain    = time.Second
	listenAgainMax = time.Minute
)

// listen keeps a stream open over which the server may say that its tools
// changed, until the link ends or the server turns out to offer none. Proxies
// cut such streams when they are quiet. It is then opened again, and the tools count as
// changed, since a notification may have been missed.
func (r *Link) listen(req *http.Request) {
	r.work.Go(func() {
		defer contain.Recover("listening to a server", r.markDown)
		for pause := listenAgain; ; pause = min(2*pause, listenAgainMax) {
			begun := time.Now()
			if !r.readStream(req) {
				return
			}
			if time.Since(begun) > listenAgainMax {
				pause = listenAgain
			}
			select {
			case <-r.down.Done():
				return
			case <-r.ctx.Done():
				return
			case <-time.After(pause):
				r.notes.Changed()
			}
		}
	})
}

// readStream reads one stream to its end, and reports whether to open it again.
func (r *Link) readStream(req *http.Request) bool {
	resp, cancel, err := r.send(req)
	r.heard.Do(func() { close(r.listening) })
	if err != nil {
		return r.ctx.Err() == nil
	}
	defer cancel()
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500 {
		return true
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp) != eventStream {
		return false // it offers no such stream
	}
	stream := newEvents(r.ctx, r, resp.Body, cancel, nil)
	for {
		var asked []*jsonrpc.Request
		ev, err := stream.next()
		if err == nil {
			asked, err = r.requestsIn(ev)
		}
		for _, req := range asked { // when their room was given back
			r.answerPing(req)
		}
		if err != nil {
			return r.ctx.Err() == nil
		}
	}
}

// requestsIn reads the messages of one event, and returns the requests among them.
func (r *Link) requestsIn(ev event) (asked []*jsonrpc.Request, err error) {
	defer ev.data.Release()
	release, err := memory.Take(r.ctx, len(ev.data.Text), memory.Message)
	if err != nil {
		return nil, err
	}
	defer release()
	for _, raw := range message.Batch(r.ctx, ev.data.Text) {
		_ = contain.Call("taking in a message of a server", func() error {
			msg, err := r.notes.Decode(r.ctx, raw, nil)
			if req, ok := msg.(*jsonrpc.Request); ok && err == nil && req.IsCall() {
				asked = append(asked, req)
			}
			return err
		})
	}
	return asked, nil
}

// takeOverListen hands the SDK's subscription to changes to listen, and gives the SDK an
// empty stream.
func (r *Link) takeOverListen(req *http.Request) *http.Response {
	r.listen(req.WithContext(r.ctx))
	quiet, end := io.Pipe()
	context.AfterFunc(r.ctx, contain.Func("closing a stream", func() { end.Close() }))
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {eventStream}}, Body: quiet, ContentLength: -1, Request: req,
	}
}

// answerPing answers a request that came over the stream, which the SDK does not read: a
// ping, or a request that we do not offer.
func (r *Link) answerPing(asked *jsonrpc.Request) {
	answer := &jsonrpc.Response{ID: asked.ID, Result: json.RawMessage("{}")}
	if asked.Method != "ping" {
		answer = &jsonrpc.Response{ID: asked.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "not offered by this client"}}
	}
	_ = r.post(r.ctx, answer) // the next one will say that the server is gone
}
