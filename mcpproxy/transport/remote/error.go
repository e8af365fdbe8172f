package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

const (
	eventStream = "text/event-stream"
	maxReason   = 200 // bytes of a text that a server gives as its reason
)

// Error describes a failed request to the user.
type Error struct {
	text    string
	status  int
	err     error // of the network
	Lost    bool  // the request may have taken effect
	login   bool  // the user has to log in
	curable bool  // the user may correct the address at any moment
	Expired bool  // the server ended the session
	notMCP  bool  // it answered, but not as this transport does
}

func (e *Error) Error() string { return e.text }
func (e *Error) Unwrap() error { return e.err }

// IsCurable reports whether the user can cure the error at any moment, and trying again
// costs nothing.
func (e *Error) IsCurable() bool { return e.curable || e.login }

// SuggestsSSE reports whether the server may be an SSE server.
func (e *Error) SuggestsSSE() bool {
	switch e.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return false
	}
	return e.notMCP || e.status >= 400 && e.status < 500 || e.status == http.StatusNotImplemented
}

// endpoint is the address of a server, for errors that name it.
type endpoint struct {
	server config.Server
	origin *url.URL
	login  bool // the user may log in; headers of the entry authorize otherwise
}

func (e *endpoint) failure(status int, text string) *Error {
	return &Error{status: status, text: fmt.Sprintf("the server at %s %s", origin(e.origin), text)}
}

// refused returns the error of a bad status. A JSON-RPC error in the body stays one.
func (e *endpoint) refused(resp *http.Response) error {
	body := errorBody(resp)
	status := strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	said := text.Excerpt(body)
	if said != "" {
		said = ": " + said
	}
	fail := func(format string, args ...any) error {
		return e.failure(resp.StatusCode, fmt.Sprintf(format, args...)+said)
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		if !e.login {
			return fail("does not accept the Authorization header of the entry in %s (%s)", e.server.Source, status)
		}
		if e.server.OAuth != nil && e.server.OAuth.Machine {
			return fail("does not accept the token that the client of the entry in %s got (%s)", e.server.Source, status)
		}
		return &Error{status: resp.StatusCode, login: true, text: LoginNeeded(e.server.Name)}
	case http.StatusForbidden:
		return fail("does not allow this (%s)", status)
	case http.StatusTooManyRequests:
		if after := text.Printable(resp.Header.Get("Retry-After"), 40); after != "" {
			return fail("takes no more requests for now (%s, try again after %s s)", status, after)
		}
		return fail("takes no more requests for now (%s)", status)
	}
	if wireErr := wireError(body); wireErr != nil {
		err := e.failure(resp.StatusCode, "refused ("+status+"): "+text.Printable(wireErr.Message, maxReason))
		err.err = wireErr
		return err
	}
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		return fail("has no MCP server of this kind at the address in %s (%s)", e.server.Source, status)
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		err := e.failure(resp.StatusCode, "gave no answer ("+status+")"+said)
		err.Lost = true
		return err
	}
	if bytes.Contains(body, []byte("HTTP request to an HTTPS server")) {
		return fail("wants https: write https:// in %s", e.server.Source)
	}
	return fail("failed (%s)", status)
}

// LoginNeeded returns the message for a server that needs a login.
func LoginNeeded(name string) string {
	return fmt.Sprintf("the server needs a login; in a terminal: toolcell servers login %s", text.ShellWord(name))
}

// notMCP returns the error of an answer that is not MCP, such as a web page.
func (e *endpoint) notMCP(resp *http.Response) error {
	kind, said := mediaType(resp), text.Excerpt(errorBody(resp))
	switch {
	case kind == "" && said == "":
		kind = "nothing"
	case kind == "":
		kind = "something without a Content-Type"
	}
	problem := fmt.Sprintf("answered with %s instead of MCP", text.Printable(kind, 80))
	if said != "" {
		problem += ": " + said
	}
	err := e.failure(resp.StatusCode, problem)
	err.notMCP = true
	return err
}

// sessionGone reports whether the server does not know our session any more.
// The specification's way to say so is 404; some say 400 and name the session.
func sessionGone(resp *http.Response) bool {
	if resp.Request == nil || resp.Request.Header.Get(sessionIDKey) == "" {
		return false
	}
	switch resp.StatusCode {
	case http.StatusNotFound:
		return true
	case http.StatusBadRequest, http.StatusGone:
		body := errorBody(resp)
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return bytes.Contains(bytes.ToLower(body), []byte("session"))
	}
	return false
}

// errorBody reads the beginning of a body, but not for long.
func errorBody(resp *http.Response) []byte {
	timer := time.AfterFunc(errorBodyTime, contain.Func("giving up on an answer", func() { resp.Body.Close() }))
	defer timer.Stop()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	return body
}

// wireError finds a JSON-RPC error in a body.
func wireError(body []byte) *jsonrpc.Error {
	var loose struct{ Error *jsonrpc.Error }
	if json.Unmarshal(body, &loose) == nil && loose.Error != nil && loose.Error.Message != "" {
		return loose.Error // whatever its id, or none
	}
	return nil
}

func mediaType(resp *http.Response) string {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return strings.TrimSpace(strings.ToLower(resp.Header.Get("Content-Type")))
	}
	return kind
}

// words describes a network error to the user, without the address, which may contain keys.
func (e *endpoint) words(err error) error {
	var failed *Error
	var ours *jsonrpc.Error
	if errors.As(err, &failed) || errors.As(err, &ours) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	at := origin(e.origin)
	reach := func(format string, args ...any) error {
		return &Error{err: err, text: fmt.Sprintf("cannot reach %s: ", at) + fmt.Sprintf(format, args...)}
	}
	var (
		unknown  x509.UnknownAuthorityError
		wrong    x509.HostnameError
		invalid  x509.CertificateInvalidError
		noTLS    tls.RecordHeaderError
		dns      *net.DNSError
		verify   *tls.CertificateVerificationError
		netError *net.OpError
	)
	switch {
	case errors.As(err, &unknown):
		return reach("its certificate is signed by an authority that this host does not trust (%s); if you trust it, name its authority's file in SSL_CERT_FILE", PlainText(err))
	case errors.As(err, &wrong):
		return reach("its certificate is for another name (%s); correct the address in %s", PlainText(err), e.server.Source)
	case errors.As(err, &invalid), errors.As(err, &verify):
		return reach("its certificate is not valid (%s); check the clock of this host, or tell who runs the server", PlainText(err))
	case errors.As(err, &noTLS), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return reach("it does not speak TLS; if the server is one of plain HTTP, write http:// in %s", e.server.Source)
	case errors.As(err, &dns) && dns.IsNotFound:
		return reach("there is no host of this name; correct the address in %s", e.server.Source)
	case errors.Is(err, syscall.ECONNREFUSED):
		return reach("nothing listens there (connection refused); start the server, or correct the address in %s", e.server.Source)
	case errors.As(err, &netError) && (netError.Op == "dial" || netError.Op == "proxyconnect"), errors.As(err, &dns):
		return reach("%s", PlainText(err))
	case strings.Contains(err.Error(), "tls:"):
		return reach("%s", PlainText(err))
	}
	return &Error{err: err, Lost: true, text: fmt.Sprintf("the connection to %s broke off: %s", at, PlainText(err))}
}

// PlainText returns the text of an error without the address that package http adds.
func PlainText(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return text.Printable(err.Error(), maxReason)
}
