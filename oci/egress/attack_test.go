package egress

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestOddRequestsToTheProxy are refused, or mean to the server what they mean here.
func TestOddRequestsToTheProxy(t *testing.T) {
	f := newFixture(t, Options{Rules: testRules{hosts: []string{"example.com", "fe80::1"}}}, hello)
	const end = " HTTP/1.1\r\nConnection: close\r\nHost: x\r\n\r\n"
	for request, want := range map[string]string{
		"CONNECT example.com:0" + end:                         "400 toolcell: \"0\" is not a port",
		"CONNECT example.com:65536" + end:                     "400 toolcell: \"65536\" is not a port",
		"CONNECT example.com:+443" + end:                      "400",
		"CONNECT example.com:" + end:                          "400 toolcell: a port is missing",
		"CONNECT example.com" + end:                           "400 toolcell: a port is missing",
		"CONNECT :443" + end:                                  "403",
		"CONNECT user@example.com:443" + end:                  "40",
		"CONNECT http://example.com:443/" + end:               "40",
		"CONNECT /" + end:                                     "400",
		"CONNECT example.com:443@other.com" + end:             "400",
		"CONNECT example.com\t:443" + end:                     "400",
		"CONNECT example.com,other.com:443" + end:             "403",
		"CONNECT ex\u00e4mple.com:443" + end:                  "40",
		"GET //example.com/" + end:                            "400 toolcell: this is a proxy",
		"GET ftp://example.com/" + end:                        "400 toolcell: this is a proxy",
		"GET http:///x" + end:                                 "400",
		"GET http://" + end:                                   "400",
		"GET http://example.com:0/" + end:                     "400 toolcell: \"0\" is not a port",
		"GET http:example.com" + end:                          "400 toolcell: this is a proxy",
		"GET http://example.com\\@other.com/" + end:           "400",
		"GET http://other.com#@example.com/" + end:            "400",
		"GET http://example.com@other.com/" + end:             "403 toolcell: add \"other.com",
		"GET http://example.com/ HTTP/1.1\r\n\r\n":            "400",
		"GET http://example.com/ HTTP/3.0\r\nHost: x\r\n\r\n": "505",
		"GET http://example.com/ HTTP/0.9\r\n\r\n":            "505",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                    "",
		"GET http://other.com/ HTTP/1.1\nHost: x\n\n":         "403",
		strings.Repeat("x", 80<<10) + end:                     "431",
		"GET http://example.com/ HTTP/1.1\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n": "431",
	} {
		got := f.raw(request)
		if strings.HasPrefix(got, "HTTP/1.1 2") || !strings.HasPrefix(got, "HTTP/1.1 "+want) && want != "" {
			t.Errorf("%.100q:\n%.200q, want %q", request, got, want)
		}
	}
	if uses := f.broker.Uses(); len(uses) > maxUses {
		t.Errorf("%d uses", len(uses))
	}
}

// TestFramingIsOurs: what a client says of where its bodies end is read once, and written
// anew, so that no server sees a request that was not checked.
func TestFramingIsOurs(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	f := newFixture(t, inspecting("GET /ok", "POST /ok"), func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf("%s %s %s %d", r.Method, r.RequestURI, r.Host, len(body)))
	})
	host := "Host: " + f.hostPort() + "\r\n"
	hidden := "GET /secret HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n"
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden)
	for name, request := range map[string]string{
		"a foreign coding":         "POST /ok HTTP/1.1\r\n" + host + "Transfer-Encoding: xchunked\r\n\r\n" + hidden,
		"two codings":              "POST /ok HTTP/1.1\r\n" + host + "Transfer-Encoding: identity, chunked\r\n\r\n" + chunk,
		"two headers":              "POST /ok HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunk,
		"a space before :":         "POST /ok HTTP/1.1\r\n" + host + "Transfer-Encoding : chunked\r\n\r\n" + chunk,
		"a folded line":            "POST /ok HTTP/1.1\r\n" + host + "Transfer-Encoding:\r\n chunked\r\n\r\n" + chunk,
		"a vertical tab":           "POST /ok HTTP/1.1\r\n" + host + "Transfer-Encoding: \x0bchunked\r\n\r\n" + chunk,
		"chunks and a length":      "POST /ok HTTP/1.1\r\n" + host + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk,
		"two lengths":              "POST /ok HTTP/1.1\r\n" + host + "Content-Length: 0\r\nContent-Length: 4\r\n\r\n" + hidden,
		"a signed length":          "POST /ok HTTP/1.1\r\n" + host + "Content-Length: +0\r\n\r\n" + hidden,
		"a large chunk":            "POST /ok HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n" + hidden,
		"a length of a GET":        fmt.Sprintf("GET /ok HTTP/1.1\r\n%sContent-Length: %d\r\nConnection: close\r\n\r\n%s", host, len(hidden), hidden),
		"a length as hop header":   fmt.Sprintf("POST /ok HTTP/1.1\r\n%sContent-Length: %d\r\nConnection: close, Content-Length\r\n\r\n%s", host, len(hidden), hidden),
		"Host as hop header":       "GET /ok HTTP/1.1\r\n" + host + "Connection: close, Host\r\n\r\n",
		"HTTP/1.0 kept alive":      "GET /ok HTTP/1.0\r\n" + host + "Connection: keep-alive\r\n\r\n" + hidden,
		"HTTP/1.0 with chunks":     "POST /ok HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n" + chunk,
		"behind a refusal":         "GET /no HTTP/1.1\r\n" + host + "\r\n" + hidden,
		"behind 100-continue":      fmt.Sprintf("POST /ok HTTP/1.1\r\n%sExpect: 100-continue\r\nContent-Length: 0\r\n\r\n%s", host, hidden),
		"in a trailer":             "POST /ok HTTP/1.1\r\n" + host + "Connection: close\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\nContent-Length: 5\r\n\r\n",
		"a header that is no name": "GET /ok HTTP/1.1\r\n" + host + "X: a\x00b\r\n\r\n" + hidden,
	} {
		c := f.dialInspected("example.com")
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = io.WriteString(c, request)
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		c.Close()
		mu.Lock()
		for _, s := range seen {
			if !strings.Contains(s, " /ok "+f.hostPort()+" ") {
				t.Errorf("%s: the server saw %q", name, s)
			}
		}
		seen = nil
		mu.Unlock()
	}
}

// TestClientsWaitFor100: the body is sent once we ask for it.
func TestClientsWaitFor100(t *testing.T) {
	f := newFixture(t, inspecting("POST /ok"), func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	c := f.dialInspected("example.com")
	defer c.Close()
	fmt.Fprintf(c, "POST /ok HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n", f.hostPort())
	first := make([]byte, len("HTTP/1.1 100"))
	if _, err := io.ReadFull(c, first); err != nil || string(first) != "HTTP/1.1 100" {
		t.Fatalf("%q, error %v", first, err)
	}
	_, _ = io.WriteString(c, "body")
	if rest, err := io.ReadAll(c); err != nil || !strings.Contains(string(rest), "HTTP/1.1 200 OK") || !strings.HasSuffix(string(rest), "body") {
		t.Errorf("%q, error %v", rest, err)
	}
}

// TestServersDoNotChangeTheProtocol: nothing behind a status 101 could be checked.
func TestServersDoNotChangeTheProtocol(t *testing.T) {
	f := newFixture(t, withCredential(), func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\n%s\r\n%s", r.URL.Query().Get("head"), r.Header.Get("Authorization"))
	})
	for _, head := range []string{"", "Upgrade:%20x%0d%0aConnection:%20upgrade%0d%0a"} {
		got := f.ask("GET /x?head=" + head + " HTTP/1.1\r\nHost: " + f.hostPort() + "\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 403 toolcell: the server wants to change to another protocol") || strings.Contains(got, secret) {
			t.Errorf("%q", got)
		}
	}
}

// TestCredentialsAreNotTakenAway by a client that calls their header one of its connection
// (RFC 9110, 7.6.1), or sends what is no ASCII in it.
func TestCredentialsAreNotTakenAway(t *testing.T) {
	f := newFixture(t, withCredential(), func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Values("Authorization"); len(got) != 1 || got[0] != "Bearer "+secret {
			t.Errorf("the server got %q", got)
		}
	})
	for _, header := range []string{"Connection: close, authorization\r\n", "Connection: close\r\nauthorization: \u00e4\xff\r\n", "Connection: close\r\nX_Authorization: a\r\nauthorization:\r\n"} {
		if got := f.ask("GET /x HTTP/1.1\r\nHost: " + f.hostPort() + "\r\n" + header + "\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200") {
			t.Errorf("%q: %q", header, got)
		}
	}
}

// TestCredentialsReplaceEveryNameOfTheirHeader: gateways such as CGI's take X_Key for X-Key,
// and the last of the two, or both.
func TestCredentialsReplaceEveryNameOfTheirHeader(t *testing.T) {
	o := inspecting("GET /*")
	o.Credentials = []Credential{{Host: "example.com", Header: "X-Key", Value: secret, Secrets: []string{secret}, Placeholder: "tc_1"}}
	f := newFixture(t, o, func(_ http.ResponseWriter, r *http.Request) {
		if got := valuesOf(r.Header, "X-Key"); len(got) != 1 || got[0] != secret {
			t.Errorf("the server got %q", got)
		}
	})
	for header, want := range map[string]string{
		"":                         "200",
		"X-Key: a\r\n":             "200",
		"X_Key: a\r\n":             "200",
		"x_key: a\r\nX-KEY: b\r\n": "403 toolcell: the header X-Key is there more than once",
		"X_Key: a\r\nX_Key: b\r\n": "403 toolcell: the header X-Key is there more than once",
	} {
		if got := f.ask("GET /x HTTP/1.1\r\nConnection: close\r\nHost: " + f.hostPort() + "\r\n" + header + "\r\n"); !strings.HasPrefix(got, "HTTP/1.1 "+want) {
			t.Errorf("%q: %q, want %s", header, got, want)
		}
	}
}
