package packages

import (
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestFilesAreFoundOnBothKindsOfPages(t *testing.T) {
	const file = "uv-1-py3-none-any.whl"
	for _, page := range []struct{ kind, text string }{
		{"application/vnd.pypi.simple.v1+json", `{"files":[{"filename":"other.whl","url":"/no"},{"filename":"` + file + `","url":"../../files/` + file + `"}]}`},
		{"text/html; charset=utf-8", `<html><a href="/no/other.whl">other.whl</a> <A data-x="1" HREF='../../files/` + file + `#sha256=00' rel="x&amp;y">` + file + `</a>`},
	} {
		x, s := newIndex(t, nil), newStore(t)
		x.answers(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.Header.Get("Accept"), "application/vnd.pypi.simple.v1+json") {
				t.Error("it does not ask for JSON")
			}
			w.Header().Set("Content-Type", page.kind)
			_, _ = w.Write([]byte(page.text))
			return true
		})
		j, err := s.begin(Request{Index: x.URL + "/simple"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := j.find(t.Context(), x.URL+"/simple/uv/", file); err != nil || got != x.URL+"/files/"+file {
			t.Errorf("%s: got %q, %v", page.kind, got, err)
		}
		if got, err := j.find(t.Context(), x.URL+"/simple/uv/", "none.whl"); err == nil || !strings.Contains(err.Error(), "is not there") {
			t.Errorf("%s: got %q, %v", page.kind, got, err)
		}
	}
}

func TestUVIsWhatWasPinned(t *testing.T) {
	x, s := newIndex(t, map[string][]byte{}), newStore(t)
	s.uv = ""
	for _, wheel := range uvWheels {
		x.wheels[wheel.file] = []byte("another program")
	}
	x.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/uv/") {
			return false
		}
		for _, wheel := range uvWheels {
			_, _ = w.Write([]byte(`<a href="` + wheel.file + `">`))
		}
		return true
	})
	_, err := s.Ensure(t.Context(), x.request("a"), nil)
	if err == nil || !strings.Contains(err.Error(), "its SHA-256 is") || !strings.Contains(err.Error(), "TOOLCELL_UV") || x.solved > 0 {
		t.Errorf("got %v, started %d times", err, x.solved)
	}
	s.uv = "/nonexistent/uv"
	if _, err := s.Ensure(t.Context(), x.request("a"), nil); err == nil || !strings.Contains(err.Error(), "TOOLCELL_UV") {
		t.Errorf("got %v", err)
	}
}

// TestAnIndexThatCannotBeReachedIsSaidInWords, without the addresses, sockets and resolvers of
// Go's errors.
func TestAnIndexThatCannotBeReachedIsSaidInWords(t *testing.T) {
	x, s := newIndex(t, nil), newStore(t)
	s.uv = ""
	x.Close()
	_, err := s.Ensure(t.Context(), x.request("a"), nil)
	var unreachable *UnreachableError
	want := "the package index " + x.URL + "/simple cannot be reached: connection refused"
	if !errors.As(err, &unreachable) || unreachable.Error() != want || strings.Contains(err.Error(), "dial tcp") || strings.Contains(err.Error(), "Get ") {
		t.Errorf("got %v, want %s", err, want)
	}
	t.Setenv("HTTPS_PROXY", "") // read once in a process; without it the words have no proxy
	for _, c := range []struct {
		err  error
		want string
	}{
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "x.example", Server: "127.0.0.53:53", IsNotFound: true}}, "(no such host)"},
		{&net.DNSError{Err: "server misbehaving", Server: "127.0.0.53:53"}, "(its name cannot be looked up: server misbehaving)"},
		{&net.DNSError{IsTimeout: true, Server: "127.0.0.53:53"}, "(the name server does not answer)"},
		{&net.OpError{Op: "dial", Err: syscall.ENETUNREACH}, "(network is unreachable)"},
		{x509.UnknownAuthorityError{}, "(an unknown authority has signed its certificate)"},
		{x509.CertificateInvalidError{Reason: x509.Expired}, "(its certificate is not valid)"},
		{x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x.example"}, "(its certificate is for another name)"},
		{os.ErrDeadlineExceeded, "(no answer)"},
	} {
		got := explainRequest(&url.Error{Op: "Get", URL: "https://x.example/simple/uv/", Err: c.err}).Error()
		if !strings.HasPrefix(got, `cannot reach "x.example"`) || !strings.HasSuffix(got, c.want) || strings.Contains(got, "127.0.0.53") {
			t.Errorf("%v: got %s", c.err, got)
		}
	}
	if got := explainRequest(&url.Error{Op: "Get", URL: "https://[::1/", Err: syscall.ECONNREFUSED}); !errors.Is(got, syscall.ECONNREFUSED) || got.Error() != "connection refused" {
		t.Errorf("an address that is not understood: got %v", got)
	}
	rule := errors.New("it comes from elsewhere")
	if got := explainRequest(&url.Error{Op: "Get", URL: "https://x.example/", Err: rule}); !errors.Is(got, rule) || got.Error() != rule.Error() {
		t.Errorf("a rule of ours: got %v", got)
	}
}
