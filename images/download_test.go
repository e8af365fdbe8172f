package images

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
)

// errBreaks is the end of a connection that breaks.
var errBreaks = io.ErrUnexpectedEOF

// A piece is what a registry sends of a blob for one request.
type piece struct {
	text string
	end  error
	size int    // its Content-Length, -1 for none
	at   string // its Content-Range, "" for a whole blob
}

// A watchedBody counts the bodies that are not closed.
type watchedBody struct {
	io.Reader
	open   *atomic.Int32
	closed atomic.Bool
}

func watch(r io.Reader, open *atomic.Int32) *watchedBody {
	open.Add(1)
	return &watchedBody{Reader: r, open: open}
}

func (b *watchedBody) Close() error {
	if !b.closed.Swap(true) {
		b.open.Add(-1)
	}
	return nil
}

// openBlob opens a blob of a registry whose answers to requests for it are these.
func openBlob(t *testing.T, answers http.RoundTripper) (io.ReadCloser, error) {
	t.Helper()
	repo, err := name.NewRepository("registry.invalid/py")
	if err != nil {
		t.Fatal(err)
	}
	p := Puller{AuthFile: "/dev/null", Backoff: 1, Transport: trip(func(r *http.Request) (*http.Response, error) {
		if isForBlob(r) {
			return answers.RoundTrip(r)
		}
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	})}
	r, err := p.openRepository(t.Context(), repo, false)
	if err != nil {
		t.Fatal(err)
	}
	return r.open("blobs/sha256/" + strings.Repeat("0", 64))
}

// inPieces answers with each piece in turn, and then with 503.
func inPieces(pieces []piece, open *atomic.Int32) http.RoundTripper {
	return trip(func(r *http.Request) (*http.Response, error) {
		resp := &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Request: r, Body: http.NoBody}
		if len(pieces) == 0 {
			return resp, nil
		}
		p := pieces[0]
		pieces = pieces[1:]
		resp.StatusCode, resp.ContentLength = http.StatusOK, int64(p.size)
		if p.at != "" {
			resp.StatusCode = http.StatusPartialContent
			resp.Header.Set("Content-Range", p.at)
		}
		// The end comes with the last bytes, as a reader may do.
		resp.Body = watch(iotest.DataErrReader(io.MultiReader(strings.NewReader(p.text), iotest.ErrReader(p.end))), open)
		return resp, nil
	})
}

// inBreaks has each of n connections break after so many bytes, except for the last one.
func inBreaks(n, after int) (all string, pieces []piece) {
	all = strings.Repeat("x", n*after)
	for i := range n {
		p := piece{all[:after], errBreaks, len(all), "bytes " + strconv.Itoa(i*after) + "-"}
		if i == 0 {
			p.at = ""
		}
		if i == n-1 {
			p.end = io.EOF
		}
		pieces = append(pieces, p)
	}
	return all, pieces
}

func TestDownloadsDeliverEachByteOnce(t *testing.T) {
	const all = "0123456789"
	long, healthy := inBreaks(2*maxTries, healthyBytes)
	_, sick := inBreaks(2*maxTries, healthyBytes-1)
	for name, c := range map[string]struct {
		pieces []piece
		want   string
		err    error
	}{
		"whole":           {[]piece{{all, io.EOF, 10, ""}}, all, nil},
		"of unknown size": {[]piece{{all, io.EOF, -1, ""}}, all, nil},
		"short ranges": {[]piece{
			{"0123", errBreaks, 10, ""}, {"456", io.EOF, 3, "bytes 4-6/10"}, {"789", io.EOF, 3, "bytes 7-9/10"},
		}, all, nil},
		"a short body": {[]piece{{"0123", io.EOF, 10, ""}, {"456789", io.EOF, 6, "bytes 4-9/10"}}, all, nil},
		"a range that was not asked for": {[]piece{
			{"0123", errBreaks, 10, ""}, {all, io.EOF, 10, "bytes 0-9/10"}, {"456789", io.EOF, 6, "bytes 4-9/10"},
		}, all, nil},
		"less than before": {[]piece{
			{"0123", errBreaks, -1, ""}, {"012", io.EOF, -1, ""}, {all, io.EOF, -1, ""},
		}, all, nil},
		"a break after each of many bytes": {healthy, long, nil},
		"a break after each of few bytes":  {sick, long[:maxTries*(healthyBytes-1)], ErrUnavailable},
	} {
		var open atomic.Int32
		blob, err := openBlob(t, inPieces(c.pieces, &open))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := io.ReadAll(blob)
		if string(got) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: got %d bytes %.20q, want %d: %v", name, len(got), got, len(c.want), err)
		}
		if err := blob.Close(); err != nil || open.Load() != 0 {
			t.Errorf("%s: %d bodies are still open: %v", name, open.Load(), err)
		}
	}
}

// TestDownloadThatCannotBeResumedSaysWhy: a refusal is no outage.
func TestDownloadThatCannotBeResumedSaysWhy(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusNotFound:           "registry.invalid has lost a part of the image",
		http.StatusForbidden:          "registry.invalid refused access: the image is private or does not exist",
		http.StatusServiceUnavailable: "registry.invalid answers 503 Service Unavailable",
	} {
		synctest.Test(t, func(t *testing.T) {
			var open atomic.Int32
			first := inPieces([]piece{{"0123", errBreaks, 10, ""}}, &open)
			blob, err := openBlob(t, trip(func(r *http.Request) (*http.Response, error) {
				resp, err := first.RoundTrip(r)
				if resp.StatusCode == http.StatusServiceUnavailable {
					resp.StatusCode = status
				}
				return resp, err
			}))
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.ReadAll(blob)
			if err == nil || err.Error() != want || errors.Is(err, ErrUnavailable) != (status == http.StatusServiceUnavailable) {
				t.Errorf("%d: got %v, want %s", status, err, want)
			}
			if err := blob.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A silentBody sends nothing until its request ends. As in net/http, Close waits for a Read.
type silentBody struct {
	ctx   context.Context
	ended chan struct{}
}

func (b silentBody) Read([]byte) (int, error) {
	defer close(b.ended)
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func (b silentBody) Close() error {
	<-b.ended
	return nil
}

// TestClosingADownloadInterruptsIt at once, not after stallTimeout.
func TestClosingADownloadInterruptsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blob, err := openBlob(t, trip(func(r *http.Request) (*http.Response, error) {
			body := silentBody{r.Context(), make(chan struct{})}
			return &http.Response{StatusCode: http.StatusOK, Body: body, ContentLength: 10, Request: r}, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		read := make(chan error, 1)
		go func() {
			_, err := blob.Read(make([]byte, 10))
			read <- err
		}()
		synctest.Wait()
		start := time.Now()
		if err := blob.Close(); err != nil || time.Since(start) != 0 {
			t.Errorf("closed after %s: %v", time.Since(start), err)
		}
		if err := <-read; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// TestClosedDownloadsAreAtTheirEnd: a Read that comes later fails, and does not wait.
func TestClosedDownloadsAreAtTheirEnd(t *testing.T) {
	var open atomic.Int32
	blob, err := openBlob(t, inPieces([]piece{{"0123", errBreaks, 10, ""}}, &open))
	if err != nil {
		t.Fatal(err)
	}
	if err := blob.Close(); err != nil {
		t.Error(err)
	}
	if n, err := io.Copy(io.Discard, blob); !errors.Is(err, context.Canceled) {
		t.Errorf("read %d bytes: %v", n, err)
	}
	if err := blob.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}
