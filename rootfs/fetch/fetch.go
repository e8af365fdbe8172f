// Package fetch downloads files from package indexes and registries.
//
// It promises that a file comes only from the hosts that its Origins name, also after
// redirects, that a credential goes to the index and to no other host, that a file
// has the digest and at most the size that the caller says, and that a server that sends
// nothing is given up. It limits neither the number of files nor their time.
package fetch

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/retry"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

const (
	maxTries     = 4
	maxWait      = 30 * time.Second // the longest wait that a server may ask for
	maxRedirects = 5
	maxHeader    = 64 << 10 // bytes of a response header
	maxReason    = 200      // bytes of a reason that is shown
)

// A Client fetches files. It is safe for concurrent use.
type Client struct {
	HTTP  *http.Client
	Stall time.Duration // after which a download that receives nothing is given up
	Pause time.Duration // before the second try of a download
}

// NewClient returns a client with the proxies and certificates that all of toolcell uses.
func NewClient() *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = maxHeader
	return &Client{HTTP: &http.Client{Transport: transport}, Stall: 30 * time.Second, Pause: 500 * time.Millisecond}
}

// Close closes the connections that are not in use.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// A statusError is a response without success.
type statusError struct {
	status string
	code   int
	wait   time.Duration
}

func (e *statusError) Error() string { return "the server answers " + e.status }

// A refusal is our own, of an address that may not serve files.
type refusal struct{ error }

// Get requests a URL of the origins; redirects must stay within them. Accept is the header
// of that name, or empty. An answer without success is an error. The body fails when
// nothing arrives for some time.
func (c *Client) Get(ctx context.Context, from Origins, address, accept string) (*http.Response, error) {
	u, _ := url.Parse(address) // Check refuses what cannot be read
	if err := from.Check(u); err != nil {
		return nil, &refusal{err}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stalled := time.AfterFunc(c.Stall, contain.Func("ending a download", func() { cancel(fmt.Errorf("the server sent nothing for %s", c.Stall)) }))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	from.authorize(req)
	client := *c.HTTP
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return &refusal{errors.New("it is redirected too often")}
		}
		from.authorize(next)
		if err := from.Check(next.URL); err != nil {
			return &refusal{err}
		}
		return nil
	}
	resp, err := client.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = &statusError{resp.Status, resp.StatusCode, retry.After(resp)}
		resp.Body.Close()
	}
	if err != nil {
		if cause := context.Cause(ctx); ctx.Err() != nil {
			err = cause
		}
		stalled.Stop()
		cancel(nil)
		return nil, explainRequest(err)
	}
	resp.Body = &watchedBody{resp.Body, ctx, cancel, stalled, c.Stall}
	return resp, nil
}

// A watchedBody fails when nothing arrives for some time.
type watchedBody struct {
	io.ReadCloser
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stalled *time.Timer
	after   time.Duration
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.stalled.Reset(b.after)
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.stalled.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// Retry calls try, and again if a server is overloaded or a connection breaks. An
// ErrContent, and an error of a file of this host, is not worth another try.
func (c *Client) Retry(ctx context.Context, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		var status *statusError
		var local *os.PathError
		var refused *refusal
		pause := c.Pause << (n - 1)
		switch {
		case err == nil || n == maxTries || ctx.Err() != nil:
			return err
		case errors.As(err, &status):
			if status.code != http.StatusTooManyRequests && status.code < 500 || status.wait > maxWait {
				return err
			}
			pause = max(pause, status.wait)
		case errors.Is(err, ErrContent) || errors.As(err, &local) || errors.As(err, &refused):
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ErrContent is in the chain of an error when a file differs from what was promised.
var ErrContent = errors.New("the file is not what the index said")

// A Sum is the digest that a file must have.
type Sum struct {
	name string
	new  func() hash.Hash
	hex  string
}

// SHA256 is a SHA-256 in lower-case hexadecimal digits.
func SHA256(hex string) Sum { return Sum{"SHA-256", sha256.New, hex} }

// SHA512 is a SHA-512 in lower-case hexadecimal digits.
func SHA512(hex string) Sum { return Sum{"SHA-512", sha512.New, hex} }

// Download fetches a file of at most limit bytes to a path of this host, which it
// replaces. Progress is told how many bytes have come, and a negative number if they are
// dropped. The error is an ErrContent if the file is too long or has another digest.
func (c *Client) Download(ctx context.Context, from Origins, address string, want Sum, file string, limit int64, progress func(bytes int64)) error {
	return c.Retry(ctx, func() error {
		resp, err := c.Get(ctx, from, address, "")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return writeVerified(resp.Body, want, file, limit, progress)
	})
}

func writeVerified(body io.Reader, want Sum, file string, limit int64, progress func(bytes int64)) (err error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	var written int64
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			progress(-written) // it is fetched again, or given up
		}
	}()
	sum := want.new()
	buffer := make([]byte, 256<<10)
	for {
		n, readErr := body.Read(buffer)
		if written+int64(n) > limit {
			return fmt.Errorf("%w: it has more than %d bytes", ErrContent, limit)
		}
		sum.Write(buffer[:n])
		if _, err := f.Write(buffer[:n]); err != nil {
			return err
		}
		written += int64(n)
		progress(int64(n))
		if readErr == io.EOF {
			break
		}
		if readErr != nil {
			return readErr
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want.hex {
		return fmt.Errorf("%w: its %s is %s, not %s", ErrContent, want.name, got, want.hex)
	}
	return nil
}

// A HostError says why no answer came from a host, without the addresses, sockets and
// resolvers that Go's errors name.
type HostError struct {
	Host, Reason string
	Err          error
}

func (e *HostError) Error() string { return fmt.Sprintf("cannot reach %s (%s)", e.Host, e.Reason) }
func (e *HostError) Unwrap() error { return e.Err }

// explainRequest turns an error of net/http into a HostError. It keeps errors of check.
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
	return &HostError{host, reason, err}
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
		return "its name cannot be looked up: " + text.CutAfter(dns.Err, maxReason)
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
