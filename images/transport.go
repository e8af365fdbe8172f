package images

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/netguard"
	"github.com/toolcell/toolcell/internal/state"
)

const (
	dialTimeout   = 5 * time.Second // names and connection together
	tlsTimeout    = 5 * time.Second
	answerTimeout = 15 * time.Second // until the response header, including connecting
	blobTimeout   = 60 * time.Second // the same for a blob, which a caching registry may have to fetch itself
	stallTimeout  = 60 * time.Second // without a byte of a body

	maxRefusal = 16 << 10 // bytes that are read of a response of 4xx or 5xx
	maxHeader  = 64 << 10 // bytes of a response header
)

// defaultTransport gives up on a dead network within seconds, but never on a slow one.
var defaultTransport = &http.Transport{
	Proxy:                 http.ProxyFromEnvironment,
	DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
	ForceAttemptHTTP2:     true,
	TLSHandshakeTimeout:   tlsTimeout,
	ExpectContinueTimeout: time.Second,
	IdleConnTimeout:       30 * time.Second,
	MaxIdleConnsPerHost:   4,

	MaxResponseHeaderBytes: maxHeader,
}

// roundTripper returns the transport for a registry and its redirects.
func (p Puller) roundTripper(host string) (http.RoundTripper, error) {
	if p.Transport != nil {
		return p.Transport, nil
	}
	files := certificateFiles(host)
	if p.CAFile != "" {
		files = append(files, p.CAFile)
	}
	if len(files) == 0 {
		return defaultTransport, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	for _, file := range files {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading certificates: %w", err)
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading certificates: %q has none in PEM", file)
		}
	}
	t := defaultTransport.Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: pool}
	return t, nil
}

// certificateFiles lists the certificates that are installed for one registry, where
// Docker and podman look for them (containers-certs.d(5)).
func certificateFiles(host string) (files []string) {
	dirs := []string{"/etc/containers/certs.d", "/etc/docker/certs.d"}
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, filepath.Join(home, ".config", "containers", "certs.d"))
	}
	if host == name.DefaultRegistry {
		host = "docker.io"
	}
	for _, dir := range dirs {
		found, _ := state.Match(filepath.Join(dir, host), "*.crt")
		files = append(files, found...)
	}
	return files
}

// ParseMirrors reads "REGISTRY=MIRROR[,MIRROR…] …": where else to look for the
// images of a registry. A mirror is a host with an optional port and path;
// "http://" before it allows plain HTTP with it, and that host is in plain.
func ParseMirrors(s string) (mirrors map[string][]string, plain []string, err error) {
	mirrors = map[string][]string{}
	for field := range strings.FieldsSeq(s) {
		registry, list, ok := strings.Cut(field, "=")
		if !ok || registry == "" || list == "" {
			return nil, nil, fmt.Errorf("%q is not REGISTRY=MIRROR", field)
		}
		r, err := name.NewRegistry(registry)
		if err != nil {
			return nil, nil, err
		}
		for m := range strings.SplitSeq(list, ",") {
			bare, insecure := strings.CutPrefix(m, "http://")
			bare = strings.TrimSuffix(strings.TrimPrefix(bare, "https://"), "/")
			host, _, _ := strings.Cut(bare, "/")
			if _, err := name.ParseReference(bare + "/image"); err != nil || !strings.ContainsAny(host, ".:") && host != "localhost" {
				return nil, nil, fmt.Errorf("%q is not a host with an optional port and path", m)
			}
			if insecure {
				plain = append(plain, host)
			}
			mirrors[r.RegistryStr()] = append(mirrors[r.RegistryStr()], bare)
		}
	}
	return mirrors, plain, nil
}

func checkRedirect(_ *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return &ruleError{"the registry redirects without end", ""}
	}
	return nil
}

// A guardTransport enforces rules for every request of a pull that the registry library
// lacks.
type guardTransport struct {
	inner    http.RoundTripper
	puller   Puller // says where the user allows http
	registry string // its host, without a port
}

func (g *guardTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	// The library falls back to http for private addresses too, and a redirect
	// may lead anywhere: credentials and unverified tags would be open to
	// everyone on the way.
	host := req.URL.Hostname()
	if req.URL.Scheme != "https" && !netguard.IsLocalhost(host) && !g.puller.allowsPlain(req.URL.Host) {
		to := printable(req.URL.Host, 200)
		return nil, &ruleError{to + " would be spoken to without encryption", "if you trust the network: TOOLCELL_INSECURE_REGISTRIES=" + to}
	}
	if host != g.registry && leadsInside(req) && !isOwn(g.registry) {
		return nil, &ruleError{fmt.Sprintf("the registry %s leads to the internal address %s", g.registry, printable(host, 200)), ""}
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	timeout := answerTimeout
	if isForBlob(req) {
		timeout = blobTimeout
	}
	timer := time.AfterFunc(timeout, contain.Func("giving up on a registry", func() { cancel(errNoAnswer) }))
	resp, err := g.inner.RoundTrip(req.WithContext(ctx))
	timer.Stop()
	if err != nil && errors.Is(context.Cause(ctx), errNoAnswer) {
		err = &silenceError{timeout}
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	if resp.StatusCode >= 400 {
		// The library reports nothing but the length of a refusal that is long, such as a
		// proxy's page.
		resp.Body = readCloser{io.LimitReader(resp.Body, maxRefusal), resp.Body}
	}
	resp.Body = &stallBody{resp.Body, ctx, cancel, stallTimeout}
	return resp, nil
}

// leadsInside reports whether a request goes behind our own firewall, where for example a
// cloud's metadata service is. A registry on the internet must not lead there, by a redirect
// or by the address of its token server. Names are not resolved: a company's registries can
// have public and private addresses, and a proxy hides both.
//
// The token server may be at localhost: a registry on this host can have another name.
func leadsInside(req *http.Request) bool {
	isRedirect := req.Response != nil
	addr, err := netip.ParseAddr(req.URL.Hostname())
	return err == nil && netguard.IsInternal(addr) || isRedirect && netguard.IsLocalhost(req.URL.Hostname())
}

func isOwn(host string) bool {
	addr, err := netip.ParseAddr(host)
	return netguard.IsLocalhost(host) || err == nil && netguard.IsOwn(addr)
}

// A readCloser reads from one thing and closes another.
type readCloser struct {
	io.Reader
	io.Closer
}

// isForBlob reports whether a request is for a blob, or is the redirect of such a request.
func isForBlob(req *http.Request) bool {
	for req.Response != nil && req.Response.Request != nil {
		req = req.Response.Request
	}
	return strings.Contains(req.URL.Path, "/blobs/")
}

var (
	errNoAnswer = errors.New("did not answer")
	errStalled  = errors.New("the registry sent nothing for a minute")
	errTooLong  = fmt.Errorf("the manifest has more than %d bytes", maxManifest)
)

// A silenceError means that a request got no response in time.
type silenceError struct{ after time.Duration }

func (e *silenceError) Error() string   { return fmt.Sprintf("%v within %s", errNoAnswer, e.after) }
func (e *silenceError) Unwrap() []error { return []error{ErrUnavailable, errNoAnswer} }

// A stallBody fails if nothing arrives for too long. Its errors count as the registry's.
type stallBody struct {
	inner   io.ReadCloser
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timeout time.Duration
}

func (b *stallBody) Read(p []byte) (int, error) {
	// The timer runs only during a Read: unpacking may take its time.
	timer := time.AfterFunc(b.timeout, contain.Func("giving up on a registry", func() { b.cancel(errStalled) }))
	n, err := b.inner.Read(p)
	timer.Stop()
	switch {
	case err == nil || err == io.EOF:
		return n, err
	case errors.Is(context.Cause(b.ctx), errStalled):
		return n, fmt.Errorf("%w: %w", ErrUnavailable, errStalled)
	case b.ctx.Err() != nil:
		return n, context.Cause(b.ctx)
	}
	return n, fmt.Errorf("%w: %w", ErrUnavailable, err)
}

func (b *stallBody) Close() error {
	err := b.inner.Close()
	b.cancel(nil)
	return err
}
