package egress

import (
	"bufio"
	"net/http"
	"path"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// FuzzPath: a path that passes names the same resource for servers that resolve dots,
// merge slashes, decode once more or stop at a semicolon.
func FuzzPath(f *testing.F) {
	for _, s := range []string{
		"/v1/x", "/v1/../x", "/v1/%2e%2e/x", "/%252e%252e", "//x", "/a%2fb", "/a\\b", "/a;b/../c", "/%c0%ae", "/a%00", "/", "*", "/100%25", "/a?b/../c", "/.;/x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, target string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n")))
		if err != nil || !strings.HasPrefix(r.URL.Path, "/") || checkPath(r.URL) != nil {
			return
		}
		if clean := path.Clean(r.URL.Path); clean != r.URL.Path && clean+"/" != r.URL.Path {
			t.Errorf("%q passes as %q, and is %q", target, r.URL.Path, clean)
		}
		if strings.ContainsAny(r.URL.Path, "\\\x00\r\n") || strings.Contains(strings.ToLower(r.URL.EscapedPath()), "%2f") {
			t.Errorf("%q passes as %q", target, r.URL.Path)
		}
	})
}

// FuzzHello: whatever a client begins with, what is passed on is what it sent, and only
// with a handshake.
func FuzzHello(f *testing.F) {
	var hello strings.Builder
	recordHello(&hello, "example.com")
	f.Add([]byte(hello.String()))
	f.Add([]byte(hello.String()[:20]))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("\x16\x03\x01\x00\x02\x01\x00\x16\x03\x01\x00\x02\x00\x00"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		_, read, err := readHello(&recordConn{}, strings.NewReader(string(sent)))
		if err == nil && !strings.HasPrefix(string(sent), string(read)) {
			t.Errorf("% x was read as % x", sent, read)
		}
		if err == nil && (len(read) < 40 || read[0] != 22) {
			t.Errorf("% x passes as a handshake", read)
		}
	})
}

// FuzzQuestion: whatever is asked, a reply is a short answer to it, with no address but that of a
// name in the table.
func FuzzQuestion(f *testing.F) {
	table := NewNameTable([]Name{{"api.test", 443, false}})
	for _, q := range []string{
		"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03api\x04test\x00\x00\x01\x00\x01",
		"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01",
		"\x00\x07\x29\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00",
	} {
		f.Add([]byte(q))
	}
	f.Fuzz(func(t *testing.T, query []byte) {
		reply, missing := table.answer(query)
		if reply == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(reply); err != nil || !m.Response || len(reply) > 512 || len(m.Answers) > 1 {
			t.Fatalf("% x has the reply % x, %v", query, reply, err)
		}
		for _, a := range m.Answers {
			if missing != "" || strings.ToLower(a.Header.Name.String()) != "api.test." {
				t.Errorf("% x has the answer %v, missing %q", query, a, missing)
			}
		}
	})
}
