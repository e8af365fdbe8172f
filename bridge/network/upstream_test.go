package network

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/runner"
)

// upstream starts a server, and has this process trust it: all servers of package httptest
// have one certificate, which stays trusted.
func upstream(t *testing.T, answer http.HandlerFunc) (hostPort string) {
	t.Helper()
	s := httptest.NewTLSServer(answer)
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "roots.pem")
	body := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file)
	return s.Listener.Addr().String()
}

// get asks for https://HOSTPORT/ as code does, through the proxy and with the roots that it
// finds, and returns the lines of the answer.
func get(t *testing.T, a *Access, proxy, hostPort string) []string {
	t.Helper()
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", hostPort)
	connected, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	defer connected.Body.Close()
	if connected.StatusCode != http.StatusOK {
		t.Fatalf("CONNECT gave %s", connected.Status)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(a.Inside().Roots))
	host, _, _ := net.SplitHostPort(hostPort)
	inner := tls.Client(c, &tls.Config{ServerName: host, RootCAs: roots})
	fmt.Fprintf(inner, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", hostPort)
	resp, err := http.ReadResponse(bufio.NewReader(inner), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v: %s", resp.Status, err, body)
	}
	return strings.Split(strings.TrimSpace(string(body)), "\n")
}

// TestCredentialsReachTheirHostAndComeBackAsPlaceholders: code sees of each what its variable
// has, and can tell apart those without one.
func TestCredentialsReachTheirHostAndComeBackAsPlaceholders(t *testing.T) {
	names, seen := []string{"X-One", "X-Two", "X-Three", "X-Four"}, make(chan string, 8)
	at := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		for _, name := range names {
			seen <- r.Header.Get(name)
			fmt.Fprintln(w, r.Header.Get(name))
		}
	})
	lines := fmt.Sprintf("allow = [%q]\nprivate = ['127.0.0.1']\n", at)
	for i, env := range []string{"env = 'TOKEN'", "env = 'TOKEN'", "", ""} {
		lines += fmt.Sprintf("[[network.credential]]\nhost = '127.0.0.1'\nheader = %q\nvalue = 'secret-number-%d'\n%s\n", names[i], i, env)
	}
	a, proxy := open(t, lines, "https://"+at)
	got := get(t, a, proxy, at)
	for i := range names {
		if want := fmt.Sprintf("secret-number-%d", i); <-seen != want {
			t.Errorf("the host did not get %q", want)
		}
	}
	token := a.Inside().Variables["TOKEN"]
	if len(got) != 4 || got[0] != token || got[1] != token {
		t.Errorf("the answer has %q, the variable %q", got, token)
	}
	if slices.Sort(got); len(slices.Compact(got)) != 3 {
		t.Errorf("other credentials have the same placeholder: %q", got)
	}
}

// TestConnectionsGoThroughTheHostsProxyIfThePolicySaysSo in a process of its own, since a
// process reads only once which proxy its environment names (net/http).
func TestConnectionsGoThroughTheHostsProxyIfThePolicySaysSo(t *testing.T) {
	const child = "NETWORK_TEST_PROXY"
	if os.Getenv(child) != "" {
		a, proxy := open(t, "via = 'env'\nallow = ['far.example']", "https://far.example")
		if got := ask(t, proxy, "CONNECT far.example:443"); got != "200 Connection established" {
			t.Errorf("the status is %q", got)
		}
		if r := a.Close(); !r.Unchecked {
			t.Errorf("the report says %+v", r)
		}
		return
	}
	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Method + " " + r.RequestURI }))
	defer proxy.Close()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1", "HTTPS_PROXY="+proxy.URL, "https_proxy=", "NO_PROXY=", "no_proxy=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := <-asked; got != "CONNECT far.example:443" {
		t.Errorf("the proxy is asked to %s", got)
	}
}

// TestWithoutRootsTheImageKeepsItsOwn: variables that name a file would take them away.
func TestWithoutRootsTheImageKeepsItsOwn(t *testing.T) {
	a := &Access{inside: runner.Network{Variables: map[string]string{}}}
	if a.trust(nil, nil, runner.RootsFile); a.inside.Roots != "" || len(a.inside.Variables) > 0 {
		t.Errorf("inside is %+v", a.inside)
	}
}
