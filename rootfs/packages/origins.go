package packages

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/toolcell/toolcell/internal/netguard"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// origins are the hosts that may serve files: the index and those that the policy adds.
type origins struct {
	index *url.URL
	hosts map[string]bool // host:port

	authorization string // of the index; "" is none
}

// origins returns those of a request.
func (r Request) origins() (origins, error) {
	u, err := url.Parse(r.Index)
	if err != nil || u.Hostname() == "" {
		return origins{}, fmt.Errorf("%s is not the address of a package index", rootdir.Quote(r.Index))
	}
	o := origins{index: u, hosts: map[string]bool{hostPort(u): true}}
	for _, host := range r.Files {
		o.hosts[hostPort(&url.URL{Scheme: "https", Host: host})] = true
	}
	if r.Credential != nil {
		o.authorization = r.Credential.Authorization
	}
	return o, nil
}

// authorize adds the index's credential to a request for it, and to no other.
func (o origins) authorize(req *http.Request) {
	req.Header.Del("Authorization") // net/http keeps it in redirects to a subdomain
	if o.authorization != "" && req.URL.Scheme == o.index.Scheme && hostPort(req.URL) == hostPort(o.index) {
		req.Header.Set("Authorization", o.authorization)
	}
}

// hostPort returns the host and port of a URL.
func hostPort(u *url.URL) string {
	return net.JoinHostPort(strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), netguard.Port(u))
}

// check refuses a URL that may not serve files. Plain HTTP is allowed only for an index
// that has no TLS itself.
func (o origins) check(u *url.URL) error {
	switch {
	case u == nil || u.Hostname() == "" || u.User != nil || u.Opaque != "":
		return errors.New("its address is not understood")
	case u.Scheme != "https" && (u.Scheme != "http" || o.index.Scheme != "http" || hostPort(u) != hostPort(o.index)):
		return fmt.Errorf("its address begins with %s, not with https", rootdir.Quote(u.Scheme+"://"))
	case !o.hosts[hostPort(u)]:
		return fmt.Errorf("it comes from %s, which is not the index's host; to allow it, add it to [packages] files", rootdir.Quote(u.Host))
	}
	return nil
}
