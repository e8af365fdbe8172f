package remote

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/room"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

const (
	listenAgain    = time.Second
	listenAgainMax = time.Minute
)

// changeStream is the stream over which a server says that its tools changed.
type changeStream struct{ *Link }

// listen keeps a stream open over which the server may say that its tools
// changed, until the link ends or the server turns out to offer none. Proxies
// cut such streams when they are quiet, so it is opened again, and what was
// said in between is made up for by taking the tools for changed.
func (r changeStream) listen(request func() (*http.Request, error)) {
	for pause := listenAgain; ; pause = min(2*pause, listenAgainMax) {
		begun := time.Now()
		req, err := request()
		if err != nil || !r.readStream(req) {
			return
		}
		if time.Since(begun) > listenAgainMax {
			pause = listenAgain
		}
		timer := time.NewTimer(pause)
		select {
		case <-r.isDown:
			timer.Stop()
			return
		case <-r.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			r.notes.Changed()
		}
	}
}

// readStream reads one stream to its end, and reports whether to open it again.
func (r changeStream) readStream(req *http.Request) bool {
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
	stream := newEvents(r.ctx, r.Link, resp.Body, cancel, nil)
	for {
		ev, err := stream.next()
		if err == nil {
			err = r.takeIn(ev)
		}
		if err != nil {
			return r.ctx.Err() == nil
		}
	}
}

// takeIn takes in the messages of one event, and answers what the server asks when their
// room was given back. The error is that of the link.
func (r changeStream) takeIn(ev event) error {
	asked, err := r.requestsIn(ev)
	for _, req := range asked {
		r.answerPing(req)
	}
	return err
}

// requestsIn takes in the messages of one event, and returns the requests among them.
func (r changeStream) requestsIn(ev event) (asked []*jsonrpc.Request, err error) {
	defer ev.data.Release()
	release, err := room.Take(r.ctx, len(ev.data.Text), room.Message)
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

// standing makes the request for the stream of the protocol before 2026.
func (r changeStream) standing(version string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(r.ctx, http.MethodGet, r.server.URL, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", eventStream)
	r.mark(req, version)
	return req, nil
}

func (r *Link) mark(req *http.Request, version string) {
	if version != "" {
		req.Header.Set(versionKey, version)
	}
	if id, _ := r.sessionID.Load().(string); id != "" {
		req.Header.Set(sessionIDKey, id)
	}
}

// takeOverListen makes the SDK's subscription to changes one of listen's, and
// gives the SDK a stream on which nothing comes.
func (r changeStream) takeOverListen(req *http.Request, body []byte) (*http.Response, error) {
	header := req.Header.Clone()
	r.work.Go(func() {
		defer contain.Recover("listening to a server", r.markDown)
		r.listen(func() (*http.Request, error) {
			req, err := http.NewRequestWithContext(r.ctx, http.MethodPost, r.server.URL, nil)
			if err == nil {
				req.Header = header.Clone()
				setBody(req, body)
			}
			return req, err
		})
	})
	quiet, end := io.Pipe()
	context.AfterFunc(r.ctx, contain.Func("closing a stream", func() { end.Close() }))
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {eventStream}}, Body: quiet, ContentLength: -1, Request: req,
	}, nil
}

// answerPing answers a request that came over the stream, where the SDK does
// not listen: a ping, or what we do not offer.
func (r changeStream) answerPing(asked *jsonrpc.Request) {
	answer := &jsonrpc.Response{ID: asked.ID, Result: json.RawMessage("{}")}
	if asked.Method != "ping" {
		answer = &jsonrpc.Response{ID: asked.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "not offered by this client"}}
	}
	_ = r.post(r.ctx, answer) // the next one will say that the server is gone
}
