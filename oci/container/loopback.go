package container

import "golang.org/x/sys/unix"

// addLoopbackAddress gives the sandbox's loopback 127.0.0.2 as well. A process that may list addresses
// (spec.SeccompProfile, of servers) finds one that is not 127.0.0.1: otherwise glibc takes it that there
// is no IPv4, and getaddrinfo(3) with AF_INET and AI_ADDRCONFIG finds no name. It is called in the
// sandbox's network namespace, with the capabilities of its root. Without the address, names are found
// in other ways, so an error does not end the start.
func addLoopbackAddress() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	alias, err := unix.NewIfreq("lo:1") // an address beside the one that lo gets when it is set up
	if err != nil {
		return err
	}
	if err := alias.SetInet4Addr([]byte{127, 0, 0, 2}); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFADDR, alias)
}
