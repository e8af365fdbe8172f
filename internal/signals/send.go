package signals

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/retry"
)

// Bounds on what a collector can take from this process beside the time of a batch, which
// OTEL_EXPORTER_OTLP_TIMEOUT bounds.
const (
	maxHeader  = 64 << 10 // bytes of an answer's header
	maxAnswer  = 64 << 10 // of its body, which is read so that the connection can be used again
	firstPause = time.Second
)

// A sender sends batches to one endpoint, in a goroutine of the SDK's.
type sender struct {
	*endpoint
	client  *http.Client
	agent   string          // our name and version
	life    context.Context // ends with the process
	closing <-chan struct{} // from then on nothing is tried again
	failed  func(error)
}

func newSender(e *endpoint, agent string, life context.Context, closing <-chan struct{}, failed func(error)) *sender { //nolint:revive // the context is a field
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.MaxResponseHeaderBytes = e.tls, maxHeader
	return &sender{
		endpoint: e, agent: agent, life: life, closing: closing, failed: failed,
		client: &http.Client{
			Transport: transport,
			// The headers, which may hold a key, are for this host alone.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// send sends one batch. It is tried again if the collector asks for that or cannot be reached,
// until the time of the batch is up. What fails is logged and lost.
func (s *sender) send(ctx context.Context, batch []byte) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("no answer within %s", s.timeout))
	defer cancel()
	defer context.AfterFunc(s.life, contain.Func("ending an export", cancel))()
	for pause := firstPause; ; pause *= 2 {
		wait, err := s.post(ctx, batch)
		if err == nil || errors.Is(err, context.Canceled) { // at the end, of which Close says what was lost
			return
		}
		if wait < 0 || !s.pause(ctx, max(wait, pause)) {
			s.failed(fmt.Errorf("sending %s to %s: %w", s.signal, s.url.Host, err))
			return
		}
	}
}

// pause waits, and reports whether there is time to try again.
func (s *sender) pause(ctx context.Context, d time.Duration) bool {
	if until, ok := ctx.Deadline(); ok && time.Until(until) < d {
		return false
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
	case <-s.closing:
	}
	return false
}

// post sends a batch once. wait is how long the collector wants to be left alone, less than 0 if
// another try makes no sense.
func (s *sender) post(ctx context.Context, batch []byte) (wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url.String(), nil)
	if err != nil {
		return -1, withoutURL(err)
	}
	maps.Copy(req.Header, s.headers)
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", s.agent)
	if s.gzip {
		req.Header.Set("Content-Encoding", "gzip")
		batch = zipped(batch)
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(batch)), int64(len(batch))
	resp, err := s.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return -1, context.Cause(ctx)
		}
		return 0, withoutURL(err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // it says nothing that would be acted on
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return retry.After(resp), statusError(resp.StatusCode)
	}
	return -1, statusError(resp.StatusCode)
}

// statusError names a status; the words of the collector are not trusted.
func statusError(code int) error {
	return fmt.Errorf("the collector answered %d %s", code, http.StatusText(code))
}

// withoutURL returns an error of net/http without the URL, whose query may hold a key.
func withoutURL(err error) error {
	if in, ok := errors.AsType[*url.Error](err); ok {
		return in.Err
	}
	return err
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b) // a buffer takes all
	_ = z.Close()
	return out.Bytes()
}

// complainEvery is how often the log has an error of exporting at most.
const complainEvery = time.Minute

// complaints log errors of one kind, of which a collector that is down causes one every few seconds.
type complaints struct {
	log  *slog.Logger
	what string // the message

	mu   sync.Mutex
	last time.Time
	more int // since then
}

func (c *complaints) say(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.last) < complainEvery {
		c.more++
		return
	}
	args := []any{"err", err}
	if c.more > 0 {
		args = append(args, "more", c.more)
	}
	c.log.Warn(c.what, args...)
	c.last, c.more = time.Now(), 0
}
