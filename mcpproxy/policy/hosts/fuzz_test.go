package hosts

import (
	"net/netip"
	"strings"
	"testing"
)

// FuzzNetwork reads hosts, rules and targets as a policy and a call have them. What is
// understood has one form, which is understood in the same way, and no other notation of an
// address passes as a name.
func FuzzNetwork(f *testing.F) {
	for _, s := range []string{
		"api.github.com", "*.example.org:8443", "GET https://api.example.com/v1/*", "[2001:db8::1]:443", "10.1.0.0/16", "127.1", "0x7f.1",
		"https://api.github.com", "https://[::ffff:10.0.0.1]:80", "HTTPS://A.b.", "a%2fb", "x:99999", "-", "_x.y", "1e3", "host\x00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if host, err := Canonical(s); err == nil {
			again, err := Canonical(host)
			if err != nil || again != host {
				t.Errorf("%q is %q, and that is %q, %v", s, host, again, err)
			}
			if _, err := netip.ParseAddr(host); err != nil && strings.ContainsAny(host[strings.LastIndexByte(host, '.')+1:][:1], "0123456789") {
				t.Errorf("%q may be read as an address", host)
			}
			if strings.ContainsAny(host, " \r\n\t/@?#*%") {
				t.Errorf("%q is a host", host)
			}
		}
		if target, err := parseTarget(s); err == nil {
			if again, err := parseTarget(target.URL()); err != nil || again.Host != target.Host {
				t.Errorf("%q is %+v, and that is %+v, %v", s, target, again, err)
			}
		}
		if r, err := parseRule(s); err == nil {
			host := strings.Replace(string(r.host), "*", "x", 1)
			q := request{method: "GET", scheme: "https", host: host, port: 443, path: "/"}
			if r.method == "" && r.scheme != "http" && r.port == 0 && r.path == "" && !r.matches(q) {
				t.Errorf("%q is %+v, which does not match its own host", s, r)
			}
			if q.host = "x" + strings.TrimPrefix(host, "x"); q.host != host && !strings.HasPrefix(string(r.host), "*") && r.matches(q) {
				t.Errorf("%q matches %q", s, q.host)
			}
		}
	})
}
