package images

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/internal/retry"
)

const (
	maxTries       = 5
	defaultBackoff = 500 * time.Millisecond
	// maxWait is the longest wait that a registry may ask for. A longer one is an error, so
	// that the user learns of it.
	maxWait = time.Minute
)

// backoff returns the pause before the next try, after n have failed: it doubles each time,
// less a random part of up to a half, so that clients that were refused together do not
// return together.
func backoff(first time.Duration, n int) time.Duration {
	d := first << (n - 1)
	return d/2 + rand.N(d/2+1)
}

// A retryTransport repeats a request if the registry is overloaded or the connection breaks.
// It does not repeat one that timed out, so that a network that drops packets costs only
// seconds, unless it is for a blob: then the registry has answered before.
type retryTransport struct {
	inner      http.RoundTripper
	firstPause time.Duration
}

func (r *retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		return r.inner.RoundTrip(req)
	}
	var answered *http.Response // of the previous try
	for n := 1; ; n++ {
		resp, err := r.inner.RoundTrip(req)
		if answered != nil && err != nil && errors.Is(req.Context().Err(), context.DeadlineExceeded) {
			return answered, nil // more informative than a timeout
		}
		if n == maxTries || !worthRetrying(req, resp, err) {
			return resp, err
		}
		wait, asked := backoff(r.firstPause, n), time.Duration(0)
		if err == nil {
			asked = retry.After(resp)
		}
		if end, ok := req.Context().Deadline(); ok && asked <= maxWait && time.Until(end) < max(wait, asked) {
			return resp, err // as above
		}
		if err == nil {
			answered = inMemory(resp)
			if asked > maxWait {
				return nil, &waitError{resp.StatusCode, asked}
			}
			wait = max(wait, asked)
		}
		select {
		case <-req.Context().Done(): // the next try fails at once
		case <-time.After(wait):
		}
	}
}

// inMemory reads the body of a refusal, so that the connection can be reused.
func inMemory(resp *http.Response) *http.Response {
	body, _ := io.ReadAll(resp.Body) // as much as guardTransport lets through
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp
}

func worthRetrying(req *http.Request, resp *http.Response, err error) bool {
	if err != nil {
		return errors.Is(err, errNoAnswer) && isForBlob(req) ||
			errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
			errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	}
	return resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented
}
