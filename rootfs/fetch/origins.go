package fetch

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/netguard"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// Origins are the hosts that may serve files: an index, and others that the user allows.
type Origins struct {
	index *url.URL
	hosts map[string]bool // HOST:PORT
	other string          // why another host may not

	authorization string // of the index; "" is none
}

// NewOrigins returns those of an index with an absolute URL, and the hosts that may serve
// files beside it, each HOST or HOST:PORT. Authorization is the header of that name for
// the index alone, or empty. Other is what an error says of another host, such as "which
// is not the index's host".
func NewOrigins(index string, hosts []string, authorization, other string) (Origins, error) {
	u, err := url.Parse(index)
	if err != nil || u.Hostname() == "" {
		return Origins{}, errors.New("the URL has no host, or cannot be read")
	}
	o := Origins{index: u, hosts: map[string]bool{HostPort(u): true}, other: other, authorization: authorization}
	for _, host := range hosts {
		o.hosts[HostPort(&url.URL{Scheme: "https", Host: host})] = true
	}
	return o, nil
}

// Hosts returns all hosts, each as HOST:PORT.
func (o Origins) Hosts() []string { return slices.Sorted(maps.Keys(o.hosts)) }

// Index returns the HOST:PORT of the index, and whether it has no TLS.
func (o Origins) Index() (at string, plain bool) { return HostPort(o.index), o.index.Scheme == "http" }

// authorize adds the index's credential to a request for it, and to no other.
func (o Origins) authorize(req *http.Request) {
	req.Header.Del("Authorization") // net/http keeps it in redirects to a subdomain
	if o.authorization != "" && req.URL.Scheme == o.index.Scheme && HostPort(req.URL) == HostPort(o.index) {
		req.Header.Set("Authorization", o.authorization)
	}
}

// HostPort returns the host and port of a URL.
func HostPort(u *url.URL) string {
	return net.JoinHostPort(strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), netguard.Port(u))
}

// Check refuses a URL that may not serve files. Plain HTTP is allowed only for an index
// that has no TLS itself.
func (o Origins) Check(u *url.URL) error {
	switch {
	case u == nil || u.Hostname() == "" || u.User != nil || u.Opaque != "":
		return errors.New("its address is not understood")
	case u.Scheme != "https" && (u.Scheme != "http" || o.index.Scheme != "http" || HostPort(u) != HostPort(o.index)):
		return fmt.Errorf("its address begins with %s, not with https", rootdir.Quote(u.Scheme+"://"))
	case !o.hosts[HostPort(u)]:
		return fmt.Errorf("it comes from %s, %s", rootdir.Quote(u.Host), o.other)
	}
	return nil
}
