package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// An addressError is an address that may not be dialed.
type addressError struct {
	host string
	addr netip.Addr
}

func (e *addressError) Error() string {
	if e.host == e.addr.String() {
		return fmt.Sprintf("%s is not a public address; to allow it, add it to [network] private", e.addr)
	}
	return fmt.Sprintf("%s has the address %s, which is not a public one; to allow it, add %q to [network] private", e.host, e.addr, e.host)
}

// dial connects to a host and port. It looks the host up once, checks every address
// that it has, and dials those: a name that changes between check and use (DNS
// rebinding) gains nothing.
func (b *Broker) dial(ctx context.Context, host string, port uint16) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, b.o.DialTimeout)
	defer cancel()
	if proxy, err := b.proxyFor("https", target{host, port}); err != nil {
		return nil, err
	} else if proxy != nil {
		return b.dialThrough(ctx, proxy, target{host, port}.String())
	}
	return b.dialDirectly(ctx, host, port)
}

func (b *Broker) dialDirectly(ctx context.Context, host string, port uint16) (net.Conn, error) {
	addrs, err := b.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	for i, addr := range addrs {
		var c net.Conn
		if c, err = b.dialAddress(ctx, netip.AddrPortFrom(addr, port), len(addrs)-i); err != nil {
			continue
		}
		if leadsHere(c) && !b.o.Rules.AllowPrivate(host, addr) {
			c.Close()
			return nil, &addressError{host, addr}
		}
		return c, nil
	}
	return nil, fmt.Errorf("connecting to %s: %w", target{host, port}, plain(err))
}

// leadsHere reports whether a connection ends on this host. An address may be routed to
// the host and be on none of its interfaces (ip route add local …). The kernel is asked
// about the way from the connection's own address, which a rule may be about.
func leadsHere(c net.Conn) bool {
	local, ok1 := c.LocalAddr().(*net.TCPAddr)
	remote, ok2 := c.RemoteAddr().(*net.TCPAddr)
	if !ok1 || !ok2 || local.IP.Equal(remote.IP) {
		return true
	}
	routes, err := netlink.RouteGetWithOptions(remote.IP, &netlink.RouteGetOptions{SrcAddr: local.IP})
	return err != nil || slices.ContainsFunc(routes, func(r netlink.Route) bool { return r.Type == unix.RTN_LOCAL })
}

// dialAddress connects to one of the addresses that are left to try, in its share of
// the time: one that does not answer must not take all of it.
func (b *Broker) dialAddress(ctx context.Context, addr netip.AddrPort, left int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
	}
	return b.dialSocket(ctx, addr.String())
}

// dialSocket connects, with wide buffers if there is a place for one more.
func (b *Broker) dialSocket(ctx context.Context, hostPort string) (_ net.Conn, err error) {
	var d net.Dialer
	give, ok := b.wide.servers.take()
	if !ok {
		d.Control = narrowControl
	}
	defer func() {
		if err != nil {
			give()
		}
	}()
	defer contain.Error("connecting to a host", &err)
	c, err := d.DialContext(ctx, "tcp", hostPort)
	if err != nil {
		return nil, err
	}
	return &placedConn{c.(*net.TCPConn), give}, nil
}

// addresses returns the addresses of a host, if all may be dialed.
func (b *Broker) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	addr, err := netip.ParseAddr(host)
	addrs := []netip.Addr{addr}
	if err != nil {
		if addrs, err = b.o.Resolve(ctx, host); err != nil {
			return nil, fmt.Errorf("looking up %s: %w", host, plain(err))
		}
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("looking up %s: it has no address", host)
	}
	own, err := interfaceAddresses()
	if err != nil {
		return nil, err
	}
	for i, addr := range addrs {
		addrs[i] = addr.Unmap().WithZone("")
		if (!isPublic(addrs[i]) || own[addrs[i]]) && !b.o.Rules.AllowPrivate(host, addrs[i]) {
			return nil, &addressError{host, addrs[i]}
		}
	}
	return addrs, nil
}

// hostsFile looks names up in /etc/hosts alone.
var hostsFile = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("no name server is asked")
}}

func resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if !strings.Contains(host, ".") { // package net has names of one label in /etc/hosts without the dot
		if addrs, err := hostsFile.LookupNetIP(ctx, "ip", host); err == nil {
			return addrs, nil
		}
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host+".") // the dot keeps search domains out
}

// interfaceAddresses returns the addresses of this host: what listens on a public one
// may trust the host itself.
func interfaceAddresses() (map[netip.Addr]bool, error) {
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

// isPublic reports whether an address leads to the public internet. It is unmapped.
func isPublic(addr netip.Addr) bool {
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

// plain drops the layers of an error that name sockets and resolvers.
func plain(err error) error {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		switch {
		case dns.IsNotFound:
			return errors.New("there is no such host")
		case dns.IsTimeout:
			return errors.New("the name server does not answer")
		}
		return errors.New(dns.Err)
	}
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return errors.New("it does not answer")
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err
	}
	return err
}
