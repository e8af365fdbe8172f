package packages

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/retry"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

const (
	maxTries     = 4
	maxWait      = 30 * time.Second // the longest wait that a server may ask for
	maxRedirects = 5
	maxHeader    = 64 << 10 // bytes of a response header
)

// A statusError is a response without success.
type statusError struct {
	status string
	code   int
	wait   time.Duration
}

func (e *statusError) Error() string { return "the server answers " + e.status }

// A refusal is our own, of an address that may not serve files.
type refusal struct{ error }

// get requests a URL of the origins; redirects must stay within them. The body fails when
// nothing arrives for some time.
func (j *job) get(ctx context.Context, address, accept string) (*http.Response, error) {
	u, _ := url.Parse(address) // check refuses what cannot be read
	if err := j.from.check(u); err != nil {
		return nil, &refusal{err}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stalled := time.AfterFunc(j.stall, contain.Func("ending a download", func() { cancel(fmt.Errorf("the server sent nothing for %s", j.stall)) }))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	j.from.authorize(req)
	client := *j.client
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return &refusal{errors.New("it is redirected too often")}
		}
		j.from.authorize(next)
		if err := j.from.check(next.URL); err != nil {
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
	resp.Body = &watchedBody{resp.Body, ctx, cancel, stalled, j.stall}
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

// retry calls try again if a server is overloaded or a connection breaks.
func (s *Store) retry(ctx context.Context, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		var status *statusError
		var local *os.PathError
		var refused *refusal
		pause := s.pause << (n - 1)
		switch {
		case err == nil || n == maxTries || ctx.Err() != nil:
			return err
		case errors.As(err, &status):
			if status.code != http.StatusTooManyRequests && status.code < 500 || status.wait > maxWait {
				return err
			}
			pause = max(pause, status.wait)
		case errors.Is(err, errContent) || errors.As(err, &local) || errors.As(err, &refused):
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// errContent is in the chain of an error when a file differs from what the index promised.
var errContent = errors.New("the file is not what the index said")

// download fetches a file with a known digest, of at most limit bytes.
func (j *job) download(ctx context.Context, address, digest, file string, limit int64, progress func(bytes int64)) error {
	return j.retry(ctx, func() error {
		resp, err := j.get(ctx, address, "")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return writeVerified(resp.Body, digest, file, limit, progress)
	})
}

func writeVerified(body io.Reader, digest, file string, limit int64, progress func(bytes int64)) (err error) {
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
	sum := sha256.New()
	buffer := make([]byte, 256<<10)
	for {
		n, readErr := body.Read(buffer)
		if written+int64(n) > limit {
			return fmt.Errorf("%w: it has more than %d bytes", errContent, limit)
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
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return fmt.Errorf("%w: its SHA-256 is %s, not %s", errContent, got, digest)
	}
	return nil
}

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
