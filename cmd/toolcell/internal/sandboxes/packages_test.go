package sandboxes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs/packages"
)

func TestLockIsBesideTheScript(t *testing.T) {
	for script, want := range map[string]string{
		"report.py": "pylock.report.toml", "/a/b/x.y.py": "/a/b/pylock.x_y.toml", "../s": "../pylock.s.toml",
	} {
		if got := lockFile(script); got != want {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
}

// TestErrorsNameTheCommandThatHelps where one does.
func TestErrorsNameTheCommandThatHelps(t *testing.T) {
	needs := run.Needs{File: "my report.py"}
	for want, err := range map[string]error{
		`there is no package "yaml" in the index x; did you mean PyYAML?`:                                                       &packages.RequestError{Err: &packages.NoPackageError{Name: "yaml", Index: "x"}},
		"sklearn has no wheel for the Python of this image, and nothing is built from source; did you mean scikit-learn?":       &packages.RequestError{Err: &packages.NoWheelError{Name: "sklearn"}},
		"pyaudio has no wheel for the Python of this image, and nothing is built from source":                                   &packages.RequestError{Err: &packages.NoWheelError{Name: "pyaudio"}},
		`there is no package "frobnicator" in the index x`:                                                                      &packages.RequestError{Err: &packages.NoPackageError{Name: "frobnicator", Index: "x"}},
		"no versions; the lock beside the script can be written again with: toolcell packages lock --image host 'my report.py'": &packages.RequestError{Err: errors.New("no versions"), Locked: true},
		"the lock beside the script does not have x; write it again with: toolcell packages lock --image host 'my report.py'":   &packages.RequestError{Err: fmt.Errorf("%w x", packages.ErrNotLocked)},
		"no versions": &packages.RequestError{Err: errors.New("no versions")},
	} {
		if got := classify(err, run.Image{Name: "host"}, needs); got.Error() != want || !run.IsInvalid(got) {
			t.Errorf("got  %v\nwant %s", got, want)
		}
	}
	if got := classify(packages.ErrOffline, run.Image{Name: "host"}, needs); !strings.HasSuffix(got.Error(), "toolcell packages add --image host 'my report.py'") || run.IsInvalid(got) {
		t.Errorf("offline: %v", got)
	}
}

func TestOnlyTheHostsOfACommandAreReached(t *testing.T) {
	r := hostRules{hosts: []string{"pypi.org:443", "files.example:8443"}}
	for _, c := range []struct {
		scheme, host string
		port         uint16
		plain, ok    bool
	}{
		{"https", "pypi.org", 443, false, true},
		{"https", "files.example", 8443, false, true},
		{"https", "pypi.org", 8443, false, false},
		{"https", "files.example", 443, false, false},
		{"https", "evil.pypi.org", 443, false, false},
		{"http", "pypi.org", 443, false, false},
		{"http", "pypi.org", 443, true, true},
		{"http", "pypi.org", 80, true, false},
	} {
		r.plain = c.plain
		if _, err := r.AllowHost(c.scheme, c.host, c.port); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if host, _ := r.CanonicalHost("PyPI.org."); host != "pypi.org" {
		t.Errorf("got %q", host)
	}
}

// A fakeSandbox runs a function instead of a command.
type fakeSandbox struct {
	run.Sandbox
	listener net.Listener
	ended    chan struct{}
	code     int
}

func (f *fakeSandbox) Listen() (net.Listener, error) { return f.listener, nil }
func (f *fakeSandbox) Close() error                  { return nil }
func (f *fakeSandbox) Signal(syscall.Signal)         {}
func (f *fakeSandbox) Wait() (oci.Exit, error) {
	<-f.ended
	return oci.Exit{Code: f.code}, nil
}

type fakeSandboxes func(stdin io.Reader, stdout, stderr io.Writer) int

func (f fakeSandboxes) Start(_ context.Context, p oci.Process) (run.Sandbox, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	sb := &fakeSandbox{listener: l, ended: make(chan struct{})}
	go func() {
		sb.code = f(p.Stdin, p.Stdout, p.Stderr)
		for _, file := range []*os.File{p.Stdin, p.Stdout, p.Stderr} {
			file.Close()
		}
		close(sb.ended)
	}()
	return sb, nil
}

// TestCommandHasOneWayOut has a command that asks its proxy for the index and for
// another host.
func TestCommandHasOneWayOut(t *testing.T) {
	index := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") }))
	defer index.Close()
	run := runIn(fakeSandboxes(func(stdin io.Reader, stdout, stderr io.Writer) int {
		var proxy string
		if err := json.NewDecoder(stdin).Decode(&proxy); err != nil {
			t.Error(err)
		}
		through, _ := url.Parse(proxy)
		client := http.Client{Transport: &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return through, nil }}}
		for _, address := range []string{index.URL, "http://192.0.2.1/"} {
			resp, err := client.Get(address)
			if err != nil {
				t.Error(err)
				continue
			}
			_, _ = io.Copy(stdout, resp.Body)
			resp.Body.Close()
		}
		_, _ = io.WriteString(stderr, strings.Repeat("e", 2*maxStderr))
		return 3
	}), spec.Root{}, spec.Limits{})
	out, err := run(t.Context(), packages.Command{
		Hosts: []string{strings.TrimPrefix(index.URL, "http://")}, Plain: true,
		Input: func(proxy string, _ []byte) []byte { b, _ := json.Marshal(proxy); return b },
	})
	if err != nil || out.Code != 3 || !strings.HasPrefix(string(out.Stdout), "page") || len(out.Stderr) != maxStderr {
		t.Errorf("got %d, %q, %d bytes of errors, %v", out.Code, out.Stdout, len(out.Stderr), err)
	}
	if len(out.Refused) != 1 || !strings.Contains(out.Refused[0], "192.0.2.1:80 is not a host of the package index") {
		t.Errorf("refused: %q", out.Refused)
	}
}

// TestModulesAreCompiledAfterTheRun: it needs the processors itself.
func TestModulesAreCompiledAfterTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var work background
		s, compiled := &Packages{Background: &work}, work.all
		s.compileLater("host", "a")
		s.compileLater("host", "a")
		time.Sleep(compileAfter / 2)
		s.compileLater("host", "b")
		if got := compiled(); got != nil {
			t.Errorf("at once: %q", got)
		}
		time.Sleep(compileAfter / 2)
		synctest.Wait()
		if got := compiled(); !slices.Equal(got, []string{"host a"}) {
			t.Errorf("after a while: %q", got)
		}
		s.Close()
		time.Sleep(compileAfter)
		synctest.Wait()
		if got := compiled(); !slices.Equal(got, []string{"host a", "host b"}) {
			t.Errorf("at the end: %q", got)
		}
	})
}

func TestCommandsEndWithTheirContext(t *testing.T) {
	var once sync.Once
	ctx, cancel := context.WithCancelCause(t.Context())
	run := runIn(fakeSandboxes(func(stdin io.Reader, _, _ io.Writer) int {
		once.Do(func() { cancel(errors.New("enough")) })
		_, _ = io.Copy(io.Discard, stdin)
		return 1
	}), spec.Root{}, spec.Limits{})
	if _, err := run(ctx, packages.Command{}); err == nil || err.Error() != "enough" {
		t.Errorf("got %v", err)
	}
}
