package netguard

import (
	"net/netip"
	"testing"
)

func TestOnlyPublicAddressesAreDialed(t *testing.T) {
	for addr, public := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "192.0.1.1": true, "100.128.0.1": true,
		"0.0.0.0": false, "10.0.0.1": false, "100.64.0.1": false, "127.0.0.1": false, "169.254.169.254": false, "172.31.0.1": false,
		"192.168.0.1": false, "198.19.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "168.63.129.16": false,
		"::": false, "::1": false, "fe80::1": false, "fd00:ec2::254": false, "64:ff9b::a00:1": false, "2002:a00:1::": false,
		"::ffff:10.0.0.1": false, "2001:db8::1": false, "2001:0:a00::1": false, "ff02::1": false, "64:ff9b:1::1": false, "100::1": false, "3fff::1": false, "5f00::1": false,
	} {
		if got := IsPublic(netip.MustParseAddr(addr).Unmap()); got != public {
			t.Errorf("IsPublic(%s) = %v", addr, got)
		}
	}
	if IsPublic(netip.Addr{}) {
		t.Error("no address is a public one")
	}
}
