package egress

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// TestTheAuthorityIsForItsHostsOnly, whether they are names or addresses: what code trusts
// for one of them is good for nothing else.
func TestTheAuthorityIsForItsHostsOnly(t *testing.T) {
	for _, hosts := range [][]string{
		{"example.com"},
		{"192.0.2.7"},
		{"2001:db8::7"},
		{"example.com", "example.org", "192.0.2.7"},
		{"example.com", "192.0.2.7", "2001:db8::7"},
	} {
		a, err := newAuthority(hosts, Run, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		verify := func(der []byte, host string, usages ...x509.ExtKeyUsage) error {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(a.pem)
			cert, err := x509.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			_, err = cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: usages})
			return err
		}
		for _, host := range hosts {
			if err := verify(a.leaf.Certificate[0], host); err != nil {
				t.Errorf("%q: the certificate is not good for %s: %v", hosts, host, err)
			}
			if verify(a.leaf.Certificate[0], host, x509.ExtKeyUsageClientAuth) == nil {
				t.Errorf("%q: the certificate is good for a client", hosts)
			}
		}
		for _, host := range []string{"other.com", "com", "192.0.2.8", "0.0.0.0", "2001:db8::8", "::"} {
			leaf, err := a.certificate([]string{host})
			if err != nil {
				t.Fatal(err)
			}
			if verify(leaf.Certificate[0], host) == nil {
				t.Errorf("%q: a certificate of the authority is good for %s", hosts, host)
			}
		}
	}
}

// TestTheAuthoritySaysThatItSignsCertificates: clients that keep to RFC 5280 (4.2.1.3), as
// Python does since 3.13, trust no other.
func TestTheAuthoritySaysThatItSignsCertificates(t *testing.T) {
	_, b := startBroker(t, inspecting("GET /*"))
	block, _ := pem.Decode(b.Certificate())
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if ca.KeyUsage != x509.KeyUsageCertSign {
		t.Errorf("the key's usage is %b", ca.KeyUsage)
	}
}

// TestHostsOfNoCertificateStartNothing: without a certificate, nobody could be answered in
// their place.
func TestHostsOfNoCertificateStartNothing(t *testing.T) {
	for host, want := range map[string]string{
		"ex\u00e4mple.com": "cannot be encoded as an IA5String",
		"example.com.":     "failed to parse dnsName constraint",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		b, err := Start(l, Options{Rules: testRules{}, Inspect: []string{host}})
		if err == nil {
			b.Close()
		}
		const begin = "making the certificate authority of a run: x509: "
		if err == nil || !strings.HasPrefix(err.Error(), begin) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want one of %q", host, err, want)
		}
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: it listened still", host)
		}
	}
}

// TestAnInspectedAddressIsAnswered: clients compare it with the addresses of a certificate,
// not with its names.
func TestAnInspectedAddressIsAnswered(t *testing.T) {
	f := newFixture(t, Options{
		Rules:   testRules{inspected: map[string][]string{"127.0.0.1": {"GET /ok"}}},
		Inspect: []string{"127.0.0.1"},
	}, hello)
	status, body, err := f.get(f.url("127.0.0.1", "/ok"))
	if err != nil || status != 200 || !strings.HasPrefix(body, "GET /ok of 127.0.0.1:") {
		t.Errorf("%d %q, error %v", status, body, err)
	}
}
