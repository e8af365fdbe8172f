package remote

import (
	"context"
	"net/http"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// Challenge asks a server without a token and returns what it says; the body
// is gone. An error is in its place where that is neither an answer nor the
// wish for a login.
func Challenge(ctx context.Context, s config.Server) (*http.Response, error) {
	methods := []string{http.MethodPost, http.MethodGet}
	if s.Transport == config.SSE {
		methods = methods[1:]
	}
	r, err := New(s, config.HTTP, message.NewNotifications(func() {}), nil, maxErrorBody)
	if err != nil {
		return nil, err
	}
	defer r.WaitClosed()
	defer r.Stop()
	var failure error
	for _, method := range methods {
		req, err := http.NewRequestWithContext(ctx, method, s.URL, nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", "application/json, "+eventStream)
		if method == http.MethodPost {
			req.Header.Set("Content-Type", "application/json")
			setBody(req, []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+message.LegacyProtocol+
				`","capabilities":{},"clientInfo":{"name":"toolcell","version":"1"}}}`))
		}
		resp, done, err := r.send(req)
		if err != nil {
			return nil, err
		}
		resp.Request = req
		switch {
		case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode < 300:
			resp.Body.Close()
			resp.Body = http.NoBody
			done()
			return resp, nil
		case failure == nil:
			failure = r.refused(resp)
		}
		resp.Body.Close()
		done()
	}
	return nil, failure
}
