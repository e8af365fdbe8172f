package images

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// answer makes a registry that answers everything below /v2/py with a status.
func answer(status int) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/v2/py/") {
				w.WriteHeader(status)
				return
			}
			h.ServeHTTP(w, r)
		})
	}
}

// trip is a transport of one function.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// failingWith is a transport without an answer.
func failingWith(err error) trip {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// TestRegistryErrors: each is one sentence in plain words, with what can be done, and
// what the libraries say is in the log alone.
func TestRegistryErrors(t *testing.T) {
	const closed = "127.0.0.1:1" // no test can take this port
	dial := func(err error) trip { return failingWith(&net.OpError{Op: "dial", Net: "tcp", Err: err}) }
	untrusted := func(err error) trip { return failingWith(&tls.CertificateVerificationError{Err: err}) }
	says := func(status int, body string) string {
		return serve(t, func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/v2/py/") {
					w.WriteHeader(status)
					_, _ = io.WriteString(w, body)
				}
			})
		})
	}
	const denied = `{"errors":[{"code":"DENIED","message":"your address is blocked"}]}`
	for name, c := range map[string]struct {
		host        string
		transport   http.RoundTripper
		want        string // of the sentence, HOST for the registry
		advice      string // a part of it
		unavailable bool
	}{
		"not found":           {serve(t, nil), nil, "HOST has no such image (it says: Unknown name)", "the tag", false},
		"unauthorized":        {serve(t, answer(401)), nil, "HOST refused access: the image is private or does not exist", "~/.docker/config.json", false},
		"forbidden":           {serve(t, answer(403)), nil, "HOST refused access: the image is private or does not exist", "~/.docker/config.json", false},
		"forbidden, and why":  {says(403, denied), nil, "HOST refused access: the image is private or does not exist (it says: your address is blocked)", "~/.docker/config.json", false},
		"a page of a proxy":   {says(403, "<html>"+strings.Repeat("no", 9000)), nil, "HOST refused access: the image is private or does not exist", "~/.docker/config.json", false},
		"forbidden, no words": {says(403, `{"errors":[{"code":"DENIED"}]}`), nil, "HOST refused access: the image is private or does not exist", "~/.docker/config.json", false},
		"rate limit":          {serve(t, answer(429)), nil, "HOST limits the rate of pulls", "wait, or put credentials", true},
		"bad request":         {serve(t, answer(400)), nil, "HOST answers 400 Bad Request", "", false},
		"server error":        {serve(t, answer(500)), nil, "HOST answers 500 Internal Server Error", "TOOLCELL_REGISTRY_MIRRORS", true},
		"bad gateway":         {serve(t, answer(502)), nil, "HOST answers 502 Bad Gateway", "later", true},
		"unavailable":         {serve(t, answer(503)), nil, "HOST answers 503 Service Unavailable", "later", true},
		"connection refused":  {closed, nil, "cannot reach HOST (connection refused)", "--image host", true},
		"no name":             {"registry.invalid", dial(&net.DNSError{Err: "no such host", Name: "registry.invalid", Server: "10.0.0.1:53", IsNotFound: true}), "cannot reach HOST (no such host)", "toolcell images list", true},
		"no name server":      {"registry.invalid", dial(&net.DNSError{Err: "server misbehaving", Name: "registry.invalid", Server: "10.0.0.1:53"}), "cannot reach HOST (its name cannot be looked up: server misbehaving)", "network", true},
		"no route":            {"registry.invalid", dial(&os.SyscallError{Syscall: "connect", Err: syscall.EHOSTUNREACH}), "cannot reach HOST (no route to host)", "network", true},
		"no answer":           {"registry.invalid", dial(context.DeadlineExceeded), "cannot reach HOST (no answer)", "network", true},
		"silence":             {"registry.invalid", failingWith(&silenceError{15 * time.Second}), "cannot reach HOST (no answer within 15s)", "network", true},
		"cut off":             {"registry.invalid", failingWith(io.ErrUnexpectedEOF), "cannot reach HOST (the connection broke)", "network", true},
		"hung up":             {"registry.invalid", failingWith(io.EOF), "cannot reach HOST (the connection broke)", "network", true},
		"a refused proxy":     {"registry.invalid", failingWith(errors.New("Forbidden")), "cannot reach HOST (Forbidden)", "HTTPS_PROXY", true},
		"unknown authority":   {"registry.invalid", untrusted(x509.UnknownAuthorityError{}), "cannot trust HOST: an unknown authority has signed its certificate", "TOOLCELL_REGISTRY_CA", false},
		"no authorities":      {"registry.invalid", untrusted(x509.SystemRootsError{Err: errors.New("none")}), "cannot trust HOST: an unknown authority has signed its certificate", "ca-certificates", false},
		"invalid":             {"registry.invalid", untrusted(x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}), "cannot trust HOST: its certificate is not valid", "TOOLCELL_REGISTRY_CA", false},
		"expired":             {"registry.invalid", untrusted(x509.CertificateInvalidError{Reason: x509.Expired}), "cannot trust HOST: its certificate has expired or is not valid yet", "date", false},
		"another's name":      {"registry.invalid", untrusted(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "registry.invalid"}), "cannot trust HOST: its certificate is for another name", "TOOLCELL_REGISTRY_CA", false},
		"refused handshake":   {"registry.invalid", failingWith(&net.OpError{Op: "remote error", Err: tls.AlertError(40)}), "cannot reach HOST (no TLS connection: handshake failure)", "network", true},
		"old TLS":             {"registry.invalid", failingWith(errors.New("tls: server selected unsupported protocol version 301")), "cannot reach HOST (no TLS connection: server selected unsupported protocol version 301)", "network", true},
		"no TLS":              {"registry.invalid", failingWith(http.ErrSchemeMismatch), "HOST does not speak TLS", "TOOLCELL_INSECURE_REGISTRIES=registry.invalid", false},
		"no TLS at all":       {"registry.invalid", failingWith(tls.RecordHeaderError{Msg: "first record"}), "HOST does not speak TLS", "TOOLCELL_INSECURE_REGISTRIES=registry.invalid", false},
		"something else":      {"registry.invalid", failingWith(fmt.Errorf("a: %w", errors.New("b\x1b[31m"))), `cannot reach HOST ("b\x1b[31m")`, "network", true},
		"Docker Hub":          {"index.docker.io", dial(&net.DNSError{Err: "no such host", IsNotFound: true}), "cannot reach docker.io (no such host)", "network", true},
		"a private plain one": {"10.1.2.3:5000", dial(syscall.ECONNREFUSED), "cannot reach HOST (connection refused)", "network", true},
	} {
		var log strings.Builder
		p := Puller{
			Transport: c.transport, AuthFile: os.DevNull, Backoff: time.Millisecond,
			Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}
		ref := c.host + "/py:3"
		err := pullAll(p, ref)
		want := fmt.Sprintf("reading image %q: %s", ref, strings.ReplaceAll(c.want, "HOST", c.host))
		if err == nil || err.Error() != want {
			t.Errorf("%s:\n%v, want\n%s", name, err, want)
		}
		plain := (*RegistryError)(nil)
		if !errors.As(err, &plain) || !strings.Contains(plain.Advice(), c.advice) || c.advice == "" != (plain.Advice() == "") {
			t.Errorf("%s: %v has no advice of %q", name, err, c.advice)
		}
		if errors.Is(err, ErrUnavailable) != c.unavailable {
			t.Errorf("%s: unavailable = %v, want %v: %v", name, !c.unavailable, c.unavailable, err)
		}
		if !strings.Contains(log.String(), "https://") && !strings.Contains(log.String(), "http://") {
			t.Errorf("%s: the log has no request: %s", name, log.String())
		}
	}
}

// TestSignedAddressesAreNotLogged: who has the address of a blob needs no other right.
func TestSignedAddressesAreNotLogged(t *testing.T) {
	var log strings.Builder
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/manifests/") && r.Method == http.MethodGet {
				http.Redirect(w, r, "http://127.0.0.1:1/blob?signature=hunter2&x=1", http.StatusTemporaryRedirect)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	err := pullAll(Puller{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, host+"/py:3")
	if err == nil || !strings.Contains(err.Error(), "cannot reach 127.0.0.1:1, where "+host+" leads, (connection refused)") || strings.Contains(err.Error()+log.String(), "hunter2") {
		t.Errorf("got %v\n%s", err, log.String())
	}
}

// TestMirrorThatAnswersIsNamedFirst: it knows more than what could not be reached.
func TestMirrorThatAnswersIsNamedFirst(t *testing.T) {
	has, closed := serve(t, nil), "127.0.0.1:1"
	noName := dialError{}
	for _, c := range []struct {
		mirrors []string
		want    string
	}{
		{[]string{has}, "the mirror " + has + " has no such image (it says: Unknown name); cannot reach registry.invalid (no such host)"},
		{[]string{closed}, "cannot reach registry.invalid (no such host); cannot reach the mirror 127.0.0.1:1 (connection refused)"},
		{[]string{closed, has}, "the mirror " + has + " has no such image (it says: Unknown name); cannot reach registry.invalid (no such host); cannot reach the mirror 127.0.0.1:1 (connection refused)"},
	} {
		err := pullAll(Puller{Transport: noName, Mirrors: map[string][]string{"registry.invalid": c.mirrors}}, "registry.invalid/py:3")
		if want := `reading image "registry.invalid/py:3": ` + c.want; err == nil || err.Error() != want {
			t.Errorf("%v, want\n%s", err, want)
		}
	}
}

// dialError has no name of registry.invalid.
type dialError struct{}

func (dialError) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Hostname() == "registry.invalid" {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}
	}
	return http.DefaultTransport.RoundTrip(r)
}

func TestRegistryCancelledIsNotUnavailable(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	hang := trip(func(r *http.Request) (*http.Response, error) {
		cancel()
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	_, err := Puller{Transport: hang}.Image(ctx, "registry.invalid/py:3")
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// TestRefusalsSayWhatIsMissing, once, and without the page that they come on.
func TestRefusalsSayWhatIsMissing(t *testing.T) {
	for path, want := range map[string]string{"/manifests/": " has no such image", "/blobs/": " has lost a part of the image"} {
		const words = `{"errors":[{"code":"UNKNOWN","message":"it is gone"}]}`
		for _, page := range []string{"", words, strings.Repeat("<p>it is gone", 10_000)} {
			missing := atomic.Bool{}
			host := serve(t, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if missing.Load() && r.Method == http.MethodGet && strings.Contains(r.URL.Path, path) {
						w.WriteHeader(http.StatusNotFound)
						_, _ = io.WriteString(w, page)
						return
					}
					h.ServeHTTP(w, r)
				})
			})
			push(t, host+"/py:3", hostImage(t))
			missing.Store(true)
			err := pullAll(Puller{}, host+"/py:3")
			if err == nil || strings.Count(err.Error(), " has ") != 1 || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "it is gone") != (page == words) {
				t.Errorf("%s, %.20q: %v", path, page, err)
			}
		}
	}
}

func TestDeadNetworkIsGivenUpSoon(t *testing.T) {
	tr := defaultTransport
	if sum := dialTimeout + tr.TLSHandshakeTimeout; sum > answerTimeout || answerTimeout > 15*time.Second {
		t.Errorf("a dead network takes %s, a silent one %s", sum, answerTimeout)
	}
	var asked atomic.Int32
	timeout := trip(func(r *http.Request) (*http.Response, error) {
		asked.Add(1)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%w", context.DeadlineExceeded)}
	})
	err := pullAll(Puller{Transport: timeout}, "registry.invalid/py:3")
	if !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("a timeout was tried %d times", n)
	}
}

func TestSilentServerIsGivenUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // connections stay in its backlog, unanswered
	tr := defaultTransport.Clone()
	tr.TLSHandshakeTimeout, tr.ResponseHeaderTimeout = 50*time.Millisecond, 50*time.Millisecond
	start := time.Now()
	err = pullAll(Puller{Transport: tr}, l.Addr().String()+"/py:3")
	if !errors.Is(err, ErrUnavailable) || time.Since(start) > time.Minute {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

func TestBodyThatStallsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		g := &guardTransport{inner: trip(func(req *http.Request) (*http.Response, error) {
			context.AfterFunc(req.Context(), func() { w.CloseWithError(context.Canceled) })
			return &http.Response{StatusCode: http.StatusOK, Body: r, Request: req}, nil
		})}
		req, err := http.NewRequest(http.MethodGet, "https://registry.invalid/v2/py/blobs/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := g.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		go func() {
			for range 3 { // a slow body is none that stalls
				time.Sleep(stallTimeout - time.Second)
				_, _ = w.Write([]byte("slow"))
			}
		}()
		start := time.Now()
		got, err := io.ReadAll(resp.Body)
		if string(got) != "slowslowslow" || !errors.Is(err, ErrUnavailable) || !errors.Is(err, errStalled) {
			t.Errorf("got %q, %v", got, err)
		}
		if after := time.Since(start); after != 4*stallTimeout-3*time.Second {
			t.Errorf("given up after %s", after)
		}
	})
}

func TestPlainHTTPStaysOnThisHost(t *testing.T) {
	for ref, want := range map[string]bool{
		"10.1.2.3:5000/py:3":        false, // the library would fall back to http here
		"192.168.1.1/py:3":          false,
		"registry.invalid:80/py:3":  false,
		"127.0.0.1:1/py:3":          true,
		"localhost:1/py:3":          true,
		"registry.localhost:1/py:3": true,
	} {
		var plain atomic.Bool
		err := pullAll(Puller{Transport: trip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Scheme == "http" {
				plain.Store(true)
			}
			return nil, errors.New("down")
		})}, ref)
		if err == nil || plain.Load() != want {
			t.Errorf("%s: plain http = %v, want %v (%v)", ref, plain.Load(), want, err)
		}
	}
}

func TestRedirectToPlainHTTPIsRefused(t *testing.T) {
	g := &guardTransport{inner: trip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 302, Header: http.Header{"Location": {"http://cdn.invalid/blob"}}, Body: http.NoBody, Request: r}, nil
	})}
	resp, err := (&http.Client{Transport: g}).Get("https://registry.invalid/v2/py/blobs/x")
	if err == nil {
		resp.Body.Close()
	}
	if rule := (*ruleError)(nil); !errors.As(err, &rule) || rule.text != "cdn.invalid would be spoken to without encryption" {
		t.Errorf("got %v", err)
	}
}

func TestManifestIsBounded(t *testing.T) {
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.URL.Path, "/manifests/") {
				h.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
			for range maxManifest/1024 + 2 {
				w.Write(bytes.Repeat([]byte(" "), 1024))
			}
		})
	})
	if err := pullAll(Puller{}, host+"/py:3"); !errors.Is(err, errTooLong) {
		t.Errorf("got %v", err)
	}
}

// basicAuth is a registry that asks for a password.
func basicAuth(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); user != "ada" || pass != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func TestRegistryCredentials(t *testing.T) {
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	open := httptest.NewServer(inner)
	defer open.Close()
	push(t, strings.TrimPrefix(open.URL, "http://")+"/py:3", hostImage(t))
	closed := httptest.NewServer(basicAuth(inner))
	defer closed.Close()
	ref := strings.TrimPrefix(closed.URL, "http://") + "/py:3"

	if err := pullAll(Puller{Login: &Login{"ada", "secret"}}, ref); err != nil {
		t.Errorf("with the password: %v", err)
	}
	for _, p := range []Puller{{AuthFile: os.DevNull}, {Login: &Login{"ada", "wrong"}}} {
		err := pullAll(p, ref)
		if err == nil || !strings.Contains(err.Error(), "refused access") || strings.Contains(err.Error(), "wrong") {
			t.Errorf("got %v", err)
		}
	}
}

// TestLoginIsForOneRegistry: what the user gave for it goes to no mirror.
func TestLoginIsForOneRegistry(t *testing.T) {
	img := hostImage(t)
	var leaked atomic.Bool
	mirror := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				leaked.Store(true)
			}
			w.Header().Set("WWW-Authenticate", `Basic realm="mirror"`)
			w.WriteHeader(http.StatusUnauthorized)
		})
	})
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	open, closed := httptest.NewServer(inner), httptest.NewServer(basicAuth(inner))
	defer open.Close()
	defer closed.Close()
	push(t, strings.TrimPrefix(open.URL, "http://")+"/py:3", img)
	host := strings.TrimPrefix(closed.URL, "http://")
	p := Puller{
		Login:   &Login{"ada", "secret"},
		Mirrors: map[string][]string{host: {mirror + "/cache"}},
	}
	if err := pullAll(p, host+"/py:3"); err != nil || leaked.Load() {
		t.Errorf("leaked: %v, %v", leaked.Load(), err)
	}
}

func TestParsePlatform(t *testing.T) {
	for text, want := range map[string]string{
		"linux/arm64": "linux/arm64", "linux/arm/v7": "linux/arm/v7", "Linux/x86_64": "linux/amd64", "linux/aarch64": "linux/arm64",
		"arm64": "", "": "", "linux/": "", "/": "", "windows/amd64": "", "linux/arm/v7/x": "", "linux//v7": "",
	} {
		p, err := ParsePlatform(text)
		if (err == nil) != (want != "") || err == nil && p.String() != want {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
}

func TestRegistryRefusesCorruptBlobs(t *testing.T) {
	img := hostImage(t)
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func([]byte) []byte{
		"changed":   func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"truncated": func(b []byte) []byte { return b[:len(b)/2] },
		"longer":    func(b []byte) []byte { return append(b, 'x') },
		"empty":     func([]byte) []byte { return nil },
	} {
		for what, digest := range map[string]v1.Hash{"layer": m.Layers[1].Digest, "configuration": m.Config.Digest} {
			var on atomic.Bool
			host := serve(t, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !on.Load() || !strings.HasSuffix(r.URL.Path, digest.String()) {
						h.ServeHTTP(w, r)
						return
					}
					rec := httptest.NewRecorder()
					h.ServeHTTP(rec, r)
					w.Write(change(rec.Body.Bytes()))
				})
			})
			push(t, host+"/py:3", img)
			on.Store(true)
			if err := pullAll(Puller{}, host+"/py:3"); err == nil {
				t.Errorf("a %s %s was taken", name, what)
			}
		}
	}
}

func TestRegistryRefusesAnotherManifestForADigest(t *testing.T) {
	img := hostImage(t)
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/sha256:") {
				r.URL.Path = "/v2/py/manifests/3"
			}
			h.ServeHTTP(w, r)
		})
	})
	push(t, host+"/py:3", img)
	if err := pullAll(Puller{}, host+"/py@sha256:"+strings.Repeat("0", 64)); err == nil {
		t.Error("a manifest with another digest was taken")
	}
}

func indexOf(t *testing.T, platforms ...v1.Platform) v1.ImageIndex {
	t.Helper()
	var index v1.ImageIndex = empty.Index
	for i, p := range platforms {
		img := imageOf(t, p, layerOf(t, fmt.Sprint(i), "gzip"))
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Platform: &p})
	}
	return index
}

func TestImageChoosesThePlatform(t *testing.T) {
	amd := v1.Platform{OS: "linux", Architecture: "amd64"}
	arm64 := v1.Platform{OS: "linux", Architecture: "arm64", Variant: "v8"}
	v5 := v1.Platform{OS: "linux", Architecture: "arm", Variant: "v5"}
	v7 := v1.Platform{OS: "linux", Architecture: "arm", Variant: "v7"}
	v2 := v1.Platform{OS: "linux", Architecture: "amd64", Variant: "v2"}
	v3 := v1.Platform{OS: "linux", Architecture: "amd64", Variant: "v3"}
	windows := v1.Platform{OS: "windows", Architecture: "amd64", OSVersion: "10.0.1"}
	noise := v1.Platform{OS: "unknown", Architecture: "unknown"}
	all := []v1.Platform{noise, windows, v3, v5, v7, arm64, amd}
	host := serve(t, nil)
	push(t, host+"/py:all", indexOf(t, all...))
	push(t, host+"/py:arm", indexOf(t, v5, arm64, noise))
	push(t, host+"/py:v2", indexOf(t, v2))
	push(t, host+"/py:arm64", indexOf(t, v1.Platform{OS: "linux", Architecture: "arm64"}, arm64))
	push(t, host+"/py:nested", mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: indexOf(t, all...), MediaType: types.OCIImageIndex,
	}))

	for _, c := range []struct {
		tag  string
		want v1.Platform
		got  v1.Platform
	}{
		{"all", amd, amd},
		{"all", arm64, arm64},
		{"all", v1.Platform{OS: "linux", Architecture: "arm64"}, arm64},
		{"all", v7, v7},
		{"arm", v7, v5},
		{"all", v1.Platform{OS: "linux", Architecture: "arm", Variant: "v6"}, v5},
		{"nested", amd, amd},
		{"v2", amd, v2},
		{"arm64", v1.Platform{OS: "linux", Architecture: "arm64"}, arm64},
	} {
		img, err := Puller{Platform: c.want}.Image(context.Background(), host+"/py:"+c.tag)
		if err != nil {
			t.Errorf("%s for %s: %v", c.tag, c.want, err)
			continue
		}
		if img.Platform != c.got.String() {
			t.Errorf("%s for %s: got %s, want %s", c.tag, c.want, img.Platform, c.got)
		}
	}
	_, err := Puller{Platform: amd}.Image(context.Background(), host+"/py:arm")
	if err == nil || !strings.Contains(err.Error(), "linux/arm/v5, linux/arm64/v8") || strings.Contains(err.Error(), "unknown") {
		t.Errorf("the error does not list the platforms: %v", err)
	}
}

func TestImageRefusesEndlessIndexes(t *testing.T) {
	var index v1.ImageIndex = empty.Index
	for range 10 {
		index = mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index, MediaType: types.OCIImageIndex})
	}
	host := serve(t, nil)
	push(t, host+"/py:3", index)
	if err := pullAll(Puller{}, host+"/py:3"); err == nil || !strings.Contains(err.Error(), "nested too deep") {
		t.Errorf("got %v", err)
	}
}
