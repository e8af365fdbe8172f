package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// An authority issues the certificates of inspected hosts for one run. Its key is only in
// memory, and its certificate is valid only for these hosts (RFC 5280, 4.2.1.10).
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

const certificateLife = 24 * time.Hour

func newAuthority(hosts []string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := newTemplate("toolcell, for one run")
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	constrain(template, hosts)
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{
		cert: cert, key: key, leaves: map[string]*tls.Certificate{},
		pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
}

// constrain limits the names in certificates. A kind of name without constraints would be
// unlimited.
func constrain(c *x509.Certificate, hosts []string) {
	c.PermittedDNSDomainsCritical = true
	for _, host := range hosts {
		if addr, err := netip.ParseAddr(host); err == nil {
			c.PermittedIPRanges = append(c.PermittedIPRanges, &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(addr.BitLen(), addr.BitLen())})
		} else {
			c.PermittedDNSDomains = append(c.PermittedDNSDomains, host)
		}
	}
	if c.PermittedIPRanges == nil {
		c.ExcludedIPRanges = []*net.IPNet{
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
			{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
		}
	}
	if c.PermittedDNSDomains == nil {
		c.PermittedDNSDomains = []string{"toolcell.invalid"} // RFC 6761, 6.4
	}
}

// newTemplate returns what all certificates have in common. Package x509 adds a random
// serial number.
func newTemplate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife), // clocks inside are the host's
	}
}

// certificate returns the certificate of a host.
func (a *authority) certificate(host string) (_ *tls.Certificate, err error) {
	defer contain.Error("making a certificate", &err)
	a.mu.Lock()
	defer a.mu.Unlock()
	if leaf := a.leaves[host]; leaf != nil {
		return leaf, nil
	}
	template := newTemplate("")
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if addr, err := netip.ParseAddr(host); err == nil {
		template.IPAddresses = []net.IP{addr.AsSlice()}
	} else {
		template.DNSNames = []string{host}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("making the certificate of %q: %w", host, err)
	}
	leaf := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	a.leaves[host] = leaf
	return leaf, nil
}

// config returns the configuration of the server that impersonates a host. It offers only
// HTTP/1.1 (ALPN).
func (a *authority) config(host string) *tls.Config {
	return &tls.Config{
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return a.certificate(host)
		},
	}
}
