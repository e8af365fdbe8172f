package fetch

import (
	"net/url"
	"testing"
)

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
		from, err := NewOrigins(c.index, nil, "", "")
		if err != nil {
			t.Fatal(err)
		}
		u, _ := url.Parse(c.file) // nil if it cannot be read, as of a lock
		if err := from.Check(u); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s of %s: got %v, want %q", c.file, c.index, err, c.want)
		}
	}
}
