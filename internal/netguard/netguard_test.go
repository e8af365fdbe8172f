package netguard

import (
	"io"
	"net"
	"net/netip"
	"net/url"
	"testing"
	"time"
)

func TestOnlyPublicAddressesAreDialed(t *testing.T) {
	for addr, public := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "192.0.1.1": true, "100.128.0.1": true,
		"0.0.0.0": false, "10.0.0.1": false, "100.64.0.1": false, "127.0.0.1": false, "169.254.169.254": false, "172.31.0.1": false,
		"192.168.0.1": false, "198.19.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "168.63.129.16": false,
		"::": false, "::1": false, "fe80::1": false, "fd00:ec2::254": false, "64:ff9b::a00:1": false, "2002:a00:1::": false,
		"::ffff:10.0.0.1": false, "2001:db8::1": false, "2001:0:a00::1": false, "ff02::1": false, "64:ff9b:1::1": false, "100::1": false, "3fff::1": false, "5f00::1": false,
		"::ffff:8.8.8.8": true, "64:ff9b::808:808": false, "fe80::1%lo": false,
	} {
		if got := IsPublic(netip.MustParseAddr(addr)); got != public {
			t.Errorf("IsPublic(%s) = %v", addr, got)
		}
	}
	if IsPublic(netip.Addr{}) {
		t.Error("no address is a public one")
	}
}

// TestStrangersLeadToNoInternalAddress: what is internal is so in every form, and who is
// not for certain inside is no reason to let others in.
func TestStrangersLeadToNoInternalAddress(t *testing.T) {
	for addr, want := range map[string]struct{ internal, own bool }{
		"8.8.8.8": {false, false}, "2606:4700::1111": {false, false}, "64:ff9b::808:808": {false, false},
		"10.0.0.1": {true, true}, "::ffff:10.0.0.1": {true, true}, "100.100.100.200": {true, true}, "169.254.169.254": {true, true},
		"127.0.0.1": {true, true}, "0.0.0.0": {true, true}, "::": {true, true}, "::1": {true, true}, "fd00:ec2::254": {true, true}, "fe80::1%lo": {true, true},
		"64:ff9b::a9fe:a9fe": {true, false}, "64:ff9b::a83f:8110": {true, false}, "168.63.129.16": {true, false}, "2002:a00:1::": {true, false},
		"2002:808:808::": {true, false}, "2001:0:a00::1": {true, false}, "224.0.0.1": {true, false}, "192.0.2.1": {true, true}, "2001:db8::1": {true, true},
	} {
		a := netip.MustParseAddr(addr)
		if IsInternal(a) != want.internal || IsOwn(a) != want.own {
			t.Errorf("%s: internal %v, own %v, want %+v", addr, IsInternal(a), IsOwn(a), want)
		}
	}
	if !IsInternal(netip.Addr{}) || IsOwn(netip.Addr{}) {
		t.Error("no address is one that may be led to")
	}
}

// TestClearTextStaysOnThisHost: a name that some resolver asks the network for is not
// this host, though a registry of that name may be meant to be.
func TestClearTextStaysOnThisHost(t *testing.T) {
	for address, want := range map[string]struct{ safe, localhost bool }{
		"https://example.com/": {true, false}, "http://example.com/": {false, false}, "ftp://localhost/": {false, true},
		"http://localhost:1/": {true, true}, "http://127.0.0.1/": {true, true}, "http://127.9.9.9/": {true, true}, "http://[::1]:2/": {true, true},
		"http://10.0.0.1/": {false, false}, "http://localhost./": {false, true}, "http://a.localhost/": {false, true}, "http://LOCALHOST/": {false, true},
		"http://localhost.example.com/": {false, false}, "http://notlocalhost/": {false, false}, "http://127.0.0.1.example.com/": {false, false}, "http:///x": {false, false},
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if IsSafe(u) != want.safe || IsLocalhost(u.Hostname()) != want.localhost {
			t.Errorf("%s: safe %v, localhost %v, want %+v", address, IsSafe(u), IsLocalhost(u.Hostname()), want)
		}
	}
}

func TestLeadsHere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other, _ := net.Pipe()
	for _, c := range []net.Conn{c, other, ends{"127.0.0.1", "127.0.0.2"}} {
		if !LeadsHere(c) {
			t.Errorf("%s to %s does not lead here", c.LocalAddr(), c.RemoteAddr())
		}
	}
}

// ends are a connection's, where no connection needs to be.
type ends struct{ local, remote string }

func (ends) Read([]byte) (int, error)         { return 0, io.EOF }
func (ends) Write([]byte) (int, error)        { return 0, io.EOF }
func (ends) Close() error                     { return nil }
func (ends) SetDeadline(time.Time) error      { return nil }
func (ends) SetReadDeadline(time.Time) error  { return nil }
func (ends) SetWriteDeadline(time.Time) error { return nil }
func (e ends) LocalAddr() net.Addr            { return &net.TCPAddr{IP: net.ParseIP(e.local)} }
func (e ends) RemoteAddr() net.Addr           { return &net.TCPAddr{IP: net.ParseIP(e.remote)} }

// TestNeighborDoesNotLeadHere: the kernel sends what is for it out of an interface.
func TestNeighborDoesNotLeadHere(t *testing.T) {
	own, err := InterfaceAddresses()
	if err != nil || !own[netip.MustParseAddr("127.0.0.1")] {
		t.Fatalf("%v, %v", own, err)
	}
	for addr := range own {
		if neighbor := addr.Next(); addr.Is4() && !addr.IsLoopback() && neighbor.IsValid() && !own[neighbor] {
			if LeadsHere(ends{addr.String(), neighbor.String()}) {
				t.Errorf("%s leads here", neighbor)
			}
			return
		}
	}
	t.Skip("needs an interface beside the loopback")
}

func TestPort(t *testing.T) {
	for address, want := range map[string]string{"http://a": "80", "https://a": "443", "https://a:8443/x": "8443", "http://[::1]:81": "81"} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := Port(u); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}
