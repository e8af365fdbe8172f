package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

const (
	methodListen = "subscriptions/listen"
	sessionIDKey = "Mcp-Session-Id"
	versionKey   = "Mcp-Protocol-Version"

	maxRedirects   = 5
	endSessionTime = time.Second // for the server to take that a session ends
	maxErrorBody   = 64 << 10
	errorBodyTime  = 5 * time.Second
)

// outgoingBody has the members of a message that RoundTrip needs.
type outgoingBody struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

func (o outgoingBody) isCall() bool { return len(o.ID) > 0 && o.Method != "" }

// RoundTrip implements http.RoundTripper: it sends one request of the SDK, with the headers
// of the entry, only to this server, and returns only valid answers.
func (r *Link) RoundTrip(req *http.Request) (*http.Response, error) {
	c := message.CallOf(req.Context())
	resp, err := r.roundTrip(req, c)
	if err == nil || c == nil {
		return resp, err
	}
	if failed, ok := errors.AsType[*Error](err); ok {
		c.Fail(failed)
	} else if panicked, ok := errors.AsType[*contain.PanicError](err); ok {
		c.Fail(panicked)
	}
	return nil, err
}

func (r *Link) roundTrip(req *http.Request, c *message.Call) (_ *http.Response, err error) {
	defer contain.Error("sending a request to a server", &err)
	if req.Method == http.MethodDelete {
		return r.endSession(req)
	}
	if req.Method == http.MethodGet {
		return r.openStream(req, c)
	}
	if version := req.Header.Get(versionKey); version != "" {
		r.version.Store(version)
	}
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	var msg outgoingBody
	if err := json.Unmarshal(body, &msg); err != nil {
		return nil, err
	}
	out := req.Clone(req.Context())
	if c != nil && c.MarkSent(msg.ID) {
		if err := parameterHeaders(req.Context(), out.Header, c); err != nil {
			return nil, err
		}
	} else {
		c = nil // such as the note that the call was cancelled
	}
	if msg.Method == "" { // an answer of the SDK's to what the server asked
		body = r.notes.Restore(body, msg.ID)
	}
	setBody(out, body)
	switch msg.Method {
	case methodListen:
		return r.takeOverListen(out), nil
	case message.MethodDiscover:
		r.asked.Store(true)
	}
	resp, cancel, err := r.send(out)
	if err != nil {
		r.noteDenied(msg.Method, err)
		return nil, err
	}
	r.answered.Store(true)
	if id := resp.Header.Get(sessionIDKey); id != "" {
		r.sessionID.Store(id)
	}
	if msg.Method == message.MethodDiscover && resp.StatusCode == http.StatusBadRequest {
		body := errorBody(resp)
		resp.Body.Close()
		cancel()
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return resp, nil // the SDK looks in it for the versions that the server has
	}
	answer, err := r.checkResponse(out.Context(), resp, cancel, msg, c)
	r.noteDenied(msg.Method, err)
	return answer, err
}

// noteDenied records that the server wants a login for server/discover.
func (r *Link) noteDenied(method string, err error) {
	var failed *Error
	if method == message.MethodDiscover && errors.As(err, &failed) && failed.login {
		r.denied.Store(failed)
	}
}

// newRequest returns a request of our own within the session: one with a body is a message,
// and one without asks for a stream. version is of the protocol, and may be empty.
func (r *Link) newRequest(ctx context.Context, method, version string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.server.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", eventStream)
	if len(body) > 0 {
		req.Header.Set("Accept", "application/json, "+eventStream)
		req.Header.Set("Content-Type", "application/json")
	}
	if version != "" {
		req.Header.Set(versionKey, version)
	}
	if id, _ := r.sessionID.Load().(string); id != "" {
		req.Header.Set(sessionIDKey, id)
	}
	return req, nil
}

// setBody gives a request a body that can be sent again.
func setBody(req *http.Request, body []byte) {
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
}

// send sends a request with headers and token, follows redirects within the server, and
// renews an expired token. The caller must call done after reading the body.
func (r *Link) send(req *http.Request) (_ *http.Response, done func(), err error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(r.ctx, contain.Func("ending a request", cancel))
	done = func() { stop(); cancel() }
	defer func() {
		if err != nil {
			stop()
			cancel()
		}
	}()
	rejected, told := "", false
	for redirects := 0; ; {
		out := req.Clone(ctx)
		if req.GetBody != nil {
			if out.Body, err = req.GetBody(); err != nil {
				return nil, nil, err
			}
		}
		r.setHeaders(out)
		token, err := r.authorize(out, rejected)
		if err != nil {
			return nil, nil, err
		}
		if !sameServer(r.origin, out.URL) {
			return nil, nil, r.failure(0, fmt.Sprintf("wants messages to be sent to another host, %s, which is refused", origin(out.URL)))
		}
		resp, err := r.client.RoundTrip(out)
		if err != nil && r.ctx.Err() != nil && req.Context().Err() == nil {
			return nil, nil, &Error{Lost: true, text: "the connection was closed"}
		}
		if err != nil {
			return nil, nil, r.words(err)
		}
		switch {
		case resp.StatusCode == http.StatusUnauthorized && rejected == "" && token != "":
			resp.Body.Close()
			rejected = token
		case r.tokens != nil && !told && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden):
			told = true // so that there is no circle of tokens and refusals
			again, err := r.tokens.Refused(ctx, cmp.Or(token, rejected), resp)
			if err != nil {
				resp.Body.Close()
				return nil, nil, &Error{status: resp.StatusCode, text: err.Error(), login: true}
			}
			if !again {
				return resp, done, nil
			}
			resp.Body.Close()
		case isRedirect(resp):
			resp.Body.Close()
			if req, err = r.follow(req, resp); err != nil {
				return nil, nil, err
			}
			if redirects++; redirects > maxRedirects {
				return nil, nil, r.failure(resp.StatusCode, "redirects in a circle")
			}
		default:
			return resp, done, nil
		}
	}
}

// authorize puts the token into a request, if the server wants a login, and returns it.
func (r *Link) authorize(req *http.Request, rejected string) (token string, err error) {
	if r.tokens == nil {
		return "", nil
	}
	if token, err = r.tokens.Token(req.Context(), rejected); err != nil {
		return "", &Error{text: err.Error(), login: true}
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return token, nil
}

// setHeaders adds the headers of the entry, except those that the protocol needs.
func (r *Link) setHeaders(req *http.Request) {
	for name, value := range r.server.Headers {
		switch key := http.CanonicalHeaderKey(strings.TrimSpace(name)); {
		case key == "Host":
			req.Host = value
		case key == "Content-Type", key == "Content-Length", key == "Accept", strings.HasPrefix(key, "Mcp-"):
		default:
			req.Header.Set(key, value)
		}
	}
	if user := r.origin.User; user != nil && req.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "toolcell")
	}
}

// endSession tells the server that the session ends. As this is only a courtesy, it waits
// for the answer no longer than a second.
func (r *Link) endSession(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), endSessionTime)
	defer cancel()
	out := req.Clone(ctx)
	r.setHeaders(out)
	_, _ = r.authorize(out, "") // without a token the server may not listen
	resp, err := r.client.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	resp.Body = http.NoBody
	return resp, nil
}
