package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// rawAsk defines ask, which sends text to the proxy as it is and returns the status line of
// what comes back, "closed" if nothing does; and tunnel, which connects through it.
const rawAsk = `
import os, socket, ssl, subprocess, sys
PROXY = ("127.0.0.1", int(os.environ["https_proxy"].rpartition(":")[2]))
def line(s):
    data = b""
    try:
        while b"\r\n" not in data and (more := s.recv(4096)): data += more
    except OSError as e: return type(e).__name__
    return data.split(b"\r\n")[0].decode() or "closed"
def ask(text):
    with socket.create_connection(PROXY, 60) as s:
        s.sendall(text.encode())
        return line(s)
def tunnel(to):
    s = socket.create_connection(PROXY, 60)
    s.sendall(f"CONNECT {to} HTTP/1.1\r\n\r\n".encode())
    answer = line(s)
    if " 200 " not in answer: raise ConnectionError(answer)
    return s
def tls(to, name):
    context = ssl._create_unverified_context()
    return context.wrap_socket(tunnel(to), server_hostname=name)
def tried(do):
    try: return do()
    except Exception as e: return f"{type(e).__name__}: {e}"
`

// TestNetworkHoldsAgainst what code can send to the proxy.
func TestNetworkHoldsAgainst(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	site := s.hostPort()
	_, port, _ := strings.Cut(site, ":")
	// What listens on the loopback of the host may trust the host.
	set := layTraps(t, firstHost(t))
	trap := set.values["port"].(int)
	e := s.env(fmt.Sprintf(`
allow = ["127.0.0.2:%s", "GET https://rules.test/v1/*", "http://api.test", "api.test", "127.0.0.1:%d", "localhost:%d"]
deny = ["https://api.test:8443"]
private = ["127.0.0.2"]
via = "env"`, port, trap, trap), nil)
	table := map[string]struct{ code, want string }{
		"the host's loopback":          {fmt.Sprintf(`ask("CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n")`, trap), "HTTP/1.1 403 toolcell: add \"https://127.0.0.1:%d\" to the servers"},
		"by name":                      {fmt.Sprintf(`ask("CONNECT localhost:%d HTTP/1.1\r\n\r\n")`, trap), "HTTP/1.1 403 toolcell: add \"https://localhost:%d\" to the servers"},
		"a decimal address":            {fmt.Sprintf(`ask("CONNECT 2130706433:%d HTTP/1.1\r\n\r\n")`, trap), "HTTP/1.1 400 toolcell: \"2130706433\" is neither"},
		"a short address":              {fmt.Sprintf(`ask("CONNECT 127.1:%d HTTP/1.1\r\n\r\n")`, trap), "HTTP/1.1 400 toolcell: \"127.1\" is neither"},
		"a hexadecimal address":        {fmt.Sprintf(`ask("CONNECT 0x7f000001:%d HTTP/1.1\r\n\r\n")`, trap), "HTTP/1.1 400 toolcell: \"0x7f000001\" is neither"},
		"a mapped address":             {fmt.Sprintf(`ask("CONNECT [::ffff:127.0.0.1]:%d HTTP/1.1\r\n\r\n")`, trap), "HTTP/1.1 403"},
		"IPv6":                         {fmt.Sprintf(`ask("CONNECT [::1]:%d HTTP/1.1\r\n\r\n")`, trap), "HTTP/1.1 403"},
		"with a zone":                  {fmt.Sprintf(`ask("CONNECT [fe80::1%%25lo]:%d HTTP/1.1\r\n\r\n")`, trap), "HTTP/1.1 400"},
		"metadata":                     {`ask("GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n")`, "HTTP/1.1 403 toolcell: add \"169.254.169.254\" to [network] allow"},
		"another port":                 {`ask("CONNECT 127.0.0.2:22 HTTP/1.1\r\n\r\n")`, "HTTP/1.1 403 toolcell: add \"127.0.0.2:22\" to [network] allow"},
		"a denied port":                {`ask("CONNECT api.test:8443 HTTP/1.1\r\n\r\n")`, "HTTP/1.1 403 toolcell: [network] deny = \"https://api.test:8443\""},
		"a user before the host":       {`ask("CONNECT api.test@other.test:443 HTTP/1.1\r\n\r\n")`, "HTTP/1.1 400"},
		"a longer name":                {`ask("CONNECT api.test.other.test:443 HTTP/1.1\r\n\r\n")`, "HTTP/1.1 403"},
		"a line break in the name":     {`ask("CONNECT api.test%0d%0aX:443 HTTP/1.1\r\n\r\n")`, "HTTP/1.1 400"},
		"Host says another":            {`ask("GET http://other.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")`, "HTTP/1.1 403 toolcell: add \"other.test\""},
		"Host alone":                   {`ask("GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")`, "HTTP/1.1 400 toolcell: this is a proxy"},
		"https in absolute form":       {`ask("GET https://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")`, "HTTP/1.1 400 toolcell: this is a proxy"},
		"two targets":                  {`ask("GET http://api.test/ http://other.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")`, "HTTP/1.1 400"},
		"a length and chunks":          {`ask("POST http://other.test/ HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://api.test/ HTTP/1.1\r\n\r\n")`, "HTTP/1.1 403"},
		"a websocket without TLS":      {`ask("GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")`, "HTTP/1.1 403 toolcell: WebSockets"},
		"HTTP in a tunnel":             {`(s := tunnel("api.test:443"), s.sendall(b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n"), line(s))[2]`, "closed"},
		"HTTP right behind CONNECT":    {`(s := socket.create_connection(PROXY), s.sendall(b"CONNECT api.test:443 HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: api.test\r\n\r\n"), line(s), line(s))[3]`, "closed"},
		"a body of CONNECT":            {`(s := socket.create_connection(PROXY), s.sendall(b"CONNECT api.test:443 HTTP/1.1\r\nContent-Length: 40\r\n\r\nGET http://other.test/ HTTP/1.1\r\n\r\n"), line(s), line(s))[3]`, "closed"},
		"SNI of another":               {`tls("api.test:443", "other.test").version()`, "SSL"},
		"no SNI":                       {`tls("api.test:443", None).version()`, "SSL"},
		"SNI at an address":            {fmt.Sprintf(`tls("%s", "other.test").version()`, site), "SSL"},
		"SNI of another, looked at":    {`tls("rules.test:443", "other.test").version()`, "SSL"},
		"Host of another, looked at":   {`(c := tls("rules.test:443", "rules.test"), c.sendall(b"GET /v1/x HTTP/1.1\r\nHost: other.test\r\n\r\n"), line(c))[2]`, "HTTP/1.1 403 toolcell: the request is for other.test:443"},
		"a path up, looked at":         {`(c := tls("rules.test:443", "rules.test"), c.sendall(b"GET /v1/../v2 HTTP/1.1\r\nHost: rules.test\r\n\r\n"), line(c))[2]`, "HTTP/1.1 403 toolcell: a path with . or .."},
		"a CONNECT inside a CONNECT":   {`(c := tls("rules.test:443", "rules.test"), c.sendall(b"CONNECT other.test:443 HTTP/1.1\r\nHost: rules.test\r\n\r\n"), line(c))[2]`, "HTTP/1.1 403"},
		"without TLS, where rules see": {`ask("GET http://rules.test/v1/x HTTP/1.1\r\nHost: rules.test\r\n\r\n")`, "HTTP/1.1 403"},
		"a dot at the end":             {`tls("API.test.:443", "api.test").version()`, "TLSv1.3"},
		"a port of nothing":            {`ask("CONNECT api.test:0 HTTP/1.1\r\n\r\n")`, "HTTP/1.1 400 toolcell: \"0\" is not a port"},
		"and what is allowed":          {`ask("GET http://api.test/x HTTP/1.1\r\nHost: api.test\r\n\r\n")`, "HTTP/1.1 200 OK"},
		"as it is looked at":           {`(c := tls("rules.test:443", "rules.test"), c.sendall(b"GET /v1/x HTTP/1.1\r\nHost: rules.test\r\n\r\n"), line(c))[2]`, "HTTP/1.1 200 OK"},
	}
	var code strings.Builder
	var names []string
	code.WriteString(rawAsk)
	for name, attempt := range table {
		names = append(names, name)
		fmt.Fprintf(&code, "print(tried(lambda: %s))\n", attempt.code)
	}
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serve(t, e)
		r := c.call(t, map[string]any{"code": code.String(), "servers": []string{"https://api.test", "https://rules.test", "https://" + site}, "timeout": seconds(100)})
		got := lines(r.fields["stdout"])
		if len(got) != len(names) {
			t.Fatalf("%d lines for %d attempts:\n%s", len(got), len(names), r.text)
		}
		for i, name := range names {
			want := strings.ReplaceAll(table[name].want, "%d", fmt.Sprint(trap))
			if !strings.HasPrefix(got[i], want) {
				t.Errorf("%s: %q, want %q", name, got[i], want)
			}
		}
	})
	for _, what := range set.touched() {
		t.Errorf("%s was touched", what)
	}
}

// TestNeighborCannotUseTheProxy of a run that is allowed more.
func TestNeighborCannotUseTheProxy(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		c := h.serve(t, s.env("allow = ['api.test', 'http://other.test']\nvia = 'env'", nil))
		s.release = make(chan struct{})
		done := make(chan reply)
		go func() {
			done <- c.python(t, "import os, urllib.request\nport = os.environ['https_proxy'].rpartition(':')[2]\n"+
				"print(urllib.request.urlopen('https://api.test/wait?' + port).read().decode())", "https://api.test")
		}()
		port := <-s.arrived
		probe := "import socket\nprint(socket.socket().connect_ex(('127.0.0.1', " + port + ")))"
		c.python(t, probe).want(t, "111")
		// Its own proxy may have the same port, and is not the other one.
		r := c.python(t, rawAsk+"print(ask('CONNECT api.test:443 HTTP/1.1\\r\\n\\r\\n'))", "https://other.test:80")
		if !strings.Contains(r.text, `403 toolcell: add "https://api.test" to the servers of the call`) {
			t.Errorf("a neighbor with less: %s", r.text)
		}
		close(s.release)
		(<-done).want(t, "released")
	})
}

// TestSlowClientsHoldTheirOwnRun: one that takes all connections, and says nothing on any,
// stops no other, and ends with its run.
func TestSlowClientsHoldTheirOwnRun(t *testing.T) {
	s := newSite(t)
	c := firstHost(t).serve(t, s.env("allow = ['api.test']\nvia = 'env'", nil))
	done := make(chan reply)
	go func() {
		done <- c.python(t, rawAsk+`
def begun(text):
    s = socket.create_connection(PROXY)
    s.sendall(text)
    return s
all = [begun(b"GET http://api.test/ HTTP/1.1\r\nX: y\r\n") for i in range(40)] + [tunnel("api.test:443") for i in range(8)]
waiting = tls("api.test:443", "api.test")
waiting.sendall(b"GET /wait?holds HTTP/1.1\r\nHost: api.test\r\n\r\n")
more = [begun(b"") for i in range(100)]
print(line(waiting))`, "https://api.test")
	}()
	<-s.arrived
	c.python(t, fetch("https://api.test/x"), "https://api.test").want(t, "GET /x of api.test")
	close(s.release)
	r := <-done
	r.want(t, "HTTP/1.1 200 OK")
	if use := r.uses()[0]; use["host"] != "api.test" || use["requests"] != 9.0 {
		t.Errorf("the use is %v", use)
	}
}

// TestDownloadsTakeNoMemory of toolcell, and are bounded in bytes.
func TestDownloadsTakeNoMemory(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := firstHost(t).serve(t, s.env("allow = ['api.test', 'GET https://rules.test/*']\nvia = 'env'", env{"TOOLCELL_MAX_TIMEOUT": "20m"}))
	most := func() int {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		return statusNumber(status, "VmHWM")
	}
	download := func(host string, n int) reply {
		return c.call(t, map[string]any{
			"code": fmt.Sprintf("import urllib.request\nn = 0\nwith urllib.request.urlopen('https://%s/bytes?n=%d') as r:\n"+
				"  while more := r.read(1 << 20): n += len(more)\nprint(n)", host, n),
			"servers": []string{"https://" + host}, "timeout": int(slow(10*time.Minute) / time.Second),
		})
	}
	for _, host := range []string{"api.test", "rules.test"} {
		download(host, 1<<20).want(t, "1048576")
		before := most()
		r := download(host, 1_000_000_000)
		r.want(t, "1000000000")
		if grown := most() - before; grown > 16<<10 {
			t.Errorf("%s: toolcell has grown by %d kB", host, grown)
		}
		if got := r.uses()[0]["bytesReceived"].(float64); got < 1e9 {
			t.Errorf("%s: %v bytes were counted", host, got)
		}
	}
	if r := download("rules.test", 1_200_000_000); !strings.Contains(r.text, "the run has sent and received as many bytes as it may") {
		t.Errorf("more than may be: %s", r.text)
	}
}
