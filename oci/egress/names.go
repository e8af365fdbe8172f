package egress

import (
	"cmp"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
)

// A Name is a host and a port that code may connect to by the host's name, without a proxy.
type Name struct {
	Host string // in canonical form, and not an address
	Port uint16
	Any  bool // whatever the protocol is; otherwise TLS or HTTP
}

// A NameTable gives each host an address inside a sandbox. The whole network 127.0.0.0/8 is on
// the loopback: such an address needs no route and no privilege, and a connection to it tells
// which name was meant.
type NameTable struct {
	addrs map[string]netip.Addr
	names map[netip.AddrPort]Name
}

// maxNames is how many ports of hosts are reached by name: each takes a listener in toolcell.
const maxNames = 64

// nameServer is where resolvers ask if nothing says otherwise (resolv.conf(5)).
var nameServer = netip.MustParseAddrPort("127.0.0.1:53")

// localhost is in the /etc/hosts of a sandbox, so that its address is known already.
const localhost = "localhost"

// NewNameTable returns a table for names, nil if there are none. Of more than 64, only some are
// reached by name.
func NewNameTable(names []Name) *NameTable {
	if len(names) == 0 {
		return nil
	}
	t := &NameTable{addrs: map[string]netip.Addr{}, names: map[netip.AddrPort]Name{}}
	used := map[netip.Addr]bool{}
	names = slices.SortedFunc(slices.Values(names), func(a, b Name) int {
		// Of two entries for a port the first counts: the one that allows less.
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port), falseFirst(a.Any, b.Any))
	})
	for _, n := range names {
		addr, ok := t.addrs[n.Host]
		if !ok {
			addr = addressFor(n.Host, used)
		}
		at := netip.AddrPortFrom(addr, n.Port)
		if _, ok := t.names[at]; ok || len(t.names) == maxNames || at == nameServer {
			continue
		}
		t.addrs[n.Host], used[addr] = addr, true
		t.names[at] = n
	}
	return t
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// addressFor returns an address of 127.64.0.0/10 for a host. It follows from the name, so that
// code of a session that keeps it never reaches another host in a later run, unless two names
// of the run would have the same.
func addressFor(host string, used map[netip.Addr]bool) netip.Addr {
	if host == localhost {
		return nameServer.Addr()
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(host))
	for n := h.Sum32(); ; n++ {
		addr := netip.AddrFrom4([4]byte{127, 64 | byte(n>>16&63), byte(n >> 8), byte(n)})
		if !used[addr] {
			return addr
		}
	}
}

// UDP returns where the name server listens for datagrams.
func (t *NameTable) UDP() []netip.AddrPort { return []netip.AddrPort{nameServer} }

// TCP returns where the name server and the hosts listen.
func (t *NameTable) TCP() []netip.AddrPort {
	return append([]netip.AddrPort{nameServer}, slices.SortedFunc(maps.Keys(t.names), netip.AddrPort.Compare)...)
}
