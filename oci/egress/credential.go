package egress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// credentialsOf returns the credentials for a host.
func (b *Broker) credentialsOf(host string) (all []Credential) {
	for _, c := range b.o.Credentials {
		if c.Host == host {
			all = append(all, c)
		}
	}
	return all
}

// plainCredentials returns those that may be sent to a host without TLS.
func (b *Broker) plainCredentials(t target) []Credential {
	if !b.o.Rules.Inspected("http", t.host, t.port) {
		return nil
	}
	return slices.DeleteFunc(b.credentialsOf(t.host), func(c Credential) bool { return !c.Plain })
}

// checkCredentials refuses requests with more than one value for the header of a
// credential.
func checkCredentials(r *http.Request, credentials []Credential) error {
	for _, c := range credentials {
		if len(valuesOf(r.Header, c.Header)) > 1 {
			return fmt.Errorf("the header %s is there more than once; a credential takes its place", c.Header)
		}
	}
	return nil
}

// valuesOf returns the values of a header, under each of its names.
func valuesOf(h http.Header, name string) (all []string) {
	for other, values := range h {
		if sameHeader(other, name) {
			all = append(all, values...)
		}
	}
	return all
}

// sameHeader reports whether a server may treat two names as the same header.
func sameHeader(a, b string) bool { return gatewayName(a) == gatewayName(b) }

// gatewayName normalizes a header's name as gateways such as CGI do, which do not distinguish
// _ and - (RFC 3875, 4.1.18).
func gatewayName(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "-")) }

// addCredentials replaces what the code has sent with the credentials. It asks for an
// uncompressed response, since secrets cannot be found in a compressed one.
func addCredentials(h http.Header, credentials []Credential) {
	for _, c := range credentials {
		maps.DeleteFunc(h, func(name string, _ []string) bool { return sameHeader(name, c.Header) })
		h.Set(c.Header, c.Value)
		h.Set("Accept-Encoding", "identity")
	}
}

// errPartOfText refuses a part of a text: code could request a secret piece by piece.
var errPartOfText = errors.New("a part of a text (status 206) does not pass from a host with a credential; ask without the header Range")

// hideSecrets replaces credentials that a server sends back, in headers and texts. It is a
// best effort: a server can use other encodings than those of echoesOf.
func hideSecrets(resp *http.Response, credentials []Credential) error {
	echoes := echoesOf(credentials)
	if len(echoes) == 0 {
		return nil
	}
	if resp.StatusCode == http.StatusPartialContent && isText(resp.Header) {
		return errPartOfText
	}
	body := &hidingBody{ReadCloser: resp.Body, resp: resp, replacer: newReplacer(echoes), kept: len(echoes[0].text) - 1}
	hideInHeader(resp.Header, body.replacer)
	resp.Body = body
	if body.isBinary = !isText(resp.Header) || resp.ContentLength == 0; !body.isBinary {
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
	}
	return nil
}

func hideInHeader(h http.Header, replacer *strings.Replacer) {
	for _, values := range h {
		for i, v := range values {
			values[i] = replacer.Replace(v)
		}
	}
}

// isText reports whether a body may contain a secret as text.
func isText(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || kind == "" {
		return true // unknown
	}
	for _, word := range []string{"text/", "json", "xml", "javascript", "yaml", "x-www-form-urlencoded", "multipart/"} {
		if strings.Contains(kind, word) {
			return true
		}
	}
	return false
}

// A hidingBody replaces secrets in a text that is read, and in the trailers of any body, which
// are known once it is closed. It withholds as much of a line as could be the beginning of a
// secret, whether or not it is: code that makes a server echo guesses must not learn from the
// delay how much of a guess is right. No secret has a line break, so events of a stream arrive
// without delay.
type hidingBody struct {
	io.ReadCloser
	resp     *http.Response
	isBinary bool // it is not looked at
	replacer *strings.Replacer
	kept     int // bytes
	pending  []byte
	ready    []byte
	err      error
}

func (b *hidingBody) Close() error {
	err := b.ReadCloser.Close()
	hideInHeader(b.resp.Trailer, b.replacer)
	return err
}

func (b *hidingBody) Read(p []byte) (int, error) {
	if b.isBinary {
		return b.ReadCloser.Read(p)
	}
	for len(b.ready) == 0 && b.err == nil {
		chunk := make([]byte, 32<<10)
		var n int
		n, b.err = b.ReadCloser.Read(chunk)
		b.release(append(b.pending, chunk[:n]...))
	}
	if len(b.ready) == 0 {
		return 0, b.err
	}
	n := copy(p, b.ready)
	b.ready = b.ready[n:]
	return n, nil
}

// release makes available what can no longer be part of a secret.
func (b *hidingBody) release(data []byte) {
	replaced := []byte(b.replacer.Replace(string(data)))
	at := len(replaced)
	if b.err == nil {
		at = max(bytes.LastIndexAny(replaced, "\r\n")+1, len(replaced)-b.kept)
	}
	b.ready, b.pending = replaced[:at], bytes.Clone(replaced[at:])
}
