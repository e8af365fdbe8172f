package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCredentialsWithoutTLSAreForTheirHostOnly: they go where the configuration says so, and
// where each request is checked.
func TestCredentialsWithoutTLSAreForTheirHostOnly(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "got %d", len(r.Header.Values("X-Key")))
	}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	o := Options{Rules: testRules{
		hosts:     []string{"whole.test", "other.test"},
		inspected: map[string][]string{"plain.test": {"GET /*"}, "secure.test": {"GET /*"}},
	}}
	for host, plain := range map[string]bool{"whole.test": true, "plain.test": true, "secure.test": false} {
		o.Credentials = append(o.Credentials, Credential{Host: host, Header: "X-Key", Value: secret, Secrets: []string{secret}, Plain: plain})
	}
	f := newFixture(t, o, hello)
	for host, want := range map[string]string{"plain.test": "got 1", "secure.test": "got 0", "whole.test": "got 0", "other.test": "got 0"} {
		got := f.raw("GET http://" + host + ":" + port + "/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 200 OK") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %s", host, got, want)
		}
	}
}

// TestAnswersOfAKnownLengthArriveWhole: what takes a secret's place is longer or shorter, and
// what is no text stays as it is.
func TestAnswersOfAKnownLengthArriveWhole(t *testing.T) {
	f := newFixture(t, withCredential(), func(w http.ResponseWriter, r *http.Request) {
		body := "<" + r.Header.Get("Authorization") + ">"
		w.Header()["Content-Type"] = r.URL.Query()["type"]
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = io.WriteString(w, body)
	})
	hidden, shown := "<Bearer "+placeholder+">", "<Bearer "+secret+">"
	for kind, want := range map[string]string{
		"text/plain":               hidden,
		"image/png":                shown,
		"application/octet-stream": shown,
		"image/png; charset":       hidden, // not understood, and so it may be a text for the client
		"":                         hidden,
	} {
		got := f.ask("GET /x?type=" + strings.NewReplacer(";", "%3b", " ", "%20").Replace(kind) + " HTTP/1.1\r\nHost: " + f.hostPort() + "\r\nConnection: close\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got)), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != want {
			t.Errorf("%q: the body is %q, error %v; want %q", kind, body, err, want)
		}
		if known := resp.ContentLength == int64(len(shown)); known != (want == shown) {
			t.Errorf("%q: the length is said to be %d", kind, resp.ContentLength)
		}
	}
}
