package packages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
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

// jobOf begins a request of a store whose index answers like this.
func jobOf(t *testing.T, s *Store, answers ...scriptedAnswer) (*job, *scripted) {
	t.Helper()
	server := &scripted{answers: answers}
	s.client = &http.Client{Transport: server}
	j, err := s.begin(Request{Index: "https://index.example/simple"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return j, server
}

const scriptedWheel = "https://index.example/files/a.whl"

// fetchScripted downloads the wheel of a scripted server.
func (j *job) fetchScripted(t *testing.T) error {
	t.Helper()
	return j.download(t.Context(), scriptedWheel, sha([]byte("wheel")), filepath.Join(t.TempDir(), "a.whl"), 100, func(int64) {})
}

// TestWhatCannotGetBetterIsNotTriedAgain: an index is not asked in vain.
func TestWhatCannotGetBetterIsNotTriedAgain(t *testing.T) {
	wrong := func(context.Context) io.Reader { return strings.NewReader("other") }
	for _, c := range []struct {
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
		j, server := jobOf(t, newStore(t), c.answer)
		file := filepath.Join(t.TempDir(), c.file)
		err := j.download(t.Context(), scriptedWheel, sha([]byte("wheel")), file, 100, func(int64) {})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || len(server.asked) != c.asked {
			t.Errorf("%d, %s: got %v, want %q; asked %d times, not %d", c.answer.code, c.file, err, c.want, len(server.asked), c.asked)
		}
	}
}

// TestConnectionsAreGivenBack, and what watches them ends.
func TestConnectionsAreGivenBack(t *testing.T) {
	page := func(context.Context) io.Reader { return strings.NewReader(`<a href="a.whl">`) }
	j, server := jobOf(t, newStore(t), scriptedAnswer{code: 503}, scriptedAnswer{err: errors.New("broken")}, scriptedAnswer{code: 200}, scriptedAnswer{code: 200, body: page}, scriptedAnswer{code: 404})
	if err := j.fetchScripted(t); err != nil {
		t.Error(err)
	}
	if _, err := j.find(t.Context(), "https://index.example/simple/a/", "a.whl"); err != nil {
		t.Error(err)
	}
	if err := j.fetchScripted(t); err == nil {
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
	if len(server.asked) != 5 {
		t.Errorf("%d requests", len(server.asked))
	}
}

func TestServersSayWhenToAskAgain(t *testing.T) {
	s := newStore(t)
	synctest.Test(t, func(t *testing.T) {
		j, server := jobOf(t, s, scriptedAnswer{code: 503, header: http.Header{"Retry-After": {"30"}}}, scriptedAnswer{code: 200})
		start := time.Now()
		if err := j.fetchScripted(t); err != nil || len(server.asked) != 2 || time.Since(start) != 30*time.Second {
			t.Errorf("got %v, %d requests in %s", err, len(server.asked), time.Since(start))
		}
	})
}

// TestSlowServersAreWaitedFor as long as something comes.
func TestSlowServersAreWaitedFor(t *testing.T) {
	s := newStore(t)
	slow := func(pause time.Duration) scriptedAnswer {
		return scriptedAnswer{code: 200, body: func(ctx context.Context) io.Reader { return &slowBody{ctx, pause, strings.NewReader("wheel")} }}
	}
	synctest.Test(t, func(t *testing.T) {
		j, server := jobOf(t, s, slow(s.stall-time.Second))
		if err := j.fetchScripted(t); err != nil || len(server.asked) != 1 {
			t.Errorf("got %v, %d requests", err, len(server.asked))
		}
		want := fmt.Sprintf("the server sent nothing for %s", s.stall)
		for name, answer := range map[string]scriptedAnswer{"a slower one": slow(s.stall + time.Second), "no answer": {}} {
			j, server := jobOf(t, s, answer)
			if err := j.fetchScripted(t); err == nil || err.Error() != want || len(server.asked) != maxTries {
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
		j, server := jobOf(t, newStore(t), scriptedAnswer{code: 200})
		resp, err := j.get(t.Context(), address, "")
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
	if !exists(full) {
		t.Skip("needs " + full)
	}
	counted := int64(0)
	err := writeVerified(strings.NewReader("wheel"), sha([]byte("wheel")), full, 100, func(n int64) { counted += n })
	if err == nil || !strings.Contains(err.Error(), "no space left on device") || counted != 0 {
		t.Errorf("on a full disk: got %v, %d bytes are counted", err, counted)
	}
	file := filepath.Join(t.TempDir(), "a.whl")
	if err := writeVerified(strings.NewReader("wheel"), sha([]byte("wheel")), file, 100, func(int64) {}); err != nil {
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
	j, err := newStore(t).begin(Request{Index: "https://index.example/simple"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = `cannot reach "index.example" through the proxy "127.0.0.1:1" (connection refused)`
	if err := j.fetchScripted(t); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestHeadersAreBounded: they are kept in memory, whatever an index sends.
func TestHeadersAreBounded(t *testing.T) {
	x, s := newIndex(t, nil), newStore(t)
	var size atomic.Int64
	x.answers(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("X-Long", strings.Repeat("x", int(size.Load())))
		return true
	})
	j, err := s.begin(x.request("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int64]string{maxHeader - 1000: "", maxHeader: "exceeded"} {
		size.Store(n)
		resp, err := j.get(t.Context(), x.URL+"/files/a.whl", "")
		if err == nil {
			resp.Body.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: got %v, want %q", n, err, want)
		}
	}
}

// A countedConn counts those that are open.
type countedConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

func TestCloseEndsConnections(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	var open, made atomic.Int64
	s.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		made.Add(1)
		return &countedConn{Conn: conn, open: &open}, nil
	}
	if _, err := s.Ensure(t.Context(), x.request("a"), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || made.Load() == 0 || open.Load() > 0 {
		t.Errorf("%v, %d of %d connections stay", err, open.Load(), made.Load())
	}
}
