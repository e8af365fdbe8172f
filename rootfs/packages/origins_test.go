package packages

import (
	"net/url"
	"strings"
	"testing"
)

func TestIndexesHaveAHost(t *testing.T) {
	for _, index := range []string{"http://[::1/simple", "https:///simple", "/simple", ""} {
		_, err := newStore(t).Ensure(t.Context(), Request{Index: index}, nil)
		if err == nil || !strings.Contains(err.Error(), "is not the address of a package index") {
			t.Errorf("%q: got %v", index, err)
		}
	}
}

// TestFilesComeByTLS, unless the index itself has none. All these are of the index's host and port.
func TestFilesComeByTLS(t *testing.T) {
	for _, c := range []struct{ index, file, want string }{
		{"https://x.example/simple", "https://x.example/a.whl", ""},
		{"https://x.example/simple", "https://X.example.:443/a.whl", ""},
		{"https://x.example/simple", "http://x.example:443/a.whl", `its address begins with "http://", not with https`},
		{"https://x.example/simple", "ftp://x.example/a.whl", `its address begins with "ftp://", not with https`},
		{"http://x.example/simple", "http://x.example/a.whl", ""},
		{"http://x.example/simple", "ftp://x.example:80/a.whl", `its address begins with "ftp://", not with https`},
		{"https://x.example/simple", "https://me@x.example/a.whl", "its address is not understood"},
		{"https://x.example/simple", "https:x.example/a.whl", "its address is not understood"},
		{"https://x.example/simple", "https://[::1/a.whl", "its address is not understood"},
	} {
		from, err := Request{Index: c.index}.origins()
		if err != nil {
			t.Fatal(err)
		}
		u, _ := url.Parse(c.file) // nil if it cannot be read, as of a lock
		if err := from.check(u); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s of %s: got %v, want %q", c.file, c.index, err, c.want)
		}
	}
}
