// Package netguard knows which addresses are public, and which belong to this host.
//
// It promises that no address is called public which is of this host, of its network or
// of its cloud by what IANA and clouds have set aside. A public address may still be one
// of this host's own: the interfaces and the kernel's routes tell. It looks up no names.
package netguard

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

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

// globalUnicast is the part of IPv6 from which public addresses come (RFC 4291, 2.4).
// What is outside it, such as mapped, translated (64:ff9b::/96) and local addresses,
// is not public.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// special are the networks of IANA's special-purpose registries for IPv4 and IPv6 that
// are not globally reachable, those that lead to an IPv4 address in another form
// (Teredo, 6to4), multicast, and the address at which Azure's hosts answer their
// virtual machines.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32",
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, s := range texts {
		all[i] = netip.MustParsePrefix(s)
	}
	return all
}

// IsPublic reports whether an address leads to the public internet. It is unmapped.
func IsPublic(addr netip.Addr) bool {
	if addr.Is6() && !globalUnicast.Contains(addr) {
		return false
	}
	for _, p := range special {
		if p.Contains(addr) {
			return false
		}
	}
	return addr.IsValid()
}
