package images

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// unreachable explains why there was no response. failed is the request, nil if the
// response broke off.
func (p place) unreachable(failed *url.Error, err error) error {
	if failed == nil {
		if errors.Is(err, errStalled) {
			return &RegistryError{p.name + " sent nothing for a minute", laterAdvice, true, err}
		}
		text := fmt.Sprintf("the connection to %s broke", p.name)
		if cause := networkCause(err); cause != brokeOff {
			text += " (" + cause + ")"
		}
		return &RegistryError{text, laterAdvice, true, err}
	}
	who, proxy := p.name, ""
	if u, parseErr := url.Parse(failed.URL); parseErr == nil {
		if u.Host != "" && u.Host != p.host { // of a blob, or of a token
			who = printable(u.Host, 200) + ", where " + p.name + " leads,"
		}
		if at, proxyErr := http.ProxyFromEnvironment(&http.Request{URL: u}); proxyErr == nil && at != nil {
			proxy = at.Host
		}
	}
	if text, advice := distrust(who, failed.Err); text != "" {
		return &RegistryError{text, advice, false, err}
	}
	if record := (tls.RecordHeaderError{}); errors.Is(failed.Err, http.ErrSchemeMismatch) || errors.As(failed.Err, &record) {
		return &RegistryError{who + " does not speak TLS", "if it speaks HTTP, and you trust the network: TOOLCELL_INSECURE_REGISTRIES=" + p.host, false, err}
	}
	cause := networkCause(failed.Err)
	dial := (*net.OpError)(nil)
	switch {
	case proxy != "" && errors.As(failed.Err, &dial) && dial.Op == "proxyconnect":
		return &RegistryError{fmt.Sprintf("cannot reach the proxy %s (%s), through which %s would be asked", proxy, cause, who), "check HTTPS_PROXY and NO_PROXY", true, err}
	case proxy != "":
		return &RegistryError{fmt.Sprintf("cannot reach %s through the proxy %s (%s)", who, proxy, cause), "check HTTPS_PROXY and NO_PROXY", true, err}
	}
	return &RegistryError{fmt.Sprintf("cannot reach %s (%s)", who, cause), networkAdvice, true, err}
}

// distrust explains an error of TLS that a retry does not cure; it returns "" for others.
func distrust(who string, err error) (text, advice string) {
	var (
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		name    x509.HostnameError
		noRoots x509.SystemRootsError
	)
	const ownCA = "if the registry has a certificate of your own, name its CA's file in TOOLCELL_REGISTRY_CA; if no registry works, install the package ca-certificates"
	switch {
	case errors.As(err, &unknown), errors.As(err, &noRoots):
		return "cannot trust " + who + ": an unknown authority has signed its certificate", ownCA
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "cannot trust " + who + ": its certificate has expired or is not valid yet", "check this machine's clock with: date"
	case errors.As(err, &name):
		return "cannot trust " + who + ": its certificate is for another name", ownCA
	case errors.As(err, &invalid):
		return "cannot trust " + who + ": its certificate is not valid", ownCA
	}
	return "", ""
}

const brokeOff = "the connection broke"

// networkCause explains briefly why a connection failed.
func networkCause(err error) string {
	var (
		dns     *net.DNSError
		errno   syscall.Errno
		alert   tls.AlertError
		timeout net.Error
		quiet   *silenceError
	)
	switch {
	case errors.As(err, &quiet):
		return "no answer within " + quiet.after.String()
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.As(err, &dns):
		return "its name cannot be looked up: " + printable(dns.Err, 100)
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &alert), strings.Contains(err.Error(), "tls: "):
		return "no TLS connection: " + printable(strings.TrimPrefix(innermost(err).Error(), "tls: "), 200)
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return brokeOff
	}
	return printable(innermost(err).Error(), 200)
}

// innermost returns the error that has no further cause: of several, that of the last.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			next = several.Unwrap()[len(several.Unwrap())-1]
		}
		if next == nil {
			return err
		}
		err = next
	}
}
