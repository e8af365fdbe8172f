package packages

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// A hostError says why no answer came from a host, without the addresses, sockets and
// resolvers that Go's errors name.
type hostError struct {
	host, reason string
	err          error
}

func (e *hostError) Error() string { return fmt.Sprintf("cannot reach %s (%s)", e.host, e.reason) }
func (e *hostError) Unwrap() error { return e.err }

// explainRequest turns an error of net/http into a hostError. It keeps errors of check.
func explainRequest(err error) error {
	var failed *url.Error
	if !errors.As(err, &failed) {
		return err
	}
	reason := networkReason(failed.Err)
	u, parseErr := url.Parse(failed.URL)
	if reason == "" || parseErr != nil {
		return failed.Err
	}
	host := rootdir.Quote(u.Host)
	if proxy, proxyErr := http.ProxyFromEnvironment(&http.Request{URL: u}); proxyErr == nil && proxy != nil {
		host += " through the proxy " + rootdir.Quote(proxy.Host)
	}
	return &hostError{host, reason, err}
}

// networkReason says in a few words why a connection failed, "" if it was not the network.
func networkReason(err error) string {
	var (
		dns     *net.DNSError
		errno   syscall.Errno
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		name    x509.HostnameError
		timeout net.Error
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.As(err, &dns) && dns.IsTimeout:
		return "the name server does not answer"
	case errors.As(err, &dns):
		return "its name cannot be looked up: " + cut(dns.Err)
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &unknown):
		return "an unknown authority has signed its certificate"
	case errors.As(err, &invalid):
		return "its certificate is not valid"
	case errors.As(err, &name):
		return "its certificate is for another name"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer"
	}
	return ""
}
