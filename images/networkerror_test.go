package images

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

// TestProxyThatFails is named, with what to check. The environment is read once in a
// process, so each proxy is for a process of its own.
func TestProxyThatFails(t *testing.T) {
	const child = "IMAGES_TEST_PROXY"
	if want := os.Getenv(child); want != "" {
		err := pullAll(Puller{AuthFile: os.DevNull}, "registry.invalid/py:3")
		told := (*RegistryError)(nil)
		if !errors.As(err, &told) || told.Error() != want ||
			told.Advice() != "check HTTPS_PROXY and NO_PROXY" || !errors.Is(err, ErrUnavailable) {
			t.Errorf("got %v, want %s", err, want)
		}
		return
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer proxy.Close()
	refusing := strings.TrimPrefix(proxy.URL, "http://")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		"127.0.0.1:1": "cannot reach the proxy 127.0.0.1:1 (connection refused), through which registry.invalid would be asked",
		refusing:      "cannot reach registry.invalid through the proxy " + refusing + " (Forbidden)",
	} {
		cmd := exec.CommandContext(t.Context(), exe, "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), child+"="+want, "HTTPS_PROXY=http://"+at, "https_proxy=", "NO_PROXY=", "no_proxy=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// TestAnswerThatBreaksOff is the registry's failure, not a wrong manifest.
func TestAnswerThatBreaksOff(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	for want, body := range map[string]func(*http.Request) io.Reader{
		"the connection to registry.invalid broke (connection reset by peer)": func(*http.Request) io.Reader { return iotest.ErrReader(reset) },
		"the connection to registry.invalid broke":                            func(*http.Request) io.Reader { return iotest.ErrReader(io.ErrUnexpectedEOF) },
		"the connection to registry.invalid broke (stream error)": func(*http.Request) io.Reader {
			return iotest.ErrReader(fmt.Errorf("reading: %w", errors.New("stream error")))
		},
		"registry.invalid sent nothing for a minute": func(r *http.Request) io.Reader { return silent{r} },
	} {
		synctest.Test(t, func(t *testing.T) {
			err := pullAll(Puller{AuthFile: os.DevNull, Transport: trip(func(r *http.Request) (*http.Response, error) {
				resp := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}
				if strings.Contains(r.URL.Path, "/manifests/") {
					resp.Body = io.NopCloser(body(r))
				}
				return resp, nil
			})}, "registry.invalid/py:3")
			told := (*RegistryError)(nil)
			if !errors.As(err, &told) || err.Error() != `reading image "registry.invalid/py:3": `+want || told.Advice() != laterAdvice {
				t.Errorf("got %v, want %s", err, want)
			}
			if !errors.Is(err, ErrUnavailable) {
				t.Errorf("%v does not count as unavailable", err)
			}
		})
	}
}

// silent is the body of a response that does not come.
type silent struct{ req *http.Request }

func (s silent) Read([]byte) (int, error) {
	<-s.req.Context().Done()
	return 0, s.req.Context().Err()
}

// TestFileOfATransportIsNoRegistry: what cannot be read on this host is no outage.
func TestFileOfATransportIsNoRegistry(t *testing.T) {
	missing := &fs.PathError{Op: "open", Path: "/etc/client.pem", Err: fs.ErrPermission}
	err := pullAll(Puller{Transport: failingWith(missing), Log: slog.New(slog.DiscardHandler)}, "registry.invalid/py:3")
	if !errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrUnavailable) ||
		!strings.Contains(err.Error(), "open /etc/client.pem: permission denied") {
		t.Errorf("got %v", err)
	}
}

// TestRefusalIsAnAnswer: the network is not at fault then.
func TestRefusalIsAnAnswer(t *testing.T) {
	for host, want := range map[string]bool{
		serve(t, answer(http.StatusNotFound)):           true,
		serve(t, answer(http.StatusForbidden)):          true,
		serve(t, answer(http.StatusTooManyRequests)):    false,
		serve(t, answer(http.StatusServiceUnavailable)): false,
		"127.0.0.1:1": false,
	} {
		told := (*RegistryError)(nil)
		if err := pullAll(Puller{}, host+"/py:3"); !errors.As(err, &told) || told.Answered() != want {
			t.Errorf("answered is not %v: %v", want, err)
		}
	}
	told := (*RegistryError)(nil)
	err := pullAll(Puller{Transport: failingWith(http.ErrSchemeMismatch)}, "registry.invalid/py:3")
	if !errors.As(err, &told) || told.Answered() {
		t.Errorf("one without TLS: %v", err)
	}
}
