package remote

import (
	"context"
	"net/http"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// question is a request to which a server may answer that it wants a login.
type question struct{ httpMethod, version, method, body string }

// questions are those of the older handshake, of the newer, and of SSE. Few servers know
// more than one.
var questions = []question{
	{http.MethodPost, "", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + message.LegacyProtocol +
		`","capabilities":{},"clientInfo":{"name":"toolcell","version":"1"}}}`},
	{http.MethodPost, FirstWithHeaders, message.MethodDiscover, `{"jsonrpc":"2.0","id":1,"method":"` + message.MethodDiscover +
		`","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + FirstWithHeaders +
		`","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"toolcell","version":"1"}}}}`},
	{http.MethodGet, "", "", ""},
}

// Challenge asks a server without a token and returns the response, without its body. It
// returns an error if the response is neither an answer nor a challenge to log in.
func Challenge(ctx context.Context, s config.Server) (*http.Response, error) {
	r, err := New(s, config.HTTP, message.NewNotifications(func() {}), nil, maxErrorBody)
	if err != nil {
		return nil, err
	}
	defer r.WaitClosed()
	defer r.Stop()
	var failure error
	for _, q := range questions {
		if s.Transport == config.SSE && q.httpMethod != http.MethodGet {
			continue
		}
		resp, done, err := ask(ctx, r, q)
		if err != nil {
			return nil, err
		}
		asked := resp.StatusCode == http.StatusUnauthorized || resp.StatusCode < 300
		if !asked && failure == nil {
			failure = r.refused(resp)
		}
		resp.Body.Close()
		done()
		if asked {
			resp.Body = http.NoBody
			return resp, nil
		}
	}
	return nil, failure
}

func ask(ctx context.Context, r *Link, q question) (_ *http.Response, done func(), err error) {
	req, err := r.newRequest(ctx, q.httpMethod, q.version, []byte(q.body))
	if err != nil {
		return nil, nil, err
	}
	if q.method != "" {
		req.Header.Set("Mcp-Method", q.method)
	}
	return r.send(req)
}
