package network

import (
	"encoding/pem"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// A serverSandbox has the sockets of a server's sandbox, elsewhere.
type serverSandbox struct {
	Sandbox
	proxy   net.Listener
	packets net.PacketConn
	wanted  [][]netip.AddrPort // of TCP
	named   []bool
}

func newServerSandbox(t *testing.T) *serverSandbox {
	t.Helper()
	s := &serverSandbox{}
	var err error
	if s.proxy, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
		s.packets, err = net.ListenPacket("udp", "127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *serverSandbox) ListenAt(udp, tcp []netip.AddrPort) ([]net.PacketConn, []net.Listener, error) {
	s.wanted = append(s.wanted, tcp)
	switch {
	case len(s.wanted) > 1:
		return []net.PacketConn{s.packets}, nil, nil
	case s.proxy == nil:
		return nil, nil, errors.New("the port is taken")
	}
	return nil, []net.Listener{s.proxy}, nil
}

func (s *serverSandbox) Resolve(names bool) error {
	s.named = append(s.named, names)
	return nil
}

// prepare prepares egress for a server, whose hosts are these.
func prepare(t *testing.T, lines string, hosts ...string) *ServerAccess {
	t.Helper()
	grant, err := run(t, lines).GrantNetwork(hosts)
	if err != nil {
		t.Fatal(err)
	}
	grant.File = "policy.toml"
	s, err := Prepare(grant, Server{Section: "[servers.github]", RootsFile: "/etc/roots.pem"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// TestAServerKnowsItsProxyBeforeItRuns: its environment and its roots are made before its sandbox.
func TestAServerKnowsItsProxyBeforeItRuns(t *testing.T) {
	s := prepare(t, rules+token, github, "https://a.example.org")
	variables, roots := s.Variables(), s.Roots()
	if variables["SSL_CERT_FILE"] != "/etc/roots.pem" || variables["NODE_EXTRA_CA_CERTS"] != "/etc/roots.pem" || !strings.HasPrefix(variables["TOKEN"], "tc_") {
		t.Errorf("variables are %v", variables)
	}
	if block, _ := pem.Decode(s.access.broker.Certificate()); block == nil || !strings.Contains(string(roots), string(pem.EncodeToMemory(block))) {
		t.Error("the broker's certificate is not among the roots")
	}
	sandbox := newServerSandbox(t)
	if err := s.Serve(sandbox); err != nil {
		t.Fatal(err)
	}
	if at := sandbox.wanted[0]; len(at) != 1 || "http://"+at[0].String() != variables["https_proxy"] {
		t.Errorf("it listens at %v, and the proxy is %s", at, variables["https_proxy"])
	}
	if len(sandbox.wanted[1]) != 5 || !slices.Equal(sandbox.named, []bool{true}) { // the name server, and two ports of each host
		t.Errorf("it listens at %v, and names are there: %v", sandbox.wanted[1], sandbox.named)
	}
	if got := ask(t, sandbox.proxy.Addr().String(), "CONNECT a.example.org:443"); got != "200 Connection established" {
		t.Errorf("the status is %q", got)
	}
	s.Close()
	if err := sandbox.packets.Close(); !errors.Is(err, net.ErrClosed) {
		t.Error("the name server outlives the server")
	}
}

// TestRefusedHostsOfAServerAreNamed with what lets it reach them, for the call in which it was
// refused.
func TestRefusedHostsOfAServerAreNamed(t *testing.T) {
	s := prepare(t, rules+"deny = ['bad.example.org']", github, "https://api.example.com", "https://a.example.org")
	sandbox := newServerSandbox(t)
	if err := s.Serve(sandbox); err != nil {
		t.Fatal(err)
	}
	ask := func(request string) string { return ask(t, sandbox.proxy.Addr().String(), request) }
	if got := s.Explain(time.Time{}); got != "" {
		t.Errorf("nothing was refused, and %q", got)
	}
	if got, want := ask("CONNECT other.test:443"), `403 toolcell: add "other.test" to [servers.github] network`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	const one = "the sandbox of this server refused other.test:443; to allow it, add it to [servers.github] network of policy.toml"
	if got := s.Explain(time.Time{}); got != one {
		t.Errorf("%q, want %q", got, one)
	}
	later := s.RefusedSince(time.Time{})[0].Last.Add(1)
	if got := s.Explain(later); got != "" {
		t.Errorf("nothing was refused since, and %q", got)
	}
	ask("CONNECT b.example.org:8443")
	ask("CONNECT c.example.org:443") // of a rule, but not of this server
	ask("CONNECT bad.example.org:443")
	want := "the sandbox of this server refused c.example.org:443, b.example.org:8443; to allow them, add them to [servers.github] network of policy.toml; " +
		`the sandbox of this server refused requests to bad.example.org:443 ([network] deny = "bad.example.org")`
	if got := s.Explain(later); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, host := range []string{"a", "b", "c", "d", "e", "f"} {
		ask("CONNECT " + host + ".other.test:443")
	}
	if got := s.Explain(later); !strings.Contains(got, "f.other.test:443, e.other.test:443, d.other.test:443, c.other.test:443, b.other.test:443, and 3 more; to allow them") {
		t.Errorf("%q", got)
	}
	if all := s.Contacts(); len(all) != 10 || all[0].Host != "f.other.test" || all[0].Refused != 1 || time.Since(all[0].Last) > time.Hour {
		t.Errorf("contacts are %+v", all)
	}
}

// TestWithoutItsPortAServerHasNoEgress: another would answer in the proxy's place.
func TestWithoutItsPortAServerHasNoEgress(t *testing.T) {
	s := prepare(t, rules, github)
	if err := s.Serve(&serverSandbox{}); err == nil || err.Error() != "the port is taken" {
		t.Errorf("%v", err)
	}
}
