package hosts

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/toml"
)

// serverRules reads the key network of a server.
func serverRules(t *testing.T, text string) (*ServerRules, error) {
	t.Helper()
	var s struct {
		Network *ServerRules `json:"network"`
	}
	if err := toml.Unmarshal(t.Context(), []byte(text), &s); err != nil {
		return nil, err
	}
	s.Network.Named("[servers.s] network")
	return s.Network, nil
}

func granted(t *testing.T, text string, credentials ...Credential) *Grant {
	t.Helper()
	n, err := serverRules(t, text)
	if err != nil {
		t.Fatal(err)
	}
	g, err := n.GrantAll("policy.toml", credentials)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestServerReachesAllThatItsRulesAllow(t *testing.T) {
	g := granted(t, `network = { allow = ["api.github.com", "*.example.com", "https://raw.example.org:8443", "GET https://docs.example.org/v1/*", "tcp:db.internal:5432", "10.0.0.5"], deny = ["bad.example.com", "POST api.github.com/admin"], private = ["db.internal", "10.0.0.5"] }`)
	var targets []string
	for _, target := range g.Targets {
		targets = append(targets, fmt.Sprintf("%s%v", target.URL(), target.Ports))
	}
	want := []string{
		"https://api.github.com[80 443]", "https://raw.example.org:8443[8443]", "https://docs.example.org[443]", "tcp://db.internal:5432[5432]", "https://10.0.0.5[443 80]",
	}
	slices.Sort(targets)
	slices.Sort(want)
	if !slices.Equal(targets, want) {
		t.Errorf("targets %q\nwant    %q", targets, want)
	}
	for _, tt := range []struct {
		scheme, host string
		port         uint16
		want         string
	}{
		{"https", "api.github.com", 443, ""},
		{"https", "a.example.com", 443, ""},
		{"https", "example.com", 443, `add "example.com" to [servers.s] network.allow`},
		{"https", "bad.example.com", 443, `[servers.s] network.deny = "bad.example.com"`},
		{"tcp", "db.internal", 5432, ""},
		{"tcp", "db.internal", 22, `add "tcp://db.internal:22" to [servers.s] network.allow`},
		{"https", "10.0.0.6", 443, `add "10.0.0.6" to`},
	} {
		if _, err := g.AllowHost(tt.scheme, tt.host, tt.port); tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s %s:%d: %v, want %q", tt.scheme, tt.host, tt.port, err, tt.want)
		}
	}
	if _, err := g.AllowRequest("POST", "https", "api.github.com", 443, "/admin"); err == nil || !g.Inspected("https", "api.github.com", 443) {
		t.Errorf("a request that is denied passes: %v", err)
	}
	if _, err := g.AllowRequest("POST", "https", "docs.example.org", 443, "/v1/x"); err == nil || !strings.Contains(err.Error(), "[servers.s] network.allow") {
		t.Errorf("another method: %v", err)
	}
	if !g.AllowPrivate("db.internal", netip.MustParseAddr("10.1.2.3")) || g.AllowPrivate("api.github.com", netip.MustParseAddr("10.1.2.3")) {
		t.Error("private addresses are not those of the rules")
	}
}

func TestServerIsToldWhyANameHasNoAddress(t *testing.T) {
	g := granted(t, `network = ["*.example.com", "*.example.org:8443"]`)
	for host, want := range map[string]string{
		"a.example.com": `"*.example.com" names no single host, so only clients that use the proxy of HTTPS_PROXY reach it; for others add "a.example.com" to [servers.s] network`,
		"a.example.org": `for others add "a.example.org" to`,
		"a.example.net": `add "a.example.net" to [servers.s] network`,
	} {
		if _, err := g.ExplainName(host); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", host, err, want)
		}
	}
}

func TestCredentialIsForAHostThatTheServerMayReach(t *testing.T) {
	c := Credential{Host: "api.example.com", Header: "Authorization", Value: "x"}
	g := granted(t, `network = ["*.example.com"]`, c)
	if len(g.Targets) != 1 || g.Targets[0].Host != c.Host || !g.Inspected("https", c.Host, 443) || g.Inspected("https", "b.example.com", 443) {
		t.Errorf("its host is not known by name: %+v", g.Targets)
	}
	for _, text := range []string{`network = ["example.com"]`, `network = ["tcp:api.example.com:443"]`, `network = []`, `network = { allow = "*.example.com", deny = "api.example.com" }`} {
		n, err := serverRules(t, text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.GrantAll("policy.toml", []Credential{c}); err == nil || n.Allows(c.Host) || !strings.Contains(err.Error(), `"api.example.com" may not be reached`) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestServerRulesAsTheyAreWritten(t *testing.T) {
	for _, text := range []string{`["a.com", "tcp:b.com:1"]`, `[]`, `{ allow = ["a.com"], deny = ["GET a.com/X"], private = ["a.com", "10.0.0.0/8"], via = "env" }`} {
		n, err := serverRules(t, "network = "+text)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.String(); got != text {
			t.Errorf("%s, want %s", got, text)
		}
	}
	n, _ := serverRules(t, `network = { allow = "a.com", deny = "b.com", private = "10.0.0.0/8", via = "env" }`)
	if got := strings.Join(n.Lines("network"), "; "); got != "network: a.com; network, but not: b.com; network, private: 10.0.0.0/8; network: through the proxy of toolcell's environment" {
		t.Error(got)
	}
	if _, err := serverRules(t, `network = [`+strings.Repeat(`"a.com",`, maxTargets+1)+`]`); err == nil || !strings.Contains(err.Error(), "lists 101 hosts; the most is 100") {
		t.Error(err)
	}
}
