package signals

import (
	"bufio"
	"bytes"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
)

// A lockedBuffer is a log that may be written while it is read.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestMain(m *testing.M) {
	closeTimeout = 2 * time.Minute // those that answer are waited for
	os.Exit(m.Run())
}

// hostile are collectors that do not do what they should: each handles a connection.
var hostile = map[string]func(net.Conn){
	"hangs":           func(net.Conn) { select {} },
	"hangs up":        func(c net.Conn) { c.Close() },
	"garbage":         func(c net.Conn) { _, _ = c.Write(bytes.Repeat([]byte("\x00\xffgarbage\n"), 1000)); c.Close() },
	"endless header":  func(c net.Conn) { pour(c, "HTTP/1.1 200 OK\r\nX: ") },
	"endless body":    func(c net.Conn) { pour(c, "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n\r\n") },
	"endless error":   func(c net.Conn) { pour(c, "HTTP/1.1 400 No\r\n\r\n") },
	"endless interim": func(c net.Conn) { pour(c, "HTTP/1.1 103 Early Hints\r\n\r\n") },
	"body that hangs": func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx")
		select {}
	},
	"wants to be left":   answer("HTTP/1.1 503 Later\r\nRetry-After: 99999\r\nContent-Length: 0\r\n\r\n"),
	"asks without end":   answer("HTTP/1.1 429 Again\r\nContent-Length: 0\r\n\r\n"),
	"wants no more":      answer("HTTP/1.1 404 Secret words\r\nContent-Length: 0\r\n\r\n"),
	"switches protocols": answer("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"),
}

func pour(c net.Conn, begin string) {
	more := []byte(begin)
	for {
		if _, err := c.Write(more); err != nil {
			return
		}
		more = bytes.Repeat([]byte("x"), 64<<10)
		if strings.Contains(begin, "103") {
			more = []byte(begin)
		}
	}
}

func answer(with string) func(net.Conn) {
	return func(c net.Conn) {
		defer c.Close()
		_, _ = io.WriteString(c, strings.Replace(with, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
	}
}

// TestCollectorsThatFailDelayNothing: what is exported costs no more than room in a queue, the
// end of the process is put off by a bounded time, and the log has one line.
func TestCollectorsThatFailDelayNothing(t *testing.T) {
	before := closeTimeout
	closeTimeout = 2 * time.Second
	t.Cleanup(func() { closeTimeout = before })
	for name, handle := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testFailing(t, "http://"+listen(t, handle), name != "endless body" && name != "body that hangs")
		})
	}
	t.Run("down", func(t *testing.T) {
		testFailing(t, "http://127.0.0.1:1", true) // a port that nothing is given
	})
	t.Run("redirects", func(t *testing.T) {
		var elsewhere atomic.Int32
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
		defer other.Close()
		web := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
		defer web.Close()
		testFailing(t, web.URL, true)
		if elsewhere.Load() > 0 {
			t.Error("the headers went to another host")
		}
	})
}

// endpointAt is one with more time for a batch than tests have.
func endpointAt(t *testing.T, signal, address string) *endpoint {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return &endpoint{signal: signal, url: at, timeout: time.Hour}
}

func testFailing(t *testing.T, address string, complains bool) {
	t.Helper()
	log := &lockedBuffer{}
	s := open(Options{Log: slog.New(slog.NewTextHandler(log, nil))}, endpointAt(t, "traces", address), endpointAt(t, "metrics", address), metric.CumulativeTemporalitySelector)
	for range 1000 {
		carryOut(s, nil)
	}
	s.Close()
	lines := strings.Count(log.String(), "\n")
	if complains && lines != 1 || lines > 1 || strings.Count(log.String(), "OpenTelemetry signals are lost") != lines || strings.Contains(log.String(), "internal error") || strings.Contains(log.String(), "ecret words") {
		t.Errorf("logged:\n%s", log)
	}
}

// listen has each connection handled, and returns the address.
func listen(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = http.ReadRequest(bufio.NewReader(c)) // its header
				handle(c)
			}()
		}
	}()
	return l.Addr().String()
}

// TestQueueIsBounded: what a collector that is slow does not take is dropped.
func TestQueueIsBounded(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "20")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10")
	var requests atomic.Int32
	began, goOn := make(chan struct{}), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if requests.Add(1) == 1 {
			close(began)
		}
		<-goOn
	}))
	defer web.Close()
	s := open(Options{Log: quiet(t)}, endpointAt(t, "traces", web.URL), nil, metric.CumulativeTemporalitySelector)
	for range 2 {
		carryOut(s, nil) // nine spans
	}
	<-began
	for range 1000 {
		carryOut(s, nil)
	}
	close(goOn)
	s.Close()
	if n := requests.Load(); n < 2 || n > 4 { // of ten spans: one that began, twenty in the queue, and what had been taken from it
		t.Errorf("%d batches were sent", n)
	}
}

// TestBatchIsSentAgainIfTheCollectorAsks for that, when it asks for it.
func TestBatchIsSentAgainIfTheCollectorAsks(t *testing.T) {
	var bodies []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if bodies = append(bodies, string(body)); len(bodies) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer web.Close()
	s := newSender(endpointAt(t, "traces", web.URL), "toolcell", t.Context(), nil, func(err error) { t.Error(err) })
	s.send(t.Context(), []byte("a batch"))
	if len(bodies) != 2 || bodies[0] != "a batch" || bodies[1] != bodies[0] {
		t.Errorf("sent %q", bodies)
	}
}

// TestNothingIsTriedAgainAtTheEnd of the process.
func TestNothingIsTriedAgainAtTheEnd(t *testing.T) {
	requests := 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer web.Close()
	closing := make(chan struct{})
	close(closing)
	var failed error
	newSender(endpointAt(t, "traces", web.URL+"?key=hush"), "toolcell", t.Context(), closing, func(err error) { failed = err }).send(t.Context(), nil)
	if requests != 1 || failed == nil || !strings.HasSuffix(failed.Error(), "the collector answered 503 Service Unavailable") || strings.Contains(failed.Error(), "hush") {
		t.Errorf("%d requests, then %v", requests, failed)
	}
}

func TestComplaintsAreAtMostOneAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := &complaints{log: slog.New(slog.NewTextHandler(&log, nil)), what: "lost"}
		for range 130 {
			c.say(io.EOF)
			time.Sleep(time.Second)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 3 || strings.Contains(lines[0], "more=") || !strings.HasSuffix(lines[1], "err=EOF more=59") {
			t.Errorf("logged:\n%s", &log)
		}
	})
}

// TestCertificatesAreThoseOfTheVariables.
func TestCertificatesAreThoseOfTheVariables(t *testing.T) {
	var got atomic.Int32
	web := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	defer web.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", web.URL)
	log := &lockedBuffer{}
	for _, trusted := range []string{"", file} {
		t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", trusted)
		s := Open(Options{Log: slog.New(slog.NewTextHandler(log, nil))})
		carryOut(s, nil)
		s.Close()
	}
	if got.Load() != 1 || strings.Count(log.String(), "certificate signed by unknown authority") != 1 {
		t.Errorf("%d requests; logged:\n%s", got.Load(), log)
	}
}

// BenchmarkOff is what a run with one call costs if nothing is exported.
func BenchmarkOff(b *testing.B) {
	for b.Loop() {
		carryOut(nil, nil)
	}
}

// BenchmarkOn is the same with a collector, which decodes nothing.
func BenchmarkOn(b *testing.B) {
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer web.Close()
	b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", web.URL)
	s := Open(Options{Log: slog.New(slog.DiscardHandler)})
	for b.Loop() {
		carryOut(s, nil)
	}
	b.StopTimer()
	s.Close()
}
