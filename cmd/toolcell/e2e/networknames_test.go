package e2e

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
)

// byItself has clients that use no proxy: direct gets a page as urllib does, tls opens a
// connection, and tried says how something went.
const byItself = `
import asyncio, http.client, os, socket, ssl, subprocess, urllib.request
def direct(url): return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=30).read().decode().splitlines()[0]
def tls(host, name=None): return ssl.create_default_context().wrap_socket(socket.create_connection((host, 443), 30), server_hostname=name or host)
def tried(do):
    try: return do()
    except Exception as e: return type(e).__name__ + ": " + str(e)
`

// nameless says whether hosts are reached through the proxy only.
func (h *host) nameless() bool { return h.name == "no-proc" }

// TestClientsReachHostsByName without any proxy, and get the same as through one.
//
//test:mainjob
func TestClientsReachHostsByName(t *testing.T) {
	s := newSite(t)
	port := echoing(t)
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		c := h.serve(t, s.env(fmt.Sprintf(`
allow = ["api.test", "GET https://rules.test/v1/*", "http://rules.test", "https://token.test", "*.wide.test", "tcp://localhost:%d"]
private = ["localhost"]
via = "env"
[[network.credential]]
host = "token.test"
header = "Authorization"
value = "Bearer ${env:TOKEN}"
`, port), env{"TOKEN": "secret-token"}))
		c.wantStart(t, h)
		if h.nameless() {
			r := c.python(t, byItself+"direct('http://api.test/')", "https://api.test")
			if !strings.Contains(r.text, "hint: the network is reached only through the HTTP proxy") {
				t.Errorf("without names: %s", r.text)
			}
			return
		}
		local := fmt.Sprintf("tcp://localhost:%d", port)
		for name, tt := range map[string]struct{ code, want string }{
			"urllib":       {`print(direct("https://api.test/x"))`, "GET /x of api.test"},
			"http":         {`print(direct("http://api.test/y?z"))`, "GET /y?z of api.test"},
			"http.client":  {`c = http.client.HTTPSConnection("rules.test"); c.request("GET", "/v1/x"); print(c.getresponse().read()[:5]); c.request("GET", "/v2"); print(c.getresponse().reason)`, "b'GET /'\ntoolcell: add \"GET https://rules.test/v2\" to [network] allow"},
			"a credential": {`print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open("https://token.test/").read().decode().count("Bearer tc_"))`, "1"},
			"asyncio": {`
async def main():
    r, w = await asyncio.open_connection("api.test", 443, ssl=ssl.create_default_context())
    w.write(b"GET /async HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n")
    print(b"GET /async of api.test" in await r.read())
asyncio.run(main())`, "True"},
			"any protocol": {fmt.Sprintf(`
s = socket.create_connection(("localhost", %d), 30)
s.sendall(b"\0\0\0\x08SELECT"); s.shutdown(socket.SHUT_WR)
print(s.makefile("rb").read())`, port), `b'\x00\x00\x00\x08SELECT'`},
			"only IPv4":                 {`print({a[4][0].split(".")[0] for a in socket.getaddrinfo("api.test", 443)}, tried(lambda: socket.getaddrinfo("api.test", 443, socket.AF_INET6))[:8])`, "{'127'} gaierror"},
			"the addresses of a family": {`print(len(socket.getaddrinfo("api.test", 443, socket.AF_INET, socket.SOCK_STREAM)))`, "1"},
			"a name of another host":    {`print(tried(lambda: tls("api.test", "token.test"))[:8].replace("ConnectionReset", "SSL")[:3])`, "SSL"},
			"another host's address":    {`a = socket.gethostbyname("token.test"); print(tried(lambda: ssl.create_default_context().wrap_socket(socket.create_connection((a, 443)), server_hostname="api.test"))[:3])`, "SSL"},
			"a port that was not asked": {`print(tried(lambda: socket.create_connection(("api.test", 8443)))[:22])`, "ConnectionRefusedError"},
			"an address":                {`print(tried(lambda: socket.create_connection(("192.0.2.1", 443)))[:7])`, "OSError"},
			"QUIC": {`
s = socket.socket(type=socket.SOCK_DGRAM); s.connect(("api.test", 443)); s.send(b"x")
print(tried(lambda: s.recv(1))[:22])`, "ConnectionRefusedError"},
			"a server of the code":    {`print(socket.create_server(("127.0.0.1", 443)).getsockname())`, "('127.0.0.1', 443)"},
			"a resolver of the image": {`print(open("/etc/resolv.conf").read().split("\n")[0])`, "nameserver 127.0.0.1"},
		} {
			if r := c.python(t, byItself+tt.code, "https://api.test", "https://rules.test", "https://token.test", local); r.status() != "success" || !strings.HasPrefix(r.text, tt.want) {
				t.Errorf("%s: %s", name, r.text)
			}
		}
		r := c.python(t, byItself+`direct("https://other.test/")`, "https://api.test")
		if !strings.Contains(r.text, "gaierror") || !strings.Contains(r.text, `hint: toolcell refused network requests: add "other.test" to [network] allow`) {
			t.Errorf("a name that is not allowed: %s", r.text)
		}
		if use := r.uses(); len(use) != 1 || use[0]["host"] != "other.test" || use[0]["port"] != 0.0 {
			t.Errorf("a name that is not allowed is reported as %v", use)
		}
		r = c.python(t, byItself+`direct("https://x.wide.test/")`, "https://api.test")
		if !strings.Contains(r.text, `add "https://x.wide.test" to the servers of the call`) {
			t.Errorf("a name that was not asked for: %s", r.text)
		}
		r = c.python(t, byItself+fmt.Sprintf(`socket.create_connection(("localhost", %d)).recv(1)`, port), "https://api.test")
		if !strings.Contains(r.text, "ConnectionRefusedError") || !strings.Contains(r.text, "by name, code reaches api.test:443, api.test:80") {
			t.Errorf("a port that was not asked for: %s", r.text)
		}
	})
}

// TestNodeReachesHostsByName: its fetch reads no proxy from the environment.
func TestNodeReachesHostsByName(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("needs Node")
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	s := newSite(t)
	c := firstHost(t).serve(t, s.env("allow = ['api.test']\nvia = 'env'", nil))
	c.python(t, byItself+`
script = "fetch('https://api.test/node').then(r => r.text()).then(t => console.log(t.split('\\n')[0]), e => console.log(String(e.cause)))"
run = lambda *c: print(subprocess.run(c, capture_output=True, text=True).stdout.splitlines()[0])
run("node", "-e", script)
run("node", "-e", script.replace("api.test", "other.test"))
run("curl", "-s", "--noproxy", "*", "https://api.test/curl")`, "https://api.test").want(t, "GET /node of api.test\nError: getaddrinfo ENOTFOUND other.test\nGET /curl of api.test")
}

// TestNamesInImages: C libraries differ in how they ask.
func TestNamesInImages(t *testing.T) {
	versions, _ := pythons()
	prefix := registry(t, "", "", versions...)
	s := newSite(t)
	inEveryWay(t, onFirstHost, func(t *testing.T, h *host) {
		for _, v := range versions {
			c := h.serve(t, s.env("allow = ['api.test']\nvia = 'env'", env{"TOOLCELL_IMAGE": prefix + v + "-slim"}))
			const ask = byItself + `
print(tried(lambda: direct("http://api.test/x"))[:19], tried(lambda: socket.gethostbyname("other.test"))[:8])`
			if r := c.python(t, ask, "https://api.test"); !strings.HasPrefix(r.text, "GET /x of api.test gaierror") {
				t.Errorf("%s: %s", v, r.text)
			}
			c.python(t, ask).want(t, "URLError: <urlopen  gaierror")
		}
	})
}

// TestNamesEndWithTheCall: the next call of a session finds none, or its own.
func TestNamesEndWithTheCall(t *testing.T) {
	s := newSite(t)
	inEveryWay(t, onFirstHost, func(t *testing.T, h *host) {
		c := h.serve(t, s.env("allow = ['api.test', 'rules.test']\nvia = 'env'", nil))
		in := func(code string, servers ...string) reply {
			return c.call(t, map[string]any{"code": code, "session": "s", "servers": servers})
		}
		const state = `
print(tried(lambda: direct("https://api.test/"))[:19], "|", open("/etc/resolv.conf").readline().strip())
` + wayOut + "\n"
		in(byItself+`
address = socket.gethostbyname("api.test")
kept = tls("api.test")
kept.sendall(b"GET /kept HTTP/1.1\r\nHost: api.test\r\n\r\n"); print(kept.recv(15))`, "https://api.test").want(t, "b'HTTP/1.1 200 OK'")
		const nothing = "URLError: <urlopen  | # no name server now\n" + closed
		in("print(kept.recv(9999)[-4:] and kept.recv(1))"+state+"\nprint(tried(lambda: socket.create_connection((address, 443)))[:22])").
			want(t, "b''\n"+nothing+"\nConnectionRefusedError")
		r := in("print(tried(lambda: socket.create_connection((address, 443)))[:22])"+state, "https://rules.test")
		if !strings.HasPrefix(r.text, "ConnectionRefusedError\nURLError: <urlopen  | nameserver 127.0.0.1") || !strings.Contains(r.text, `add "https://api.test" to the servers of the call`) {
			t.Errorf("a call with another host: %s", r.text)
		}
		in(`print(direct("https://api.test/again"), socket.gethostbyname("api.test") == address)`, "https://api.test").want(t, "GET /again of api.test True")
		// A server of the code has the name server's port.
		in(`import threading
mine = socket.socket(type=socket.SOCK_DGRAM); mine.bind(("127.0.0.1", 53))`).want(t, "Success (no output)")
		in(fetch("https://api.test/proxy")+"\nprint(open('/etc/resolv.conf').readline().strip())", "https://api.test").want(t, "GET /proxy of api.test\n# no name server now")
	})
}

// echoing serves a port of this host's loopback, and gives back what comes.
func echoing(t *testing.T) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}
