package images

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

const (
	maxTries       = 5
	defaultBackoff = 500 * time.Millisecond
	// maxWait is the longest that a registry may ask us to wait. A longer wait is an
	// error, so that the user learns of it.
	maxWait = time.Minute
)

// backoff returns the pause before the next try, after n have failed: twice as long
// each time, less up to a half by chance, so that clients that were refused at the
// same time do not come back at the same time.
func backoff(first time.Duration, n int) time.Duration {
	d := first << (n - 1)
	return d/2 + rand.N(d/2+1)
}

// A retryTransport asks again when a registry has too much to do, or a connection
// breaks. A timeout is not tried again, so that a network that swallows packets costs
// only seconds. That of a blob is: the registry has answered before.
type retryTransport struct {
	inner      http.RoundTripper
	firstPause time.Duration
}

func (r *retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		return r.inner.RoundTrip(req)
	}
	var answered *http.Response // to the try before
	for n := 1; ; n++ {
		resp, err := r.inner.RoundTrip(req)
		if answered != nil && err != nil && errors.Is(req.Context().Err(), context.DeadlineExceeded) {
			return answered, nil // which tells more than that time is up
		}
		if n == maxTries || !worthRetrying(req, resp, err) {
			return resp, err
		}
		wait, asked := backoff(r.firstPause, n), time.Duration(0)
		if err == nil {
			asked = retryAfter(resp)
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

// inMemory reads what a refusal says, so that its connection can be used again.
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

// retryAfter reads how long a server asks to wait: seconds or a date (RFC 9110,
// section 10.2.3).
func retryAfter(resp *http.Response) time.Duration {
	value := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
