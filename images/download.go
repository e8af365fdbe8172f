package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A download reads one blob of a registry. When the connection breaks, it resumes.
type download struct {
	*repository
	path   string
	size   int64 // from the registry, -1 if unknown
	ctx    context.Context
	cancel context.CancelFunc

	mu   sync.Mutex // guards body: Close may come while Read waits
	body io.ReadCloser

	at      int64 // bytes delivered
	broken  int   // failed connections in a row
	resumed int64 // where the last one began
}

// healthyBytes is how much a connection must deliver before its break counts as the first.
const healthyBytes = 1 << 20

func (r *repository) download(path string) (*download, error) {
	d := &download{repository: r, path: path, size: -1}
	d.ctx, d.cancel = context.WithCancel(r.ctx)
	if err := d.connect(); err != nil {
		d.cancel()
		return nil, err
	}
	return d, nil
}

// connect requests the rest of the blob.
func (d *download) connect() error {
	header := http.Header{}
	if d.at > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", d.at))
	}
	resp, err := d.get(d.ctx, d.path, header) //nolint:bodyclose // Close does, and resume
	if err != nil {
		return d.explain(d.ctx, err)
	}
	d.body, d.resumed = resp.Body, d.at
	switch {
	case resp.StatusCode == http.StatusPartialContent:
		// Content-Range: bytes 100-199/200 (RFC 9110, section 14.4)
		if want := fmt.Sprintf("bytes %d-", d.at); !strings.HasPrefix(resp.Header.Get("Content-Range"), want) {
			d.body.Close()
			text := fmt.Sprintf("%s was asked for %s and sent %s", d.name, want, printable(resp.Header.Get("Content-Range"), 100))
			return &RegistryError{text, laterAdvice, true, errNotResumed}
		}
		return nil
	case d.size < 0:
		d.size = resp.ContentLength
	}
	// A server without support for ranges begins again.
	if _, err := io.CopyN(io.Discard, d.body, d.at); err != nil {
		d.body.Close()
		return d.explain(d.ctx, fmt.Errorf("%w: %w: %w", ErrUnavailable, errNotResumed, err))
	}
	return nil
}

func (d *download) Read(p []byte) (int, error) {
	for {
		d.mu.Lock()
		body := d.body
		d.mu.Unlock()
		n, err := body.Read(p)
		d.at += int64(n)
		if err == io.EOF && d.at < d.size { //nolint:errorlint // an error that wraps io.EOF is no end
			err = fmt.Errorf("%w: %w", ErrUnavailable, io.ErrUnexpectedEOF)
		}
		switch {
		case err == nil, err == io.EOF: //nolint:errorlint // the same
			return n, err
		case d.ctx.Err() != nil || !errors.Is(err, ErrUnavailable):
			return n, err
		}
		if err := d.resume(err); err != nil {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
	}
}

var errNotResumed = errors.New("the download cannot be resumed")

// resume connects again after a pause. When connections broke too often, it returns how the
// last one did.
func (d *download) resume(broke error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.body.Close()
	if d.at-d.resumed >= healthyBytes {
		d.broken = 0
	}
	for {
		d.broken++
		if d.broken >= maxTries {
			return d.explain(d.ctx, broke)
		}
		select {
		case <-d.ctx.Done():
			return context.Cause(d.ctx)
		case <-time.After(backoff(d.firstPause, d.broken)):
		}
		if broke = d.connect(); !errors.Is(broke, ErrUnavailable) {
			return broke
		}
	}
}

// Close may be called during a Read in another goroutine, which it interrupts.
func (d *download) Close() error {
	d.cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.body.Close()
}
