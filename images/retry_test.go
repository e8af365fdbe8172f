package images

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// failing makes a registry that answers the first requests below /v2/py with
// something else.
func failing(times int32, answer func(http.ResponseWriter)) (wrap func(http.Handler) http.Handler, asked *atomic.Int32) {
	asked = &atomic.Int32{}
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v2/py/") && asked.Add(1) <= times {
				answer(w)
				return
			}
			h.ServeHTTP(w, r)
		})
	}, asked
}

func TestBusyRegistryIsAskedAgain(t *testing.T) {
	for _, status := range []int{429, 500, 502, 503, 504} {
		wrap, asked := failing(maxTries-1, func(w http.ResponseWriter) { w.WriteHeader(status) })
		host := serve(t, wrap)
		push(t, host+"/py:3", hostImage(t))
		asked.Store(0)
		if err := pullAll(Puller{}, host+"/py:3"); err != nil {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestRegistryThatStaysBusyIsGivenUp(t *testing.T) {
	wrap, asked := failing(1000, func(w http.ResponseWriter) { w.WriteHeader(503) })
	err := pullAll(Puller{}, serve(t, wrap)+"/py:3")
	if !errors.Is(err, ErrUnavailable) || asked.Load() != maxTries {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}

func TestAnswersThatWillNotChangeAreNotAskedForAgain(t *testing.T) {
	for _, status := range []int{400, 403, 404, 501} {
		wrap, asked := failing(1000, func(w http.ResponseWriter) { w.WriteHeader(status) })
		if err := pullAll(Puller{}, serve(t, wrap)+"/py:3"); err == nil || asked.Load() != 1 {
			t.Errorf("%d: asked %d times: %v", status, asked.Load(), err)
		}
	}
}

func TestRetryAfterIsHonored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		r := &retryTransport{firstPause: time.Millisecond, inner: trip(func(req *http.Request) (*http.Response, error) {
			resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: req}
			if asked++; asked == 1 {
				resp.StatusCode = http.StatusTooManyRequests
				resp.Header.Set("Retry-After", "30")
			}
			return resp, nil
		})}
		req, err := http.NewRequest(http.MethodGet, "https://registry.invalid/v2/", nil)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		resp, err := r.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if waited := time.Since(start); resp.StatusCode != http.StatusOK || asked != 2 || waited != 30*time.Second {
			t.Errorf("%d after %d requests and %s", resp.StatusCode, asked, waited)
		}
	})
}

// Each pause is twice as long as the one before, less up to a half by chance.
func TestPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		r := &retryTransport{firstPause: time.Second, inner: trip(func(*http.Request) (*http.Response, error) {
			at = append(at, time.Now())
			return nil, io.ErrUnexpectedEOF
		})}
		req, err := http.NewRequest(http.MethodGet, "https://registry.invalid/v2/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := r.RoundTrip(req); !errors.Is(err, io.ErrUnexpectedEOF) {
			resp.Body.Close()
			t.Fatal(err)
		}
		if len(at) != maxTries {
			t.Fatalf("%d tries", len(at))
		}
		for i, longest := 1, time.Second; i < len(at); i, longest = i+1, 2*longest {
			if pause := at[i].Sub(at[i-1]); pause < longest/2 || pause > longest {
				t.Errorf("pause %d is %s, want %s to %s", i, pause, longest/2, longest)
			}
		}
	})
}

func TestLongRetryAfterIsToldInsteadOfWaitedFor(t *testing.T) {
	for _, value := range []string{"3600", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)} {
		wrap, asked := failing(1000, func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", value)
			w.WriteHeader(429)
		})
		err := pullAll(Puller{}, serve(t, wrap)+"/py:3")
		if !errors.Is(err, ErrUnavailable) || asked.Load() != 1 || !strings.Contains(err.Error(), "asks to wait 1h0m0s") && !strings.Contains(err.Error(), "asks to wait 59m") {
			t.Errorf("%s: asked %d times: %v", value, asked.Load(), err)
		}
	}
}

// TestNoTimeForAnotherTry: the registry's answer comes back, not that time is up.
func TestNoTimeForAnotherTry(t *testing.T) {
	wrap, asked := failing(1000, func(w http.ResponseWriter) { w.WriteHeader(503) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := Puller{Backoff: time.Hour}.Image(ctx, serve(t, wrap)+"/py:3")
	if err == nil || !strings.Contains(err.Error(), "answers 503 Service Unavailable") || asked.Load() != 1 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}

// TestTimeIsUpDuringAnotherTry: what the registry has answered before comes back.
func TestTimeIsUpDuringAnotherTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		registry := trip(func(req *http.Request) (*http.Response, error) {
			resp := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}
			if strings.Contains(req.URL.Path, "/manifests/") {
				if asked++; asked > 1 {
					<-req.Context().Done()
					return nil, req.Context().Err()
				}
				resp.StatusCode, resp.Body = http.StatusInternalServerError, io.NopCloser(strings.NewReader("no disk"))
			}
			return resp, nil
		})
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errors.New("too slow"))
		defer cancel()
		_, err := Puller{Transport: registry}.Image(ctx, "registry.invalid/py:3")
		if err == nil || !strings.Contains(err.Error(), "answers 500 Internal Server Error") || asked != 2 {
			t.Errorf("asked %d times: %v", asked, err)
		}
	})
}

// TestRefusalKeepsItsWords though its body was read to free the connection for another try.
func TestRefusalKeepsItsWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		registry := trip(func(req *http.Request) (*http.Response, error) {
			resp := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}
			if strings.Contains(req.URL.Path, "/manifests/") {
				if asked++; asked > 1 {
					<-req.Context().Done()
					return nil, req.Context().Err()
				}
				resp.StatusCode = http.StatusInternalServerError
				resp.Body = io.NopCloser(strings.NewReader(`{"errors":[{"code":"UNKNOWN","message":"no disk"}]}`))
			}
			return resp, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := Puller{Transport: registry}.Image(ctx, "registry.invalid/py:3")
		if err == nil || !strings.Contains(err.Error(), "answers 500 Internal Server Error (it says: no disk)") || asked != 2 {
			t.Errorf("asked %d times: %v", asked, err)
		}
	})
}

// TestLongWaitHasAdvice: credentials help only against the limit of a rate.
func TestLongWaitHasAdvice(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusTooManyRequests: "wait so long, or " + loginAdvice, http.StatusServiceUnavailable: laterAdvice,
	} {
		wrap, _ := failing(1000, func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(status)
		})
		host := serve(t, wrap)
		err := pullAll(Puller{}, host+"/py:3")
		told := (*RegistryError)(nil)
		if !errors.As(err, &told) || told.Error() != host+" has too much to do and asks to wait 1h0m0s" || told.Advice() != want {
			t.Errorf("%d: %v, with the advice %q", status, err, told.Advice())
		}
	}
}

// TestBrokenConnectionsAreTriedAgain, but not what another try does not cure.
func TestBrokenConnectionsAreTriedAgain(t *testing.T) {
	broken := func(op string, err error) error {
		return &net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError(op, err)}
	}
	for name, tt := range map[string]struct {
		method string
		err    error
		tries  int
	}{
		"hung up":          {http.MethodGet, io.EOF, maxTries},
		"reset":            {http.MethodGet, broken("read", syscall.ECONNRESET), maxTries},
		"a broken pipe":    {http.MethodHead, broken("write", syscall.EPIPE), maxTries},
		"refused":          {http.MethodGet, broken("connect", syscall.ECONNREFUSED), 1},
		"nobody's trust":   {http.MethodGet, errors.New("no trust"), 1},
		"a login, hung up": {http.MethodPost, io.EOF, 1},
	} {
		tries := 0
		r := &retryTransport{firstPause: time.Nanosecond, inner: trip(func(*http.Request) (*http.Response, error) {
			tries++
			return nil, tt.err
		})}
		req, err := http.NewRequest(tt.method, "https://registry.invalid/v2/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := r.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		if !errors.Is(err, tt.err) || tries != tt.tries {
			t.Errorf("%s: %d tries, want %d: %v", name, tries, tt.tries, err)
		}
	}
}

// cutting makes a registry whose blobs break off after some bytes, each time.
// With ranges it sends the rest when it is asked for.
func cutting(after int, ranges bool, gets *atomic.Int32) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
				h.ServeHTTP(w, r)
				return
			}
			gets.Add(1)
			asked := r.Header.Get("Range")
			r.Header.Del("Range")
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			body, status := rec.Body.Bytes(), http.StatusOK
			if from, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(asked, "bytes="), "-")); err == nil && ranges {
				w.Header().Set("Content-Range", "bytes "+strconv.Itoa(from)+"-"+strconv.Itoa(len(body)-1)+"/"+strconv.Itoa(len(body)))
				body, status = body[from:], http.StatusPartialContent
			}
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			w.WriteHeader(status)
			if len(body) > after && (ranges || gets.Load() < 4) {
				w.Write(body[:after])
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler) // the connection breaks
			}
			w.Write(body)
		})
	}
}

func TestBrokenDownloadGoesOnWhereItWas(t *testing.T) {
	img := imageOf(t, hostPlatform(), layerOf(t, "a", "none")) // 240 KB
	for name, c := range map[string]struct {
		after  int
		ranges bool
	}{
		"with ranges":    {100_000, true},
		"without ranges": {100_000, false},
	} {
		var gets atomic.Int32
		host := serve(t, cutting(c.after, c.ranges, &gets))
		push(t, host+"/py:3", img)
		if err := pullAll(Puller{}, host+"/py:3"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := gets.Load(); n < 3 {
			t.Errorf("%s: the blobs were asked for only %d times", name, n)
		}
	}
}

func TestDownloadThatAlwaysBreaksIsGivenUp(t *testing.T) {
	var gets atomic.Int32
	host := serve(t, cutting(10, true, &gets))
	push(t, host+"/py:3", hostImage(t))
	err := pullAll(Puller{}, host+"/py:3")
	if !errors.Is(err, ErrUnavailable) || !strings.HasSuffix(err.Error(), "the connection to "+host+" broke") || gets.Load() != maxTries {
		t.Errorf("asked %d times: %v", gets.Load(), err)
	}
}

func TestWrongRangeIsRefused(t *testing.T) {
	var gets atomic.Int32
	host := serve(t, func(h http.Handler) http.Handler {
		cut := cutting(100, true, &gets)(h)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") == "" {
				cut.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Range", "bytes 0-9/10")
			w.WriteHeader(http.StatusPartialContent)
			w.Write(make([]byte, 10))
		})
	})
	push(t, host+"/py:3", hostImage(t))
	err := pullAll(Puller{}, host+"/py:3")
	if want := host + " was asked for bytes 100- and sent bytes 0-9/10"; !errors.Is(err, ErrUnavailable) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A registry that has to fetch a blob itself may take long to begin, and longer than
// we wait; a manifest is not waited for like that.
func TestBlobsGetMoreTime(t *testing.T) {
	for _, tt := range []struct {
		name, path string
		redirected bool
		answers    time.Duration // after each request
		tries      int
		took       time.Duration
	}{
		{"slow blob", "/v2/py/blobs/sha256:ab", false, 50 * time.Second, 1, 50 * time.Second},
		{"slow blob elsewhere", "/v2/py/blobs/sha256:ab", true, 50 * time.Second, 1, 50 * time.Second},
		{"silent blob", "/v2/py/blobs/sha256:ab", false, time.Hour, maxTries, maxTries * blobTimeout},
		{"slow manifest", "/v2/py/manifests/3", false, 14 * time.Second, 1, 14 * time.Second},
		{"silent manifest", "/v2/py/manifests/3", false, time.Hour, 1, answerTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				server := trip(func(req *http.Request) (*http.Response, error) {
					tries++
					select {
					case <-req.Context().Done():
						return nil, req.Context().Err()
					case <-time.After(tt.answers):
						return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
					}
				})
				r := &retryTransport{firstPause: time.Nanosecond, inner: &guardTransport{inner: server}}
				req, err := http.NewRequest(http.MethodGet, "https://registry.invalid"+tt.path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if tt.redirected {
					from := req
					if req, err = http.NewRequest(http.MethodGet, "https://files.invalid/ab", nil); err != nil {
						t.Fatal(err)
					}
					req.Response = &http.Response{Request: from}
				}
				start := time.Now()
				resp, err := r.RoundTrip(req)
				if err == nil {
					resp.Body.Close()
				}
				if silent := tt.answers == time.Hour; errors.Is(err, ErrUnavailable) != silent || !silent && err != nil {
					t.Errorf("got %v", err)
				}
				if took := time.Since(start).Round(time.Second); tries != tt.tries || took != tt.took {
					t.Errorf("%d tries in %s, want %d in %s: %v", tries, took, tt.tries, tt.took, err)
				}
			})
		})
	}
}
