package fetch

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/internal/ostest"
)

// A scripted stands in for servers: each request gets the next answer, and later ones the last.
type scripted struct {
	answers []scriptedAnswer
	asked   []*http.Request
	open    int // bodies that were not closed
}

type scriptedAnswer struct {
	code   int
	header http.Header
	body   func(ctx context.Context) io.Reader // nil is "wheel"
	err    error
}

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	a := s.answers[min(len(s.asked), len(s.answers)-1)]
	s.asked = append(s.asked, r)
	if a.code == 0 && a.err == nil { // no answer comes
		<-r.Context().Done()
		a.err = r.Context().Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	s.open++
	var body io.Reader = strings.NewReader("wheel")
	if a.body != nil {
		body = a.body(r.Context())
	}
	status := fmt.Sprintf("%d %s", a.code, http.StatusText(a.code))
	return &http.Response{StatusCode: a.code, Status: status, Header: a.header, Body: &scriptedBody{Reader: body, of: s}, Request: r}, nil
}

type scriptedBody struct {
	io.Reader
	of     *scripted
	closed bool
}

func (b *scriptedBody) Close() error {
	if !b.closed {
		b.closed = true
		b.of.open--
	}
	return nil
}

// A slowBody gives one byte after each pause, or fails when its request has ended.
type slowBody struct {
	ctx   context.Context
	pause time.Duration
	from  *strings.Reader
}

func (b *slowBody) Read(p []byte) (int, error) {
	select {
	case <-time.After(b.pause):
		return b.from.Read(p[:1])
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
}

// clientOf returns a client whose servers answer like this.
func clientOf(answers ...scriptedAnswer) (*Client, *scripted) {
	server := &scripted{answers: answers}
	return &Client{HTTP: &http.Client{Transport: server}, Pause: time.Millisecond, Stall: 10 * time.Second}, server
}

const scriptedWheel = "https://index.example/files/a.whl"

func scriptedIndex(t *testing.T) Origins { return originsOf(t, "https://index.example/simple") }

func originsOf(t *testing.T, index string) Origins {
	t.Helper()
	from, err := NewOrigins(index, nil, "", "which is not the index's host")
	if err != nil {
		t.Fatal(err)
	}
	return from
}

// fetchScripted downloads the wheel of a scripted server.
func (c *Client) fetchScripted(t *testing.T) error {
	t.Helper()
	return c.Download(t.Context(), scriptedIndex(t), scriptedWheel, sha("wheel"), filepath.Join(t.TempDir(), "a.whl"), 100, func(int64) {})
}

func sha(content string) Sum { return SHA256(fmt.Sprintf("%x", sha256.Sum256([]byte(content)))) }

// TestWhatCannotGetBetterIsNotTriedAgain: an index is not asked in vain.
func TestWhatCannotGetBetterIsNotTriedAgain(t *testing.T) {
	wrong := func(context.Context) io.Reader { return strings.NewReader("other") }
	for _, tt := range []struct {
		answer scriptedAnswer
		file   string
		want   string
		asked  int
	}{
		{scriptedAnswer{code: 200}, "a.whl", "", 1},
		{scriptedAnswer{code: 404}, "a.whl", "the server answers 404 Not Found", 1},
		{scriptedAnswer{code: 403}, "a.whl", "the server answers 403 Forbidden", 1},
		{scriptedAnswer{code: 429}, "a.whl", "the server answers 429 Too Many Requests", maxTries},
		{scriptedAnswer{code: 500}, "a.whl", "the server answers 500 Internal Server Error", maxTries},
		{scriptedAnswer{code: 503, header: http.Header{"Retry-After": {"31"}}}, "a.whl", "the server answers 503 Service Unavailable", 1},
		{scriptedAnswer{code: 503, header: http.Header{"Retry-After": {"99999"}}}, "a.whl", "the server answers 503 Service Unavailable", 1},
		{scriptedAnswer{code: 503, header: http.Header{"Retry-After": {"Fri, 27 Nov 2099 00:00:00 GMT"}}}, "a.whl", "the server answers 503 Service Unavailable", 1},
		{scriptedAnswer{code: 302, header: http.Header{"Location": {"https://elsewhere.example/a.whl"}}}, "a.whl", "which is not the index's host", 1},
		{scriptedAnswer{code: 302, header: http.Header{"Location": {scriptedWheel}}}, "a.whl", "it is redirected too often", maxRedirects},
		{scriptedAnswer{err: errors.New("broken")}, "a.whl", "broken", maxTries},
		{scriptedAnswer{code: 200, body: wrong}, "a.whl", "its SHA-256 is", 1},
		{scriptedAnswer{code: 200}, "missing/a.whl", "no such file or directory", 1},
	} {
		c, server := clientOf(tt.answer)
		file := filepath.Join(t.TempDir(), tt.file)
		err := c.Download(t.Context(), scriptedIndex(t), scriptedWheel, sha("wheel"), file, 100, func(int64) {})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || len(server.asked) != tt.asked {
			t.Errorf("%d, %s: got %v, want %q; asked %d times, not %d", tt.answer.code, tt.file, err, tt.want, len(server.asked), tt.asked)
		}
	}
}

// TestConnectionsAreGivenBack, and what watches them ends.
func TestConnectionsAreGivenBack(t *testing.T) {
	c, server := clientOf(scriptedAnswer{code: 503}, scriptedAnswer{err: errors.New("broken")}, scriptedAnswer{code: 200}, scriptedAnswer{code: 404})
	if err := c.fetchScripted(t); err != nil {
		t.Error(err)
	}
	if err := c.fetchScripted(t); err == nil {
		t.Error("a 404 is no error")
	}
	if server.open > 0 {
		t.Errorf("%d are open", server.open)
	}
	for i, r := range server.asked {
		if r.Context().Err() == nil {
			t.Errorf("request %d goes on", i+1)
		}
	}
	if len(server.asked) != 4 {
		t.Errorf("%d requests", len(server.asked))
	}
}

func TestServersSayWhenToAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := clientOf(scriptedAnswer{code: 503, header: http.Header{"Retry-After": {"30"}}}, scriptedAnswer{code: 200})
		start := time.Now()
		if err := c.fetchScripted(t); err != nil || len(server.asked) != 2 || time.Since(start) != 30*time.Second {
			t.Errorf("got %v, %d requests in %s", err, len(server.asked), time.Since(start))
		}
	})
}

// TestSlowServersAreWaitedFor as long as something comes.
func TestSlowServersAreWaitedFor(t *testing.T) {
	slow := func(pause time.Duration) scriptedAnswer {
		return scriptedAnswer{code: 200, body: func(ctx context.Context) io.Reader { return &slowBody{ctx, pause, strings.NewReader("wheel")} }}
	}
	synctest.Test(t, func(t *testing.T) {
		c, server := clientOf(slow(9 * time.Second))
		if err := c.fetchScripted(t); err != nil || len(server.asked) != 1 {
			t.Errorf("got %v, %d requests", err, len(server.asked))
		}
		const want = "the server sent nothing for 10s"
		for name, answer := range map[string]scriptedAnswer{"a slower one": slow(11 * time.Second), "no answer": {}} {
			c, server := clientOf(answer)
			if err := c.fetchScripted(t); err == nil || err.Error() != want || len(server.asked) != maxTries {
				t.Errorf("%s: got %v, %d requests; want %s", name, err, len(server.asked), want)
			}
		}
	})
}

// TestOtherHostsAreNotAsked, though a page or a lock leads to them.
func TestOtherHostsAreNotAsked(t *testing.T) {
	for address, want := range map[string]string{
		"https://evil.example/a.whl": `it comes from "evil.example", which is not the index's host`,
		"http://index.example/a.whl": `its address begins with "http://", not with https`,
		"https://[::1/a.whl":         "its address is not understood",
	} {
		c, server := clientOf(scriptedAnswer{code: 200})
		resp, err := c.Get(t.Context(), scriptedIndex(t), address, "")
		if err == nil {
			resp.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || len(server.asked) > 0 {
			t.Errorf("%s: got %v, %d requests; want %s", address, err, len(server.asked), want)
		}
	}
}

func TestDownloadsAreWhole(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("needs " + full)
	}
	counted := int64(0)
	err := writeVerified(strings.NewReader("wheel"), sha("wheel"), full, 100, func(n int64) { counted += n })
	if err == nil || !strings.Contains(err.Error(), "no space left on device") || counted != 0 {
		t.Errorf("on a full disk: got %v, %d bytes are counted", err, counted)
	}
	file := filepath.Join(t.TempDir(), "a.whl")
	if err := writeVerified(strings.NewReader("wheel"), sha("wheel"), file, 100, func(int64) {}); err != nil {
		t.Error(err)
	}
	if open := ostest.OpenFiles(t, file); len(open) > 0 {
		t.Errorf("%q are open", open)
	}
}

// TestProxiesAreNamed: one that refuses is not the index. The variables are read once in a
// process.
func TestProxiesAreNamed(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("TOOLCELL_TEST_PROXY") == "" {
		cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestProxiesAreNamed$")
		cmd.Env = append(os.Environ(), "TOOLCELL_TEST_PROXY=1", "HTTPS_PROXY=http://127.0.0.1:1", "https_proxy=", "NO_PROXY=", "no_proxy=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	c := NewClient()
	c.Pause = time.Millisecond
	const want = `cannot reach "index.example" through the proxy "127.0.0.1:1" (connection refused)`
	if err := c.fetchScripted(t); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestHeadersAreBounded: they are kept in memory, whatever an index sends.
func TestHeadersAreBounded(t *testing.T) {
	var size atomic.Int64
	x := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", int(size.Load())))
	}))
	defer x.Close()
	c := NewClient()
	for n, want := range map[int64]string{maxHeader - 1000: "", maxHeader: "exceeded"} {
		size.Store(n)
		resp, err := c.Get(t.Context(), originsOf(t, x.URL), x.URL+"/files/a.whl", "")
		if err == nil {
			resp.Body.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: got %v, want %q", n, err, want)
		}
	}
}

func TestRedirectsAreBounded(t *testing.T) {
	var asked atomic.Int64
	x := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if left, _ := strconv.Atoi(filepath.Base(r.URL.Path)); left > 1 {
			http.Redirect(w, r, strconv.Itoa(left-1), http.StatusFound)
		}
	}))
	defer x.Close()
	c, from := NewClient(), originsOf(t, x.URL)
	resp, err := c.Get(t.Context(), from, fmt.Sprintf("%s/files/%d", x.URL, maxRedirects), "")
	if err != nil {
		t.Fatalf("the most: %v", err)
	}
	resp.Body.Close()
	before := asked.Load()
	if before != maxRedirects {
		t.Errorf("the most: %d requests", before)
	}
	resp, err = c.Get(t.Context(), from, fmt.Sprintf("%s/files/%d", x.URL, maxRedirects+1), "")
	if err == nil {
		resp.Body.Close()
	}
	if err == nil || err.Error() != "it is redirected too often" || asked.Load() != before+maxRedirects {
		t.Errorf("one more: %v, %d requests", err, asked.Load()-before)
	}
}

func TestDownloadsAreBounded(t *testing.T) {
	const limit = 10
	for size, want := range map[int]string{
		limit:     "",
		limit + 1: fmt.Sprintf("%v: it has more than %d bytes", ErrContent, limit),
	} {
		content, file := strings.Repeat("x", size), filepath.Join(t.TempDir(), "x.whl")
		body := iotest.OneByteReader(strings.NewReader(content))
		left := int64(0)
		err := writeVerified(body, sha(content), file, limit, func(n int64) { left += n })
		if kept := map[bool]int64{true: limit}[err == nil]; left != kept {
			t.Errorf("%d bytes: %d are counted", size, left)
		}
		if (err == nil) != (want == "") || err != nil && (err.Error() != want || !errors.Is(err, ErrContent)) {
			t.Errorf("%d bytes: got %v, want %q", size, err, want)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != content[:limit] {
			t.Errorf("%d bytes: the file has %q, %v", size, got, err)
		}
	}
}

func TestReasonsAreOfTheNetworkAlone(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "") // read once in a process; without it the words have no proxy
	for _, c := range []struct {
		err  error
		want string
	}{
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "x.example", Server: "127.0.0.53:53", IsNotFound: true}}, "(no such host)"},
		{&net.DNSError{Err: "server misbehaving", Server: "127.0.0.53:53"}, "(its name cannot be looked up: server misbehaving)"},
		{&net.DNSError{IsTimeout: true, Server: "127.0.0.53:53"}, "(the name server does not answer)"},
		{&net.OpError{Op: "dial", Err: syscall.ENETUNREACH}, "(network is unreachable)"},
		{x509.UnknownAuthorityError{}, "(an unknown authority has signed its certificate)"},
		{x509.CertificateInvalidError{Reason: x509.Expired}, "(its certificate is not valid)"},
		{x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x.example"}, "(its certificate is for another name)"},
		{os.ErrDeadlineExceeded, "(no answer)"},
	} {
		got := explainRequest(&url.Error{Op: "Get", URL: "https://x.example/simple/uv/", Err: c.err}).Error()
		if !strings.HasPrefix(got, `cannot reach "x.example"`) || !strings.HasSuffix(got, c.want) || strings.Contains(got, "127.0.0.53") {
			t.Errorf("%v: got %s", c.err, got)
		}
	}
	if got := explainRequest(&url.Error{Op: "Get", URL: "https://[::1/", Err: syscall.ECONNREFUSED}); !errors.Is(got, syscall.ECONNREFUSED) || got.Error() != "connection refused" {
		t.Errorf("an address that is not understood: got %v", got)
	}
	rule := errors.New("it comes from elsewhere")
	if got := explainRequest(&url.Error{Op: "Get", URL: "https://x.example/", Err: rule}); !errors.Is(got, rule) || got.Error() != rule.Error() {
		t.Errorf("a rule of ours: got %v", got)
	}
}
