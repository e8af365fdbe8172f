package images

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// registryOf is a transport to a registry that has the host's image as py:3, and no other
// way to reach it.
func registryOf(t *testing.T) trip {
	t.Helper()
	h := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	srv := httptest.NewServer(h)
	defer srv.Close()
	push(t, strings.TrimPrefix(srv.URL, "http://")+"/py:3", hostImage(t))
	return func(req *http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		resp := rec.Result()
		resp.Request = req
		return resp, nil
	}
}

// A watched body remembers whether it was closed.
type watched struct {
	io.ReadCloser
	closed bool
}

func (w *watched) Close() error {
	w.closed = true
	return w.ReadCloser.Close()
}

// TestNothingIsLeftOfRequests: else their connections and timers would stay for as long as
// the program runs, which asks again and again.
func TestNothingIsLeftOfRequests(t *testing.T) {
	inner := registryOf(t)
	for _, ref := range []string{"registry.example/py:3", "registry.example/py:4"} {
		var mu sync.Mutex
		bodies, contexts, manifests := map[string]*watched{}, map[string]context.Context{}, 0
		registry := trip(func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			which := req.URL.Path
			if strings.Contains(which, "/manifests/") {
				manifests++
				which += strings.Repeat(" again", manifests-1)
			}
			contexts[which] = req.Context()
			if manifests == 1 && strings.Contains(which, "/manifests/") {
				return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
			}
			resp, err := inner(req)
			if manifests == 2 && strings.Contains(which, "/manifests/") {
				resp.StatusCode = http.StatusServiceUnavailable
			}
			bodies[which] = &watched{ReadCloser: resp.Body}
			resp.Body = bodies[which]
			return resp, err
		})
		err := pullAll(Puller{Transport: registry}, ref)
		if found := strings.HasSuffix(ref, ":3"); (err == nil) != found || manifests != 3 {
			t.Errorf("%s: asked %d times: %v", ref, manifests, err)
		}
		mu.Lock()
		for which, body := range bodies {
			if !body.closed {
				t.Errorf("%s: the answer to %s stays open", ref, which)
			}
		}
		for which, ctx := range contexts {
			if ctx.Err() == nil {
				t.Errorf("%s: the request of %s goes on", ref, which)
			}
		}
		mu.Unlock()
	}
}

// TestPullsShareAConnection: a handshake for each would be slow, and an unused connection
// would stay of each.
func TestPullsShareAConnection(t *testing.T) {
	var mu sync.Mutex
	from := map[string]bool{}
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/manifests/") && strings.HasPrefix(r.UserAgent(), "toolcell") {
				mu.Lock()
				from[r.RemoteAddr] = true
				mu.Unlock()
			}
			h.ServeHTTP(w, r)
		})
	})
	push(t, host+"/py:3", hostImage(t))
	for range 2 {
		if _, err := (Puller{}).Image(t.Context(), host+"/py:3"); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(from) != 1 {
		t.Errorf("the manifest was asked for over %d connections", len(from))
	}
}

// TestBlobsAreNotUnpackedOnTheWay: some servers call a file.gz the packed form of a file if
// the client takes that, and their answer would then arrive unpacked.
func TestBlobsAreNotUnpackedOnTheWay(t *testing.T) {
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			unpacks := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") && unpacks {
				w.Header().Set("Content-Encoding", "gzip")
			}
			h.ServeHTTP(w, r)
		})
	})
	push(t, host+"/py:3", hostImage(t))
	if err := pullAll(Puller{}, host+"/py:3"); err != nil {
		t.Error(err)
	}
}

// TestCancelledDownloadIsNoOutage, and says why it ended.
func TestCancelledDownloadIsNoOutage(t *testing.T) {
	inner, enough := registryOf(t), errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	silence := false
	img, err := Puller{Transport: trip(func(req *http.Request) (*http.Response, error) {
		resp, err := inner(req)
		if silence {
			resp.Body = io.NopCloser(io.MultiReader(io.LimitReader(resp.Body, 100), canceling{cancel, enough}, silent{req}))
		}
		return resp, err
	})}.Image(ctx, "registry.example/py:3")
	if err != nil {
		t.Fatal(err)
	}
	silence = true
	if _, err := readImage(img); !errors.Is(err, enough) || errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// canceling is an empty part of a body, at which the user gives up.
type canceling struct {
	cancel context.CancelCauseFunc
	cause  error
}

func (c canceling) Read([]byte) (int, error) {
	c.cancel(c.cause)
	return 0, io.EOF
}
