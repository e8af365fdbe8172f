package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestAddressesThatAreNotPublicAreNotDialed, though they are none of this host's, unless the
// rules allow them. The message says what to allow.
func TestAddressesThatAreNotPublicAreNotDialed(t *testing.T) {
	allowed := false
	var resolved string
	b := &Broker{o: Options{
		Rules: testRules{private: func(string, netip.Addr) bool { return allowed }},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr(resolved)}, nil
		},
	}}
	for addr, plain := range map[string]string{
		"169.254.169.254":        "169.254.169.254",
		"10.254.3.4":             "10.254.3.4",
		"100.100.100.200":        "100.100.100.200",
		"::ffff:169.254.169.254": "169.254.169.254",
		"fd00:ec2::254":          "fd00:ec2::254",
		"fe80::1%eth0":           "fe80::1",
		"64:ff9b::a9fe:a9fe":     "64:ff9b::a9fe:a9fe",
	} {
		resolved = addr
		byName := "example.com has the address " + plain + `, which is not a public one; to allow it, add "example.com" to [network] private`
		byAddress := plain + " is not a public address; to allow it, add it to [network] private"
		for host, want := range map[string]string{"example.com": byName, plain: byAddress} {
			allowed = false
			if got, err := b.addresses(t.Context(), host); err == nil || err.Error() != want {
				t.Errorf("%s, as %s: %v, error %v; want %s", host, addr, got, err, want)
			}
			allowed = true
			got, err := b.addresses(t.Context(), host)
			if err != nil || got[len(got)-1] != netip.MustParseAddr(plain) {
				t.Errorf("%s, as %s, is allowed: %v, error %v", host, addr, got, err)
			}
		}
	}
}

// TestAPublicAddressOfOurOwnIsNotDialed: what listens there may trust this host.
func TestAPublicAddressOfOurOwnIsNotDialed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a network namespace")
	}
	runtime.LockOSThread() // and never unlocks: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	for _, private := range []bool{false, true} {
		b := &Broker{o: Options{Rules: testRules{private: func(string, netip.Addr) bool { return private }}}}
		for _, addr := range []string{"9.9.9.9", "2620:fe::fe"} {
			own, err := netlink.ParseAddr(netip.PrefixFrom(netip.MustParseAddr(addr), netip.MustParseAddr(addr).BitLen()).String())
			if err != nil {
				t.Fatal(err)
			}
			if err := netlink.AddrReplace(lo, own); err != nil {
				t.Fatal(err)
			}
			_, err = b.addresses(t.Context(), addr)
			if (err == nil) != private || err != nil && !strings.HasPrefix(err.Error(), addr+" is not a public address") {
				t.Errorf("%s, private %v: %v", addr, private, err)
			}
		}
	}
}

// TestNothingIsDialedWhereOurAddressesAreNotKnown, as under systemd's
// RestrictAddressFamilies without AF_NETLINK.
func TestNothingIsDialedWhereOurAddressesAreNotKnown(t *testing.T) {
	runtime.LockOSThread() // and never unlocks: the thread ends with the test, and its filter with it
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SOCKET, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}, // the lower half of its first argument
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.AF_NETLINK, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(program)), 0, 0); err != nil {
		t.Skip("a filter for system calls is not possible here: ", err)
	}
	b := &Broker{o: Options{Rules: testRules{private: func(string, netip.Addr) bool { return false }}}}
	if addrs, err := b.addresses(t.Context(), "9.9.9.9"); err == nil || !strings.HasPrefix(err.Error(), "listing the addresses of this host: ") {
		t.Errorf("%v, error %v", addrs, err)
	}
}

// TestReasonsForNoConnectionAreSaidPlainly: without what package net says of sockets.
func TestReasonsForNoConnectionAreSaidPlainly(t *testing.T) {
	timeout := &net.OpError{Op: "read", Net: "udp", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}
	answers := map[string]error{
		"empty.test":  nil,
		"slow.test":   &net.DNSError{Err: "i/o timeout", Server: "10.0.0.2:53", IsTimeout: true},
		"broken.test": &net.DNSError{Err: "server misbehaving", Server: "10.0.0.2:53", IsTemporary: true},
		"far.test":    timeout,
		"late.test":   context.DeadlineExceeded,
	}
	f := newFixture(t, Options{
		Rules: testRules{hosts: []string{"empty.test", "slow.test", "broken.test", "far.test", "late.test", "proxied.test"}},
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			return nil, answers[host]
		},
		Proxy: func(r *http.Request) (*url.URL, error) {
			if r.URL.Hostname() != "proxied.test" {
				return nil, nil
			}
			return &url.URL{Scheme: "http", Host: "127.0.0.1:99999"}, nil
		},
	}, hello)
	for host, want := range map[string]string{
		"empty.test":   "looking up empty.test: it has no address",
		"slow.test":    "looking up slow.test: the name server does not answer",
		"broken.test":  "looking up broken.test: server misbehaving",
		"far.test":     "looking up far.test: it does not answer",
		"late.test":    "looking up late.test: it does not answer",
		"proxied.test": "connecting to the proxy of the host: address 99999: invalid port",
	} {
		got := f.raw("CONNECT " + host + ":443 HTTP/1.1\r\nHost: x\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 502 toolcell: "+want+"\r\n") {
			t.Errorf("%s: %q, want %s", host, got, want)
		}
	}
}

// TestNamesOfTheHostAreFound where Options name no other way to look them up.
func TestNamesOfTheHostAreFound(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(hello))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	f := &fixture{t: t}
	f.proxy, f.broker = startBroker(t, Options{Rules: testRules{hosts: []string{"localhost"}}})
	got := f.raw("GET http://localhost:" + port + "/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 200 OK") || !strings.HasSuffix(got, "GET /x of localhost:"+port) {
		t.Errorf("%q", got)
	}
}

// TestAnAddressTakesOnlyItsShareOfTheTime: there must be some left for those after it.
func TestAnAddressTakesOnlyItsShareOfTheTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	b := &Broker{}
	for left, want := range map[int]error{1: nil, int(time.Hour) + 1: context.DeadlineExceeded} { // the share is an hour, and nothing
		c, err := b.dialAddress(ctx, netip.MustParseAddrPort(l.Addr().String()), left)
		if err == nil {
			c.Close()
		}
		if !errors.Is(err, want) || ctx.Err() != nil {
			t.Errorf("the share of one of %d: %v, want %v", left, err, want)
		}
	}
}

// TestFailuresToConnectGiveTheirSlotBack: otherwise some would leave all later connections
// with small buffers.
func TestFailuresToConnectGiveTheirSlotBack(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := &Broker{}
	b.large.servers = newSlots()
	t.Run("refused", func(t *testing.T) {
		if c, err := b.dialSocket(t.Context(), closed); err == nil {
			c.Close()
			t.Error("it is connected")
		}
	})
	t.Run("fault", func(t *testing.T) {
		contain.Inject(t, func(at string) bool { return at == "connecting to a host" })
		c, err := b.dialSocket(t.Context(), l.Addr().String())
		if !errors.Is(err, contain.ErrInternal) {
			t.Errorf("error %v", err)
		}
		if c != nil {
			c.Close()
		}
	})
	if n := len(b.large.servers); n != 0 {
		t.Errorf("%d slots are taken", n)
	}
}
