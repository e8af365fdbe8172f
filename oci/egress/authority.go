package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// An authority issues the certificate of the inspected hosts for one run or server. Its key is only
// in memory, and its certificate is valid only for these hosts (RFC 5280, 4.2.1.10).
type authority struct {
	hosts []string
	now   func() time.Time
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	pem   []byte

	mu   sync.Mutex
	leaf *tls.Certificate // of all the hosts
}

const (
	certificateLife = 24 * time.Hour
	// serverLife is that of the certificate by which a server trusts the authority. It has read
	// the file at its start, and would not see another one. No server runs for ten years, and no
	// one else gains by it: the key ends with the broker. It begins early too, since the host's
	// clock may be set back meanwhile.
	serverLife = 10 * 365 * 24 * time.Hour
)

func newAuthority(hosts []string, owner Owner, now func() time.Time) (*authority, error) {
	a := &authority{hosts: hosts, now: now}
	template := a.newTemplate("toolcell, for one " + string(owner))
	if owner == Server {
		template.NotBefore, template.NotAfter = a.wallClock().Add(-certificateLife), a.wallClock().Add(serverLife)
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	constrain(template, hosts)
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	a.leaf, err = a.certificate(hosts)
	return a, err
}

// leafFor returns the certificate of all the hosts, a new one in time before it expires: a
// client compares it with its clock in the handshake.
func (a *authority) leafFor(*tls.ClientHelloInfo) (_ *tls.Certificate, err error) {
	defer contain.Error("renewing a certificate", &err)
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.wallClock(); now.Before(a.leaf.Leaf.NotBefore) || now.After(a.leaf.Leaf.NotAfter.Add(-certificateLife/2)) {
		leaf, err := a.certificate(a.hosts)
		if err != nil {
			return nil, err
		}
		a.leaf = leaf
	}
	return a.leaf, nil
}

// constrain limits the names in certificates. A kind of name without constraints would be
// unlimited.
func constrain(c *x509.Certificate, hosts []string) {
	names, addrs := namesAndAddresses(hosts)
	c.PermittedDNSDomainsCritical, c.PermittedDNSDomains = true, names
	for _, ip := range addrs {
		c.PermittedIPRanges = append(c.PermittedIPRanges, &net.IPNet{IP: ip, Mask: net.CIDRMask(8*len(ip), 8*len(ip))})
	}
	if addrs == nil {
		c.ExcludedIPRanges = []*net.IPNet{
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
			{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
		}
	}
	if names == nil {
		c.PermittedDNSDomains = []string{"toolcell.invalid"} // RFC 6761, 6.4
	}
}

// namesAndAddresses divides hosts as certificates do.
func namesAndAddresses(hosts []string) (names []string, addrs []net.IP) {
	for _, host := range hosts {
		if addr, err := netip.ParseAddr(host); err == nil {
			addrs = append(addrs, addr.AsSlice())
		} else {
			names = append(names, host)
		}
	}
	return names, addrs
}

// wallClock returns the time that clients inside compare with, which the user may set and which
// goes on while the host sleeps. Times of Go otherwise compare by a clock that does neither.
func (a *authority) wallClock() time.Time { return a.now().Round(0) }

// newTemplate returns what all certificates have in common. Package x509 adds a random
// serial number.
func (a *authority) newTemplate(name string) *x509.Certificate {
	now := a.wallClock()
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife), // clocks inside are the host's
	}
}

// certificate issues a certificate of hosts.
func (a *authority) certificate(hosts []string) (*tls.Certificate, error) {
	template := a.newTemplate("")
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames, template.IPAddresses = namesAndAddresses(hosts)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}
