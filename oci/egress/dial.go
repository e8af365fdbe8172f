package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/netguard"
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

// dial connects to the host of a request, or to the proxy before it.
func (b *Broker) dial(ctx context.Context, to destination) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, b.o.DialTimeout)
	defer cancel()
	proxy, err := b.proxyFor(to.scheme, to.target)
	switch {
	case err != nil:
		return nil, err
	case proxy == nil:
		return b.dialDirectly(ctx, to.host, to.port)
	case to.scheme == "http":
		return b.dialProxy(ctx, proxy)
	}
	return b.dialThrough(ctx, proxy, to.String())
}

// dialDirectly resolves the host once, checks all its addresses, and dials only those, so
// that a name which changes between check and use (DNS rebinding) gains nothing.
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
		if netguard.LeadsHere(c) && !b.o.Rules.AllowPrivate(host, addr) {
			c.Close()
			return nil, &addressError{host, addr}
		}
		return c, nil
	}
	return nil, fmt.Errorf("connecting to %s: %w", target{host, port}, plain(err))
}

// dialAddress connects to one of the remaining addresses, within its share of the time: one
// that does not answer must not use up all of it.
func (b *Broker) dialAddress(ctx context.Context, addr netip.AddrPort, left int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
	}
	return b.dialSocket(ctx, addr.String())
}

// dialSocket connects, with large buffers if a slot is free.
func (b *Broker) dialSocket(ctx context.Context, hostPort string) (_ net.Conn, err error) {
	var d net.Dialer
	release, ok := b.large.servers.take()
	if !ok {
		d.Control = smallControl
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	defer contain.Error("connecting to a host", &err)
	c, err := d.DialContext(ctx, "tcp", hostPort)
	if err != nil {
		return nil, err
	}
	return &slotConn{c.(*net.TCPConn), release}, nil
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
	own, err := netguard.InterfaceAddresses()
	if err != nil {
		return nil, err
	}
	for i, addr := range addrs {
		addrs[i] = addr.Unmap().WithZone("")
		if (!netguard.IsPublic(addrs[i]) || own[addrs[i]]) && !b.o.Rules.AllowPrivate(host, addrs[i]) {
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

// plain removes the layers of an error that name sockets and resolvers.
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
