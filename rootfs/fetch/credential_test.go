package fetch

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCredentialIsForTheIndexAlone has an index that leads to itself and to a host of its
// files, which must not get what the index gets.
func TestCredentialIsForTheIndexAlone(t *testing.T) {
	var got []string
	answer := func(name, leadsTo string) *httptest.Server {
		x := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = append(got, name+r.URL.Path+" "+r.Header.Get("Authorization"))
			switch r.URL.Path {
			case "/simple/a":
				http.Redirect(w, r, "/simple/a/", http.StatusMovedPermanently)
			case "/simple/a/":
				http.Redirect(w, r, leadsTo+"/a.whl", http.StatusFound)
			default:
				_, _ = io.WriteString(w, "wheel")
			}
		}))
		t.Cleanup(x.Close)
		return x
	}
	files := answer("files", "")
	index := answer("index", files.URL)
	c := NewClient()
	c.HTTP = index.Client() // both have the certificate of httptest
	from, err := NewOrigins(index.URL+"/simple", []string{strings.TrimPrefix(files.URL, "https://")}, "Basic c2VjcmV0", "")
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Get(t.Context(), from, index.URL+"/simple/a", "")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	want := "index/simple/a Basic c2VjcmV0\nindex/simple/a/ Basic c2VjcmV0\nfiles/a.whl "
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
