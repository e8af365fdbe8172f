package remote

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/toolcell/toolcell/internal/netguard"
)

func isRedirect(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return resp.Header.Get("Location") != ""
	}
	return false
}

// follow returns the request that a redirect asks for. It must go to the same server, and
// with the same method and body.
func (e *endpoint) follow(req *http.Request, resp *http.Response) (*http.Request, error) {
	to, err := req.URL.Parse(resp.Header.Get("Location"))
	if err != nil {
		return nil, e.failure(resp.StatusCode, "redirects to what is no address")
	}
	if !sameServer(e.origin, to) {
		return nil, e.failure(resp.StatusCode, fmt.Sprintf(
			`redirects to another host, %s, where the headers of the entry are not sent; if that is its new address, write it as "url" into %s`, origin(to), e.server.Source))
	}
	if req.Method == http.MethodPost && resp.StatusCode < http.StatusTemporaryRedirect {
		return nil, e.failure(resp.StatusCode, fmt.Sprintf(
			`redirects to %s in a way that loses the message; write that address as "url" into %s`, origin(to)+to.EscapedPath(), e.server.Source))
	}
	next := req.Clone(req.Context())
	next.URL, next.Host = to, ""
	return next, nil
}

// sameServer reports whether an address is that of the entry, or the same with
// TLS.
func sameServer(entry, to *url.URL) bool {
	if !strings.EqualFold(entry.Hostname(), to.Hostname()) {
		return false
	}
	if entry.Scheme == to.Scheme {
		return netguard.Port(entry) == netguard.Port(to)
	}
	return entry.Scheme == "http" && to.Scheme == "https" && netguard.Port(entry) == "80" && netguard.Port(to) == "443"
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }
