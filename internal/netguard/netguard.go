// Package netguard knows which addresses are public, and which belong to this host.
//
// Three questions have three answers. IsPublic: may code from a sandbox go there?
// IsInternal: is it too close to be named by a server on the internet? IsOwn: may the
// server that is there itself name what is close? LeadsHere asks the kernel about a
// connection, since a public address may be one of this host's own. Nothing here looks
// up a name.
package netguard

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// LeadsHere reports whether a connection ends on this host. An address may be routed to
// the host and be on none of its interfaces (ip route add local …). The kernel is asked
// about the way from the connection's own address, which a rule may be about.
func LeadsHere(c net.Conn) bool {
	local, ok1 := c.LocalAddr().(*net.TCPAddr)
	remote, ok2 := c.RemoteAddr().(*net.TCPAddr)
	if !ok1 || !ok2 || local.IP.Equal(remote.IP) {
		return true
	}
	routes, err := netlink.RouteGetWithOptions(remote.IP, &netlink.RouteGetOptions{SrcAddr: local.IP})
	return err != nil || slices.ContainsFunc(routes, func(r netlink.Route) bool { return r.Type == unix.RTN_LOCAL })
}

// InterfaceAddresses returns the addresses of this host: what listens on a public one
// may trust the host itself.
func InterfaceAddresses() (map[netip.Addr]bool, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("listing the addresses of this host: %w", err)
	}
	own := make(map[netip.Addr]bool, len(addrs))
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			own[prefix.Addr().Unmap().WithZone("")] = true
		}
	}
	return own, nil
}

// IsPublic reports whether an address leads to the public internet, where code from a
// sandbox may go.
func IsPublic(addr netip.Addr) bool {
	addr = addr.Unmap()
	return addr.IsValid() && (addr.Is4() || globalUnicast.Contains(addr)) && !isIn(own, addr) && !isIn(special, addr)
}

// IsInternal reports whether an address may belong to this host, its network or its cloud. A
// server on the internet must not name such an address. Unlike IsPublic it looks through the
// network's translation of public IPv4 addresses (RFC 6052): on hosts without IPv4 all servers
// without IPv6 have such an address.
func IsInternal(addr netip.Addr) bool {
	if addr = addr.Unmap(); translated.Contains(addr) {
		bytes := addr.As16()
		addr = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return !IsPublic(addr)
}

// IsOwn reports whether an address certainly belongs to this host or its network. A server
// there may lead to others there. An address that is neither own nor public may be a
// stranger's, by 6to4.
func IsOwn(addr netip.Addr) bool { return isIn(own, addr.Unmap().WithZone("")) }

// isThisHost reports whether the host of a URL is this one, by its address or as
// "localhost".
func isThisHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// IsLocalhost reports whether the host of a URL is this one or has a name that resolvers
// should take for it (RFC 6761, 6.3). Not all do.
func IsLocalhost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return isThisHost(host) || strings.HasSuffix(host, ".localhost")
}

// Port returns the port of an address: that of its scheme if it names none.
func Port(u *url.URL) string {
	if u.Port() == "" && u.Scheme == "http" {
		return "80"
	}
	return cmp.Or(u.Port(), "443")
}

// IsSafe reports whether requests to a URL are encrypted or stay on this host.
func IsSafe(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && isThisHost(u.Hostname())
}

// Loopback is what clients call the loopback of the host that they are on.
var Loopback = []string{"localhost", "127.0.0.1", "::1"}

// globalUnicast is the part of IPv6 from which public addresses come (RFC 4291, 2.4).
// Addresses outside it, such as mapped, translated and local ones, are not public.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// translated is where a network has the IPv4 addresses for hosts without IPv4.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// own are the networks that the internet has no routes to: those of a host or a site,
// those between a provider and its customers (RFC 6598), where clouds have services for
// their machines, and those for documentation and measurements, which laboratories use.
var own = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
	"192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::/128", "::1/128", "2001:db8::/32", "3fff::/20", "fc00::/7", "fe80::/10",
)

// special are the other networks of IANA's special-purpose registries for IPv4 and IPv6
// that are not globally reachable, those that lead to an IPv4 address in another form
// (Teredo, 6to4), multicast, and the address at which Azure's hosts answer their
// virtual machines.
var special = prefixes(
	"192.0.0.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.175.48.0/24",
	"224.0.0.0/4", "168.63.129.16/32", "2001::/23", "2002::/16", "2620:4f:8000::/48",
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, s := range texts {
		all[i] = netip.MustParsePrefix(s)
	}
	return all
}

func isIn(all []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(addr) })
}
