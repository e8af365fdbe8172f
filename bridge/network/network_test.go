package network

import (
	"bufio"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// run begins a run under a policy with these lines in [network].
func run(t *testing.T, lines string) *policy.Enforcer {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte("[network]\n"+lines), 0o600); err != nil {
		t.Fatal(err)
	}
	p := policy.Load(file, true, nil)
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	return p.NewEnforcer()
}

// open opens the way out to these hosts.
func open(t *testing.T, lines string, hosts ...string) (a *Access, proxy string) {
	t.Helper()
	grant, err := run(t, lines).GrantNetwork(hosts)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if a, err = Open(&fakeSandbox{listener: l}, grant); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a, l.Addr().String()
}

// A fakeSandbox has a listener for the proxy and, if it is there, a socket for the name server.
type fakeSandbox struct {
	Sandbox
	listener net.Listener
	packets  net.PacketConn
	udp, tcp []netip.AddrPort // that were wanted
	named    []bool           // what was said about names
}

func (s *fakeSandbox) Listen() (net.Listener, error) { return s.listener, nil }

func (s *fakeSandbox) ListenAt(udp, tcp []netip.AddrPort) ([]net.PacketConn, []net.Listener, error) {
	s.udp, s.tcp = udp, tcp
	if s.packets == nil {
		return nil, nil, errors.New("the ports are taken")
	}
	return []net.PacketConn{s.packets}, nil, nil
}

func (s *fakeSandbox) Resolve(names bool) error {
	s.named = append(s.named, names)
	return nil
}

// TestHostsAreNamedForTheRun: the sandbox listens for each of their ports, and says so in its
// resolv.conf for as long as it does. What cannot be had is no reason to fail.
func TestHostsAreNamedForTheRun(t *testing.T) {
	grant, err := run(t, `
allow = ["api.test", "*.test:8443", "tcp://db.test:5432", "10.0.0.1"]
private = ["10.0.0.1"]`).GrantNetwork([]string{"https://api.test", "https://x.test:8443", "tcp://db.test:5432", "https://10.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, taken := range []bool{false, true} {
		s := &fakeSandbox{}
		if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err == nil && !taken {
			s.packets, err = net.ListenPacket("udp", "127.0.0.1:0")
		}
		if err != nil {
			t.Fatal(err)
		}
		a, err := Open(s, grant)
		if err != nil {
			t.Fatal(err)
		}
		var ports []int
		for _, at := range s.tcp {
			ports = append(ports, int(at.Port()))
		}
		if slices.Sort(ports); !slices.Equal(ports, []int{53, 80, 443, 5432, 8443}) || len(s.udp) != 1 || s.udp[0] != s.tcp[0] {
			t.Errorf("listens at %v, %v", s.udp, s.tcp)
		}
		report := a.Close()
		if !slices.Equal(s.named, []bool{true, false}) {
			t.Errorf("ports taken: %v: names are said to be there: %v", taken, s.named)
		}
		hint := report.BypassedHint("gaierror: [Errno -5] No address associated with hostname")
		if by := "code reaches api.test:443, api.test:80, x.test:8443, db.test:5432, 10.0.0.1:443, 10.0.0.1:80, by name"; strings.Contains(hint, by) == taken {
			t.Errorf("ports taken: %v: the hint is %q", taken, hint)
		}
		if hint := report.BypassedHint("ConnectionRefusedError: [Errno 111] Connection refused"); strings.Contains(hint, "ask for tcp://HOST:PORT") == taken {
			t.Errorf("ports taken: %v: the hint is %q", taken, hint)
		}
		if !taken && s.packets.Close() == nil {
			t.Error("the name server outlives the run")
		}
	}
}

// ask sends a request to the proxy, and returns the status of the answer.
func ask(t *testing.T, proxy, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, request+" HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.Status
}

const (
	github = "https://api.github.com"
	rules  = "allow = ['api.github.com', 'GET https://api.example.com/v1/*', '*.example.org']\n"
	token  = `
[[network.credential]]
host = "*.example.org"
header = "Authorization"
value = "Bearer secret"
env = "TOKEN"
`
)

func TestNoAccessIsNothing(t *testing.T) {
	var none *Access
	if none.Inside() != nil {
		t.Error("no way out has variables")
	}
	if r := none.Close(); r.Uses != nil || r.Unsent() != "" || r.Unchecked {
		t.Errorf("no way out reports %+v", r)
	}
}

func TestVariablesInBothCases(t *testing.T) {
	a, proxy := open(t, rules, github)
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"} {
		if got := a.Inside().Variables[name]; got != "http://"+proxy {
			t.Errorf("%s is %q", name, got)
		}
	}
	if a.Inside().Variables["no_proxy"] != "localhost,127.0.0.1,::1" || a.Inside().Variables["NO_PROXY"] != a.Inside().Variables["no_proxy"] {
		t.Errorf("variables are %v", a.Inside().Variables)
	}
}

// TestAGrantedLoopbackHostIsTheHosts: clients connect to what no_proxy names by
// themselves, and would reach the sandbox.
func TestAGrantedLoopbackHostIsTheHosts(t *testing.T) {
	const local = "allow = [\"localhost:8443\", \"127.0.0.1:8443\"]\nprivate = [\"localhost\", \"127.0.0.1\"]\n"
	for target, want := range map[string]string{
		"https://localhost:8443": "127.0.0.1,::1",
		"https://127.0.0.1:8443": "localhost,::1",
	} {
		a, _ := open(t, local, target)
		if got := a.Inside().Variables["no_proxy"]; got != want || a.Inside().Variables["NO_PROXY"] != want {
			t.Errorf("with %s no_proxy is %q, want %q", target, got, want)
		}
	}
}

func TestPlaceholdersStandInForCredentials(t *testing.T) {
	a, _ := open(t, rules+token, github, "https://a.example.org", "https://b.example.org")
	first := a.Inside().Variables["TOKEN"]
	if !regexp.MustCompile(`^tc_[A-Z2-7]{32}$`).MatchString(first) {
		t.Errorf("the placeholder is %q", first)
	}
	for name, value := range a.Inside().Variables {
		if strings.Contains(value, "secret") {
			t.Errorf("%s is %q", name, value)
		}
	}
	b, _ := open(t, rules+token, "https://a.example.org")
	if b.Inside().Variables["TOKEN"] == first {
		t.Error("two runs have one placeholder")
	}
	c, _ := open(t, rules+token, github)
	if _, there := c.Inside().Variables["TOKEN"]; there {
		t.Error("a run that may not reach the host has the placeholder")
	}
}

// What the sandbox trusts is what the host trusts and, where requests are looked at, the
// run's own authority for those hosts.
func TestRootsAreTheHostsAndTheRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(file, []byte("-- the host's --\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file)
	a, _ := open(t, rules, github)
	if got := a.Inside().Roots; strings.TrimSpace(got) != "-- the host's --" || a.Inside().Variables["SSL_CERT_FILE"] != "/tmp/toolcell/roots.pem" {
		t.Errorf("without inspection: %q, %v", got, a.Inside().Variables)
	}
	b, _ := open(t, rules, github, "https://api.example.com")
	before, after, _ := strings.Cut(b.Inside().Roots, "-----BEGIN")
	block, _ := pem.Decode([]byte("-----BEGIN" + after))
	if strings.TrimSpace(before) != "-- the host's --" || block == nil {
		t.Fatalf("with inspection: %q", b.Inside().Roots)
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil || !slices.Equal(ca.PermittedDNSDomains, []string{"api.example.com"}) {
		t.Errorf("the authority is for %v, error %v", ca.PermittedDNSDomains, err)
	}
}

// TestReportDoesNotCallAFailureARefusal: the user would look for a rule to change.
func TestReportDoesNotCallAFailureARefusal(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nothing listens there any more
	closed := l.Addr().String()
	a, proxy := open(t, fmt.Sprintf("allow = [%q]\nprivate = ['127.0.0.1']", closed), "https://"+closed)
	want := "connecting to " + closed + ": connection refused"
	if got := ask(t, proxy, "CONNECT "+closed); got != "502 toolcell: "+want {
		t.Errorf("the status is %q", got)
	}
	if got := a.Close().Unsent(); got != "network requests failed: "+want {
		t.Errorf("the report says %q", got)
	}
}

func TestReportSaysWhatWasRefused(t *testing.T) {
	a, proxy := open(t, rules, github)
	for range 3 {
		if got := ask(t, proxy, "CONNECT other.test:443"); got != `403 toolcell: add "other.test" to [network] allow` {
			t.Errorf("the status is %q", got)
		}
	}
	ask(t, proxy, "CONNECT a.example.org:443")
	r := a.Close()
	want := `toolcell refused network requests: add "other.test" to [network] allow; add "https://a.example.org" to the servers of the call; the policy is `
	if got := r.Unsent(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "policy.toml") {
		t.Errorf("the report says %q", got)
	}
	if len(r.Uses) != 2 || r.Uses[0].Refused != 3 || r.Unchecked {
		t.Errorf("uses are %+v", r.Uses)
	}
	if _, err := net.Dial("tcp", proxy); err == nil {
		t.Error("the way out is open still")
	}
	b, proxy := open(t, rules, github)
	ask(t, proxy, "CONNECT a.example.org:443")
	if got := b.Close().Unsent(); strings.Contains(got, "policy.toml") {
		t.Errorf("what the call can mend names the file: %q", got)
	}
}

func TestHints(t *testing.T) {
	r := run(t, strings.Replace(rules, "[", "['tcp://db.test:5432', ", 1)+"private = ['10.0.0.1']")
	const gai = "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>"
	for i, tt := range []struct{ code, failure, want string }{
		{"get('https://api.github.com/x')", gai, `add "https://api.github.com" to servers`},
		{"get('http://api.github.com:80/x')", gai, `add "https://api.github.com" to servers`},
		{"get('https://none.test'); get('https://x.example.org')", gai, `add "https://x.example.org" to servers`},
		{"", "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='api.github.com', port=443): … NameResolutionError(…)", `add "https://api.github.com" to servers`},
		{"", "ClientConnectorDNSError: Cannot connect to host api.github.com:443 ssl:default [Temporary failure in name resolution]", `add "https://api.github.com" to servers`},
		{"connect('postgresql://me:word@db.test:5432/x')", "could not translate host name: Temporary failure in name resolution", `add "tcp://db.test:5432" to servers`},
		{"connect('postgresql://me:word@db.test:5433/x')", gai, ""},
		{"get('https://none.test')", gai, ""},
		{"get('https://api.github.com:8080')", gai, ""},
		{"get('https://api.github.com/x')", "KeyError: 'https://api.github.com'", ""},
		{"x = 1", gai, ""},
	} {
		got := UnaskedHint(r, tt.code, tt.failure)
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%d: %q", i, got)
		}
	}
	if got := UnaskedHint(policy.None().NewEnforcer(), "https://api.github.com", gai); got != "" {
		t.Errorf("without a policy: %q", got)
	}
	for failure, want := range map[string]string{
		gai: "HTTPS_PROXY",
		"OSError: [Errno 101] Network is unreachable":                                                        "HTTPS_PROXY",
		"aiohttp.client_exceptions.ClientConnectorDNSError: Cannot connect to host x:443 ssl:default [None]": "trust_env=True",
		"KeyError: 'x'": "",
	} {
		if got := (Report{}).BypassedHint(failure); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q", failure, got)
		}
	}
}
