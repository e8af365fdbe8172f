package egress

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
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

// checkCredentials refuses requests in which a credential could be seen, or end up
// beside another one.
func checkCredentials(r *http.Request, credentials []Credential) error {
	for _, c := range credentials {
		if r.Method == http.MethodTrace {
			return fmt.Errorf("TRACE does not pass to a host with a credential: it shows what was sent") // RFC 9110, 9.3.8
		}
		if len(r.Header.Values(c.Header)) > 1 {
			return fmt.Errorf("the header %s is there more than once; a credential takes its place", c.Header)
		}
	}
	return nil
}

// addCredentials puts the credentials in place of what the code has sent. Secrets
// are found only in text that is not compressed.
func addCredentials(h http.Header, credentials []Credential) {
	for _, c := range credentials {
		h.Set(c.Header, c.Value)
		h.Set("Accept-Encoding", "identity")
	}
}

// hideSecrets replaces credentials that a server sends back, in headers and in texts.
// It is a best effort: a server can encode them in any way.
func hideSecrets(resp *http.Response, credentials []Credential) {
	var pairs, secrets []string
	for _, c := range credentials {
		for _, secret := range c.Secrets {
			pairs = append(pairs, secret, c.Placeholder)
		}
		secrets = append(secrets, c.Secrets...)
	}
	if pairs == nil {
		return
	}
	replacer := strings.NewReplacer(pairs...)
	for _, h := range []http.Header{resp.Header, resp.Trailer} {
		for _, values := range h {
			for i, v := range values {
				values[i] = replacer.Replace(v)
			}
		}
	}
	if isText(resp.Header) && resp.Body != nil && resp.Body != http.NoBody {
		resp.Body = &hidingBody{ReadCloser: resp.Body, replacer: replacer, secrets: secrets}
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
	}
}

// isText reports whether a body may show a secret as it is.
func isText(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || kind == "" {
		return true // nothing says what it is
	}
	for _, word := range []string{"text/", "json", "xml", "javascript", "yaml", "x-www-form-urlencoded", "multipart/"} {
		if strings.Contains(kind, word) {
			return true
		}
	}
	return false
}

// A hidingBody replaces secrets in what is read. It keeps back what may be the
// beginning of one, and nothing else: events of a stream come as they are sent.
type hidingBody struct {
	io.ReadCloser
	replacer *strings.Replacer
	secrets  []string
	pending  []byte // the beginning of a secret, perhaps
	ready    []byte
	err      error
}

func (b *hidingBody) Read(p []byte) (int, error) {
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

// release makes ready what can be no part of a secret any more.
func (b *hidingBody) release(data []byte) {
	replaced := []byte(b.replacer.Replace(string(data)))
	at := len(replaced)
	if b.err == nil {
		at -= b.begun(replaced)
	}
	b.ready, b.pending = replaced[:at], bytes.Clone(replaced[at:])
}

// begun returns how many bytes at the end of data begin a secret.
func (b *hidingBody) begun(data []byte) (n int) {
	for _, secret := range b.secrets {
		for size := min(len(secret)-1, len(data)); size > n; size-- {
			if string(data[len(data)-size:]) == secret[:size] {
				n = size
			}
		}
	}
	return n
}
