//nolint:bodyclose // no connection is behind the answers of this file
package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// answerBody is the body of an answer. It panics when its end is read over and over.
type answerBody struct {
	io.Reader
	closed atomic.Bool
	ends   int
}

func (b *answerBody) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, errors.New("read after Close")
	}
	n, err := b.Reader.Read(p)
	if err != nil {
		b.ends++
	}
	if b.ends > 100 {
		panic("the end was read over and over")
	}
	return n, err
}

func (b *answerBody) Close() error {
	b.closed.Store(true)
	return nil
}

func answerOf(status int, kind string, body io.Reader) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: &answerBody{Reader: body}}
	if kind != "" {
		resp.Header.Set("Content-Type", kind)
	}
	return resp
}

type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(req *http.Request) (*http.Response, error) { return a(req) }

// answerWith puts a function in place of the network.
func answerWith(t *testing.T, r *Link, server answers) {
	network := r.client
	r.client = server
	t.Cleanup(func() { r.Stop(); r.work.Wait(); r.client = network })
}

func TestAnswersAreCheckedBeforeTheSDKGetsThem(t *testing.T) {
	const (
		asJSON = "application/json"
		answer = `{"jsonrpc":"2.0","id":1,"result":{}}`
		other  = `{"jsonrpc":"2.0","id":2,"result":{}}`
		known  = "the server answered another request (its id is 2)"
	)
	ping := outgoingBody{Method: "ping", ID: []byte("1")}
	for name, tt := range map[string]struct {
		transport config.Transport
		asked     outgoingBody
		status    int
		kind      string
		body      io.Reader
		want      string
		wantErr   string // in place of want, with the address left out
	}{
		"JSON":                    {config.HTTP, ping, 200, asJSON, strings.NewReader(answer), answer, ""},
		"JSON of a batch":         {config.HTTP, ping, 200, asJSON, strings.NewReader("[" + `{"jsonrpc":"2.0","method":"notifications/message"},` + answer + "]"), answer, ""},
		"events":                  {config.HTTP, ping, 200, eventStream, strings.NewReader(": x\ndata: " + answer + "\n\n"), "data: " + answer + "\n\n", ""},
		"a notification is taken": {config.HTTP, outgoingBody{Method: "notifications/cancelled"}, 202, "", strings.NewReader("Accepted"), "", ""},
		"SSE takes a request":     {config.SSE, ping, 202, "text/plain", strings.NewReader("Accepted"), "", ""},
		"a refusal":               {config.HTTP, ping, 500, asJSON, strings.NewReader(answer), "", "failed (500 Internal Server Error): " + answer},
		"another refusal":         {config.HTTP, ping, 300, asJSON, strings.NewReader(answer), "", "failed (300 Multiple Choices): " + answer},
		"a page":                  {config.HTTP, ping, 200, "text/html", strings.NewReader("<title>Hello</title>"), "", "answered with text/html instead of MCP: Hello"},
		"another answer, JSON":    {config.HTTP, ping, 200, asJSON, strings.NewReader(other), "", known},
		"another answer, events":  {config.HTTP, ping, 200, eventStream, strings.NewReader("data: " + other + "\n\n"), "", known},
		"no answer":               {config.HTTP, ping, 200, asJSON, strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/message"}`), "", "the server took the request but gave no answer to it"},
		"too long":                {config.HTTP, ping, 200, asJSON, strings.NewReader(answer + strings.Repeat(" ", 1<<20)), "", "the server sent a message longer than 1 MiB"},
		"broken off":              {config.HTTP, ping, 200, asJSON, io.MultiReader(strings.NewReader(answer), iotest.ErrReader(io.ErrUnexpectedEOF)), "", "its answer broke off: unexpected EOF"},
		"an error for no request": {config.HTTP, ping, 200, asJSON, strings.NewReader(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"parse error"}}`, ""},
		"a result for no request": {config.HTTP, ping, 200, asJSON, strings.NewReader(`{"jsonrpc":"2.0","id":null,"result":{}}`), "", "the server's answer cannot be read: it has the id null, and no request does"},
		"an error for a stranger": {config.HTTP, ping, 200, asJSON, strings.NewReader(`{"jsonrpc":"2.0","id":1.5,"error":{"code":1,"message":"busy"}}`), "", "busy"},
		"a text as ID":            {config.HTTP, ping, 200, asJSON, strings.NewReader(`{"jsonrpc":"2.0","id":"x","result":{}}`), "", `the server's answer cannot be read: it has the id "x", and no request does`},
		"another version":         {config.HTTP, ping, 200, asJSON, strings.NewReader(`{"jsonrpc":"1.0","id":1,"result":{}}`), "", `the server's answer cannot be read: it has no "jsonrpc": "2.0"`},
		"a page as JSON":          {config.HTTP, ping, 200, asJSON, strings.NewReader("<title>Hello</title>"), "", `the server's answer is not JSON-RPC: it is not JSON from byte 0 on: "<title>Hello</title>": Hello`},
		"broken JSON":             {config.HTTP, ping, 200, asJSON, strings.NewReader(`{"jsonrpc":x}`), "", `the server's answer is not JSON-RPC: it is not JSON from byte 11 on: "{\"jsonrpc\":x}"`},
		"nothing":                 {config.HTTP, ping, 200, asJSON, strings.NewReader(""), "", "the server's answer is not JSON-RPC: it is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			r := linkTo(t, "https://mcp.example", nil)
			r.transport = tt.transport
			cancelled := false
			resp := answerOf(tt.status, tt.kind, tt.body)
			was := resp.Body.(*answerBody)
			got := ""
			resp, err := r.checkResponse(t.Context(), resp, func() { cancelled = true }, tt.asked, nil)
			if err == nil {
				if tt.kind == asJSON && resp.ContentLength != int64(len(tt.want)) {
					t.Errorf("the length is %d", resp.ContentLength)
				}
				if tt.kind == eventStream && cancelled {
					t.Error("the request ended before its events were read")
				}
				var read []byte
				read, err = io.ReadAll(resp.Body)
				got = string(read)
				resp.Body.Close()
			}
			said := ""
			if err != nil {
				said = strings.TrimPrefix(err.Error(), "the server at https://mcp.example ")
			}
			if got != tt.want || said != tt.wantErr {
				t.Errorf("got %q, %q; want %q, %q", got, said, tt.want, tt.wantErr)
			}
			if !cancelled || was.ends == 0 && !was.closed.Load() {
				t.Errorf("the request ended: %v; its body was read to the end %d times, and closed: %v", cancelled, was.ends, was.closed.Load())
			}
			if tt.wantErr != "" && tt.kind == asJSON && tt.status == 200 {
				if failed, ok := errors.AsType[*Error](err); !ok || !failed.Lost {
					t.Errorf("the request counts as without effect: %#v", err)
				}
			}
		})
	}
}

// TestConfirmationsAreReadAndClosed: else their connections could not be used again.
func TestConfirmationsAreReadAndClosed(t *testing.T) {
	for size, left := range map[int]int{100: 0, 2 * maxErrorBody: maxErrorBody} {
		text := strings.NewReader(strings.Repeat("x", size))
		resp := answerOf(http.StatusAccepted, "", text)
		was := resp.Body.(*answerBody)
		if _, err := linkTo(t, "https://mcp.example", nil).checkResponse(t.Context(), resp, func() {}, outgoingBody{Method: "notifications/cancelled"}, nil); err != nil || text.Len() != left || !was.closed.Load() {
			t.Errorf("%d bytes: %d left, closed: %v, %v", size, text.Len(), was.closed.Load(), err)
		}
	}
}

func TestFailedAnswersAreClosed(t *testing.T) {
	resp := answerOf(http.StatusOK, "text/html", strings.NewReader("x"))
	was, cancelled := resp.Body.(*answerBody), false
	_, err := linkTo(t, "https://mcp.example", nil).checkResponse(t.Context(), resp, func() { cancelled = true }, outgoingBody{Method: "ping", ID: []byte("1")}, nil)
	if err == nil || !was.closed.Load() || !cancelled {
		t.Errorf("%v; closed: %v, cancelled: %v", err, was.closed.Load(), cancelled)
	}
}

func TestSessionThatTheServerForgotIsExpired(t *testing.T) {
	for name, tt := range map[string]struct {
		status  int
		session string
		body    string
		want    string // the error of a session that goes on
	}{
		"the specification's way":   {404, "s", "", ""},
		"a bad session":             {400, "s", "Unknown Session", ""},
		"a gone session":            {410, "s", "session closed", ""},
		"a bad request":             {400, "s", "no such method", "failed (400 Bad Request): no such method"},
		"a server with no sessions": {404, "", "", "has no MCP server of this kind at the address in test.json (404 Not Found)"},
	} {
		t.Run(name, func(t *testing.T) {
			r := linkTo(t, "https://mcp.example", nil)
			resp := answerOf(tt.status, "", strings.NewReader(tt.body))
			resp.Request = &http.Request{Header: http.Header{}}
			if tt.session != "" {
				resp.Request.Header.Set(sessionIDKey, tt.session)
			}
			var c message.Call
			got, err := r.checkResponse(t.Context(), resp, func() {}, outgoingBody{Method: "ping", ID: []byte("1")}, &c)
			if tt.want != "" {
				mcptest.WantError(t, err, tt.want)
				if r.Expired() || c.Failure() != nil {
					t.Errorf("expired: %v, and the call fails: %v", r.Expired(), c.Failure())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.StatusCode != http.StatusNotFound || got.Body != http.NoBody || !r.Expired() {
				t.Errorf("the SDK gets %d; expired: %v", got.StatusCode, r.Expired())
			}
			failed, ok := errors.AsType[*Error](c.Failure())
			if !ok || !failed.Expired || !failed.Lost || !strings.Contains(failed.text, "the next call begins a new one") {
				t.Errorf("the call fails with %#v", c.Failure())
			}
		})
	}
	// A request of the SDK's own is no call.
	resp := answerOf(http.StatusNotFound, "", strings.NewReader(""))
	resp.Request = &http.Request{Header: http.Header{sessionIDKey: {"s"}}}
	r := linkTo(t, "https://mcp.example", nil)
	if _, err := r.checkResponse(t.Context(), resp, func() {}, outgoingBody{}, nil); err != nil || !r.Expired() {
		t.Errorf("expired: %v, %v", r.Expired(), err)
	}
}

func TestLargeAnswerGivesItsRoomBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cancelled := false
		_, err := linkTo(t, "https://mcp.example", nil).readAnswer(t.Context(),
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"result":{"text":"`+strings.Repeat("x", 300<<10)+`"}}`),
			func() { cancelled = true }, outgoingBody{Method: "ping", ID: []byte("1")}, nil)
		time.Sleep(time.Hour)
		if synctest.Wait(); err != nil || cancelled {
			t.Errorf("%v; ended for being late: %v", err, cancelled)
		}
	})
}

func TestAnswerIsNotReadAfterItsRequestEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := linkTo(t, "https://mcp.example", nil).readAnswer(ctx, strings.NewReader("{}"), func() {}, outgoingBody{Method: "ping", ID: []byte("1")}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestStreamOfAnSSEServerIsChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		status     int
		kind, body string
		fails      error
		want       string
		wantErr    string
	}{
		"events":  {200, eventStream + "; charset=utf-8", ": hello\nevent: endpoint\ndata: /m\n\n", nil, "event: endpoint\ndata: /m\n\n", ""},
		"refused": {403, eventStream, "no", nil, "", "does not allow this (403 Forbidden): no"},
		"a page":  {200, "text/html", "<title>Hello</title>", nil, "", "answered with text/html instead of MCP: Hello"},
		"nothing": {0, "", "", syscall.ECONNREFUSED, "", "nothing listens there"},
	} {
		t.Run(name, func(t *testing.T) {
			r := linkTo(t, "https://mcp.example", nil)
			r.transport = config.SSE
			answerWith(t, r, func(*http.Request) (*http.Response, error) {
				if tt.fails != nil {
					return nil, tt.fails
				}
				return answerOf(tt.status, tt.kind, strings.NewReader(tt.body)), nil
			})
			req, err := r.newRequest(t.Context(), http.MethodGet, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := r.openStream(req, nil)
			if r.answered.Load() == (tt.fails != nil) {
				t.Errorf("counts as answered: %v", r.answered.Load())
			}
			if tt.wantErr != "" {
				mcptest.WantError(t, err, tt.wantErr)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if got, _ := io.ReadAll(resp.Body); string(got) != tt.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	const at = "the server at https://mcp.example "
	for name, tt := range map[string]struct {
		status  int
		login   bool
		machine bool
		after   string
		body    string
		want    string
		mark    string // what is set of the error
	}{
		"a key":              {401, false, false, "", "bad key", at + "does not accept the Authorization header of the entry in test.json (401 Unauthorized): bad key", ""},
		"a user":             {401, true, false, "", "log in", "the server needs a login; in a terminal: toolcell servers login fake", "curable"},
		"a machine":          {401, true, true, "", "", at + "does not accept the token that the client of the entry in test.json got (401 Unauthorized)", ""},
		"not allowed":        {403, true, false, "", "no", at + "does not allow this (403 Forbidden): no", ""},
		"too many":           {429, false, false, "", "", at + "takes no more requests for now (429 Too Many Requests)", ""},
		"too many, and when": {429, false, false, "5\x1b", "slow", at + "takes no more requests for now (429 Too Many Requests, try again after 5 s): slow", ""},
		"a JSON-RPC error":   {400, false, false, "", `{"id":null,"error":{"code":-32600,"message":"bad\u001b"}}`, at + "refused (400 Bad Request): bad", "sse -32600"},
		"no reason":          {400, false, false, "", `{"error":{"code":1}}`, at + `failed (400 Bad Request): {"error":{"code":1}}`, "sse"},
		"not there":          {404, false, false, "", "", at + "has no MCP server of this kind at the address in test.json (404 Not Found)", "sse"},
		"not implemented":    {501, false, false, "", "", at + "failed (501 Not Implemented)", "sse"},
		"a broken server":    {500, false, false, "", "oops", at + "failed (500 Internal Server Error): oops", ""},
		"no gateway":         {502, false, false, "", "oops", at + "gave no answer (502 Bad Gateway): oops", "lost"},
		"plain HTTP":         {400, false, false, "", "Client sent an HTTP request to an HTTPS server.\n", at + "wants https: write https:// in test.json: Client sent an HTTP request to an HTTPS server.", "sse"},
		"an odd status":      {599, false, false, "", "", at + "failed (599)", ""},
	} {
		e := endpoint{config.Server{Name: "fake", Source: "test.json", OAuth: &config.OAuth{Machine: tt.machine}}, &url.URL{Scheme: "https", Host: "mcp.example"}, tt.login}
		resp := answerOf(tt.status, "", strings.NewReader(tt.body))
		if tt.after != "" {
			resp.Header.Set("Retry-After", tt.after)
		}
		err := e.refused(resp)
		failed, ok := errors.AsType[*Error](err)
		if !ok {
			t.Errorf("%s: %#v", name, err)
			continue
		}
		var marks []string
		if failed.IsCurable() {
			marks = append(marks, "curable")
		}
		if failed.Lost {
			marks = append(marks, "lost")
		}
		if failed.SuggestsSSE() {
			marks = append(marks, "sse")
		}
		if said, ok := errors.AsType[*jsonrpc.Error](err); ok {
			marks = append(marks, fmt.Sprint(said.Code))
		}
		if mark := strings.Join(marks, " "); err.Error() != tt.want || mark != tt.mark {
			t.Errorf("%s: %q (%s)", name, err, mark)
		}
	}
	for _, oauth := range []*config.OAuth{nil, {}} {
		e := endpoint{config.Server{Name: "fake", OAuth: oauth}, &url.URL{}, true}
		mcptest.WantError(t, e.refused(answerOf(401, "", strings.NewReader(""))), "toolcell servers login fake")
	}
}

func TestAnswersThatAreNotMCPAreQuoted(t *testing.T) {
	e := linkTo(t, "https://mcp.example", nil)
	for name, tt := range map[string]struct{ kind, body, want string }{
		"nothing":         {"", "", "nothing instead of MCP"},
		"a text":          {"", "x", "something without a Content-Type instead of MCP: x"},
		"an empty page":   {"text/html; charset=utf-8", "", "text/html instead of MCP"},
		"a page":          {"text/html", "<title>Hello</title>", "text/html instead of MCP: Hello"},
		"an odd type":     {"Odd Thing", "", "odd thing instead of MCP"},
		"an evil type":    {"a\x1b[1m b", "", "a[1m b instead of MCP"},
		"an endless type": {strings.Repeat("x", 1000), "", strings.Repeat("x", 80) + " instead of MCP"},
	} {
		err := e.notMCP(answerOf(200, tt.kind, strings.NewReader(tt.body)))
		if failed, ok := errors.AsType[*Error](err); !ok || !failed.SuggestsSSE() || err.Error() != "the server at https://mcp.example answered with "+tt.want {
			t.Errorf("%s: %q, %+v", name, err, failed)
		}
	}
}

func TestReasonsThatDoNotEndAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, in := io.Pipe()
		go func() {
			defer contain.Recover("writing", nil)
			_, _ = io.WriteString(in, "overloaded")
		}()
		begun := time.Now()
		err := linkTo(t, "https://mcp.example", nil).refused(&http.Response{StatusCode: 503, Body: out})
		if mcptest.WantError(t, err, "failed (503 Service Unavailable): overloaded"); time.Since(begun) != errorBodyTime {
			t.Errorf("after %v", time.Since(begun))
		}
	})
}

func TestErrorsOfTLSAndNamesSayWhatToDo(t *testing.T) {
	e := linkTo(t, "https://mcp.example", nil)
	const reach = "cannot reach https://mcp.example: "
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"another name":          {x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"a.example"}}, Host: "mcp.example"}, reach + "its certificate is for another name (x509: certificate is valid for a.example, not mcp.example); correct the address in test.json"},
		"a useless certificate": {x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.NotAuthorizedToSign}, reach + "its certificate is not valid (x509: certificate is not authorized to sign other certificates); check the clock"},
		"another certificate":   {&tls.CertificateVerificationError{Err: errors.New("odd")}, reach + "its certificate is not valid (tls: failed to verify certificate: odd)"},
		"no TLS":                {tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, reach + "it does not speak TLS; if the server is one of plain HTTP, write http:// in test.json"},
		"a failed handshake":    {errors.New("remote error: tls: handshake failure"), reach + "remote error: tls: handshake failure"},
		"no way there":          {&net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}, reach + "dial tcp: no route to host"},
		"no way to the proxy":   {&net.OpError{Op: "proxyconnect", Net: "tcp", Err: syscall.EHOSTUNREACH}, reach + "proxyconnect tcp: no route to host"},
		"no name server":        {&net.DNSError{Err: "server misbehaving", Name: "mcp.example"}, reach + "lookup mcp.example: server misbehaving"},
	} {
		err := e.words(&url.Error{Op: "Post", URL: "https://mcp.example/s3cret", Err: tt.err})
		if failed, ok := errors.AsType[*Error](err); !ok || failed.Lost || !strings.HasPrefix(err.Error(), tt.want) || !errors.Is(err, tt.err) {
			t.Errorf("%s: %q, %+v", name, err, failed)
		}
	}
	read := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	if failed, ok := errors.AsType[*Error](e.words(read)); !ok || !failed.Lost || failed.text != "the connection to https://mcp.example broke off: read tcp: connection reset by peer" {
		t.Errorf("a connection that broke: %+v", failed)
	}
	for _, err := range []error{&Error{text: "x"}, &jsonrpc.Error{Message: "x"}, context.Canceled, context.DeadlineExceeded} {
		if got := e.words(err); got != err { //nolint:errorlint // the same one
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestStreamOfChangesIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := linkTo(t, "https://mcp.example", nil)
		var changed atomic.Int64
		r.notes.Changed = func() { changed.Add(1) }
		begun := time.Now()
		var asked []float64
		answerWith(t, r, func(req *http.Request) (*http.Response, error) {
			asked = append(asked, time.Since(begun).Seconds())
			select {
			case <-r.listening:
				if len(asked) == 1 {
					t.Error("the server counts as asked before it was")
				}
			default:
				if len(asked) > 1 {
					t.Error("the server does not count as asked")
				}
			}
			switch len(asked) {
			case 1:
				return nil, syscall.ECONNREFUSED
			case 2:
				return answerOf(503, "", strings.NewReader("")), nil
			case 3:
				return answerOf(429, "", strings.NewReader("")), nil
			case 9:
				time.Sleep(2 * time.Minute)
			case 10:
				return answerOf(405, "", strings.NewReader("")), nil
			}
			return answerOf(200, eventStream, strings.NewReader(": hello\n\n")), nil
		})
		req, err := r.newRequest(t.Context(), http.MethodGet, message.LegacyProtocol, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.listen(req)
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []float64{0, 1, 3, 7, 15, 31, 63, 123, 183, 304}
		if !slices.Equal(asked, want) || int(changed.Load()) != len(want)-1 {
			t.Errorf("asked after %v seconds, changed %d times", asked, changed.Load())
		}
		if r.down.Err() != nil {
			t.Errorf("the link ended: %v", context.Cause(r.down))
		}
	})
}

func TestServerWithoutStreamOfChangesIsAskedOnce(t *testing.T) {
	for name, resp := range map[string]*http.Response{
		"not allowed": answerOf(405, eventStream, strings.NewReader("")),
		"not there":   answerOf(404, "", strings.NewReader("")),
		"a page":      answerOf(200, "text/html", strings.NewReader("")),
	} {
		synctest.Test(t, func(t *testing.T) {
			r := linkTo(t, "https://mcp.example", nil)
			asked := 0
			answerWith(t, r, func(*http.Request) (*http.Response, error) { asked++; return resp, nil })
			req, err := r.newRequest(t.Context(), http.MethodGet, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.listen(req)
			time.Sleep(10 * time.Minute)
			if synctest.Wait(); asked != 1 || !resp.Body.(*answerBody).closed.Load() {
				t.Errorf("%s: asked %d times", name, asked)
			}
		})
	}
}

func TestMessagesOnTheStreamOfChangesAreHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := linkTo(t, "https://mcp.example", nil)
		changed := 0
		r.notes.Changed = func() { changed++ }
		var sent []string
		answerWith(t, r, func(req *http.Request) (*http.Response, error) {
			text, err := io.ReadAll(req.Body)
			if err != nil || !strings.Contains(string(text), methodListen) {
				sent = append(sent, string(text))
				return answerOf(202, "", strings.NewReader("")), err
			}
			out, in := io.Pipe()
			context.AfterFunc(req.Context(), func() { in.Close() })
			return answerOf(200, eventStream, io.MultiReader(strings.NewReader(
				`data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n\ndata: not JSON\n\n"+
					`data: [{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":"a","method":"roots/list"}]`+"\n\n"+
					`data: {"jsonrpc":"2.0","id":8,"result":{}}`+"\n\n"), out)), nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "https://mcp.example", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}`))
		quiet, err := r.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer quiet.Body.Close()
		cancel() // that of the SDK's request
		synctest.Wait()
		want := []string{`{"jsonrpc":"2.0","id":7,"result":{}}`, `{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"not offered by this client"}}`}
		if changed != 1 || !slices.Equal(sent, want) {
			t.Errorf("changed %d times, and sent %q", changed, sent)
		}
		r.Stop()
		if text, err := io.ReadAll(quiet.Body); err != nil || len(text) != 0 || quiet.StatusCode != http.StatusOK || mediaType(quiet) != eventStream {
			t.Errorf("the SDK got %d, %q, %v", quiet.StatusCode, text, err)
		}
	})
}

func TestMessagesOfALinkThatEndedAreNotRead(t *testing.T) {
	r := linkTo(t, "https://mcp.example", nil)
	r.Stop()
	var ev event
	ev.data.Text = []byte(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
	if asked, err := r.requestsIn(ev); len(asked) != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", asked, err)
	}
}

func TestLoginIsAskedForInEachWayThatServersKnow(t *testing.T) {
	older, newer, stream := "POST  ", "POST "+FirstWithHeaders+" "+message.MethodDiscover, "GET  "
	for name, tt := range map[string]struct {
		transport config.Transport
		statuses  []int
		asked     []string
		want      int
		wantErr   string
	}{
		"the older handshake": {config.HTTP, []int{401}, []string{older}, 401, ""},
		"the newer handshake": {config.HTTP, []int{400, 401}, []string{older, newer}, 401, ""},
		"a stream":            {config.HTTP, []int{400, 404, 401}, []string{older, newer, stream}, 401, ""},
		"an open server":      {config.HTTP, []int{200}, []string{older}, 200, ""},
		"SSE":                 {config.SSE, []int{401}, []string{stream}, 401, ""},
		"none of them":        {config.HTTP, []int{500, 404, 405}, []string{older, newer, stream}, 0, "failed (500 Internal Server Error): says 500"},
		"SSE, refused":        {config.SSE, []int{300}, []string{stream}, 0, "failed (300 Multiple Choices): says 300"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.Method+" "+r.Header.Get(versionKey)+" "+r.Header.Get("Mcp-Method"))
				if len(asked) > len(tt.statuses) {
					t.Errorf("asked %q", asked)
					return
				}
				status := tt.statuses[len(asked)-1]
				w.WriteHeader(status)
				fmt.Fprintf(w, "says %d", status)
			}))
			defer server.Close()
			resp, err := Challenge(t.Context(), config.Server{URL: server.URL, Transport: tt.transport})
			if !slices.Equal(asked, tt.asked) {
				t.Errorf("asked %q", asked)
			}
			if tt.wantErr != "" {
				mcptest.WantError(t, err, tt.wantErr)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if resp == nil {
				t.Fatal("there is neither an answer nor an error")
			}
			defer resp.Body.Close()
			if text, err := io.ReadAll(resp.Body); resp.StatusCode != tt.want || len(text) != 0 || err != nil {
				t.Errorf("got %d, %q, %v", resp.StatusCode, text, err)
			}
		})
	}
	for address, want := range map[string]string{gone: "nothing listens there", "file:///mcp": `"url" is not an http or https address`} {
		resp, err := Challenge(t.Context(), config.Server{URL: address})
		if err == nil {
			resp.Body.Close()
		}
		mcptest.WantError(t, err, want)
	}
}
