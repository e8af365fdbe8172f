package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wayOut prints the variables by which clients find a way out, and how many sockets
// listen.
const wayOut = `
import os
print(sorted(n for n in os.environ if n.lower().endswith("_proxy") or n.endswith(("_CA_BUNDLE", "_CAINFO", "_CERT_FILE", "_CA_CERTS"))),
    [line.split()[3] for line in open("/proc/net/tcp")].count("0A"))`

const closed = "[] 0"

// fetch prints what comes from an address.
func fetch(url string) string {
	return fmt.Sprintf("import urllib.request\nprint(urllib.request.urlopen(%q).read().decode().splitlines()[0])", url)
}

// TestNetworkNeedsThePolicyAndTheCall: with one of them nothing is different.
//
//test:mainjob
func TestNetworkNeedsThePolicyAndTheCall(t *testing.T) {
	s := newSite(t)
	at := "https://" + s.hostPort()
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		without := h.serve(t, s.env("", nil))
		without.wantStart(t, h)
		without.python(t, wayOut).want(t, closed)
		with := h.serve(t, s.env(fmt.Sprintf("allow = [%q, 'api.test']\nprivate = ['127.0.0.2']\nvia = 'env'", s.hostPort()), nil))
		for _, servers := range [][]string{nil, {}, {"*"}} {
			with.python(t, wayOut, servers...).want(t, closed)
		}
		for _, tt := range []struct {
			c        *client
			asked    string
			wantText string
		}{
			{without, at, fmt.Sprintf(`%q is not allowed: add "127.0.0.2" to [network] private`, at)},
			{without, "https://api.test", `"https://api.test" is not allowed: add "api.test" to [network] allow`},
			{with, "https://other.test", `"https://other.test" is not allowed: add "other.test" to [network] allow`},
			{with, "https://127.0.0.3", `add "127.0.0.3" to [network] private`},
			{with, "https://2130706434", "is neither a host's name nor an address"},
			{with, "https://api.test/x", "more than a host and a port"},
			{with, "https://*", "more than a host and a port, or a *; a host is asked for as https://HOST"},
			{with, "tcp://api.test:443", `"tcp://api.test:443" is not allowed: add "tcp://api.test:443" to [network] allow`},
			{with, "http://api.test", "a host is asked for as https://HOST, https://HOST:PORT or tcp://HOST:PORT"},
		} {
			r := tt.c.python(t, "print('ran')", tt.asked)
			if r.status() != "validation_error" || !strings.Contains(r.text, tt.wantText) || strings.Contains(r.text, "ran") {
				t.Errorf("%s: %s", tt.asked, r.text)
			}
			if strings.Contains(tt.wantText, "[network]") && !strings.Contains(r.text, "policy.toml: ") {
				t.Errorf("%s names no file: %s", tt.asked, r.text)
			}
		}
		r := with.python(t, wayOut, at)
		r.want(t, "['ALL_PROXY', 'CURL_CA_BUNDLE', 'GIT_SSL_CAINFO', 'HTTPS_PROXY', 'HTTP_PROXY', 'NODE_EXTRA_CA_CERTS', 'NO_PROXY', "+
			"'REQUESTS_CA_BUNDLE', 'SSL_CERT_FILE', 'all_proxy', 'http_proxy', 'https_proxy', 'no_proxy'] 1")
		if r.fields["network"] != nil {
			t.Errorf("a run that reached nothing says %v", r.fields["network"])
		}
		// The address is dialed as it is: Go takes no proxy for loopback addresses.
		r = with.python(t, fetch(at+"/x"), at)
		r.want(t, "GET /x of "+s.hostPort())
		use := r.uses()[0]
		if use["host"] != "127.0.0.2" || use["requests"] != 1.0 || use["refused"] != 0.0 || use["rule"] != s.hostPort() || use["bytesReceived"].(float64) < 100 || use["bytesSent"].(float64) < 100 {
			t.Errorf("the use is %v", use)
		}
		r = with.python(t, fetch("https://api.test/y"), "https://api.test")
		r.want(t, "GET /y of api.test")
		r.noted(t, "addresses were not checked")
	})
}

func TestNetworkOnTheCommandLine(t *testing.T) {
	s := newSite(t)
	h := firstHost(t)
	// exec starts a container, for a session too.
	e := s.env("allow = ['api.test']\nvia = 'env'", nil)
	out, errs, code := h.run(t, e, "exec", "--server", "https://api.test", "-c", fetch("https://api.test/x"))
	if code != exitOK || out != "GET /x of api.test\n" {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	file := filepath.Join(e["XDG_CONFIG_HOME"], "toolcell", "policy.toml")
	_, errs, code = h.run(t, e, "exec", "--server", "https://other.test", "-c", "pass")
	if code != exitUsage || !strings.Contains(errs, `policy `+file+`: "https://other.test" is not allowed: add "other.test" to [network] allow`) {
		t.Errorf("exit %d\n%s", code, errs)
	}
	out, errs, code = h.run(t, e, "exec", "-i", "-q", "--server", "https://api.test", "-c", fetch("https://api.test/y"))
	if code != exitOK || !strings.Contains(out, "GET /y of api.test\n") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if checks, _ := examined(t, h.command(t, e, "doctor", "--json")); !strings.Contains(checks["RC-POLICY"].Text, "says in 0 sections what code may call, and in 1 rule what it may reach") {
		t.Errorf("doctor: %+v", checks["RC-POLICY"])
	}
}

// TestNetworkEndsWithTheCall: the next call of a session has no way out unless it asks
// for one, and finds its variables as they were.
func TestNetworkEndsWithTheCall(t *testing.T) {
	s := newSite(t)
	inEveryWay(t, onFirstHost, func(t *testing.T, h *host) {
		c := h.serve(t, s.env("allow = ['api.test']\nvia = 'env'", nil))
		in := func(code string, servers ...string) reply {
			return c.call(t, map[string]any{"code": code, "session": "s", "servers": servers})
		}
		in("import os; os.environ['no_proxy'] = 'mine'").want(t, "Success (no output)")
		in(`
import http.client, os, socket, ssl, urllib.request
port = int(os.environ["https_proxy"].rpartition(":")[2])
kept = http.client.HTTPSConnection("127.0.0.1", port)
kept.set_tunnel("api.test", 443)
kept.request("GET", "/kept"); print(kept.getresponse().read().decode().splitlines()[0])
idle = socket.create_connection(("127.0.0.1", port))`, "https://api.test").want(t, "GET /kept of api.test")
		in(`
def ends(do):
    try: return do()
    except Exception as e: return type(e).__name__
print(ends(lambda: idle.recv(1)), ends(lambda: kept.sock.recv(1)), ends(lambda: socket.create_connection(("127.0.0.1", port))))
print(os.environ["no_proxy"])
del os.environ["no_proxy"]`+wayOut).want(t, "b'' b'' ConnectionRefusedError\nmine\n"+closed)
		in(fetch("https://api.test/again"), "https://api.test").want(t, "GET /again of api.test")
		in(wayOut).want(t, closed)
	})
}

// TestNetworkRefusalsAreSaidOnce, in the status line for the client and in the result for
// the model, which names the file that the user can change.
func TestNetworkRefusalsAreSaidOnce(t *testing.T) {
	s := newSite(t)
	c := firstHost(t).serve(t, s.env("allow = ['api.test', '*.api.test', 'GET https://rules.test/v1/*']\nvia = 'env'", nil))
	const change = "; the policy is "
	for name, tt := range map[string]struct {
		code    string
		servers []string
		want    []string
		never   string
	}{
		"an error of the code": {
			fetch("https://other.test/"),
			[]string{"https://api.test"},
			[]string{`Tunnel connection failed: 403 toolcell: add "other.test" to [network] allow`, `hint: toolcell refused network requests: add "other.test" to [network] allow` + change, "policy.toml"},
			"\nnote: the network",
		},
		"caught": {
			"for i in range(3):\n  try: __import__('urllib.request').request.urlopen('https://other.test/')\n  except Exception: pass",
			[]string{"https://api.test"},
			[]string{`note: toolcell refused network requests: add "other.test" to [network] allow` + change},
			"hint:",
		},
		"a host that the call did not ask for": {
			fetch("https://x.api.test/"),
			[]string{"https://api.test"},
			[]string{`hint: toolcell refused network requests: add "https://x.api.test" to the servers of the call`},
			change,
		},
		"a request": {
			fetch("https://rules.test/v2/x"),
			[]string{"https://rules.test"},
			[]string{`HTTP Error 403: toolcell: add "GET https://rules.test/v2/x" to [network] allow`},
			"",
		},
		"a call that did not ask": {
			fetch("https://api.test/"), nil, []string{`hint: the call did not ask for this host: add "https://api.test" to servers`}, "",
		},
		"a call that need not ask": {fetch("https://other.test/"), nil, nil, "to servers"},
		"a client that goes by itself": {
			"import socket; socket.create_connection(('192.0.2.1', 443))",
			[]string{"https://api.test"},
			[]string{"hint: code reaches api.test:443, api.test:80, by name: addresses of the internet and UDP lead nowhere"},
			"",
		},
	} {
		r := c.python(t, tt.code, tt.servers...)
		for _, want := range tt.want {
			if n := strings.Count(r.text, want); n == 0 || n > 1 && strings.Contains(want, ": the ") {
				t.Errorf("%s: %q is there %d times:\n%s", name, want, n, r.text)
			}
		}
		if tt.never != "" && strings.Contains(r.text, tt.never) {
			t.Errorf("%s: %q is there:\n%s", name, tt.never, r.text)
		}
	}
}

// TestNetworkLeavesNothing open in toolcell: no connection to a host outlives its run.
func TestNetworkLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := firstHost(t).serve(t, s.env("allow = ['api.test', 'GET https://rules.test/*']\nvia = 'env'", nil))
	open := func() int {
		all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, fd := range all { // of the network alone: others come with sandboxes that wait
			if to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", c.cmd.Process.Pid, fd.Name())); err == nil && s.isTCP(to) {
				n++
			}
		}
		return n
	}
	for range 5 {
		c.python(t, rawAsk+"kept = [tls(f'{h}.test:443', f'{h}.test') for h in ('api', 'rules') for i in range(3)]\n"+
			"for k in kept: k.sendall(b'GET /x HTTP/1.1\\r\\nHost: rules.test\\r\\n\\r\\n')\nprint({line(k) for k in kept})", "https://api.test", "https://rules.test").
			want(t, "{'HTTP/1.1 200 OK'}")
	}
	waitFor(t, "connections of toolcell to end", func() bool { return open() == 0 })
}

// isTCP reports whether a descriptor is one of the connections to our servers, or of any
// other of TCP on this host.
func (s *site) isTCP(link string) bool {
	inode, ok := strings.CutPrefix(link, "socket:[")
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		s.t.Fatal(err)
	}
	return ok && strings.Contains(string(table), " "+strings.TrimSuffix(inode, "]")+" ")
}
