package packages

import (
	"errors"
	"net/http"
	"strings"
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
}
