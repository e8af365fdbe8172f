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
	"time"
)

// An authority issues the certificate of the inspected hosts for one run. Its key is only in
// memory, and its certificate is valid only for these hosts (RFC 5280, 4.2.1.10).
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
	leaf tls.Certificate // of all the hosts
}

const certificateLife = 24 * time.Hour

func newAuthority(hosts []string) (*authority, error) {
	template := newTemplate("toolcell, for one run")
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	constrain(template, hosts)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	a := &authority{cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	a.leaf, err = a.certificate(hosts)
	return a, err
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

// newTemplate returns what all certificates have in common. Package x509 adds a random
// serial number.
func newTemplate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife), // clocks inside are the host's
	}
}

// certificate issues a certificate of hosts.
func (a *authority) certificate(hosts []string) (leaf tls.Certificate, err error) {
	template := newTemplate("")
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames, template.IPAddresses = namesAndAddresses(hosts)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return leaf, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
