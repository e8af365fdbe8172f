// Package pid1 is the first process of a sandbox: this program again, as a
// small init written in C (pid1.c). It starts the program to run as its child,
// reaps zombies, ends with it, and ends when the host is gone. As pid 1, the user's program
// would have to do all that itself, and since it has the code's user ID, the code could
// read and change it.
//
// pid1.c acts in a constructor, so every binary that imports this package can be
// started as pid 1; package container, which starts it, has the rest of the hook.
package pid1

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Lifeline is a socket pair between the host and pid 1. When the host ends,
// for whatever reason, its end closes and pid 1 ends the sandbox.
// (libcontainer's ParentDeathSignal does nothing for it.)
type Lifeline struct {
	Ours   *net.UnixConn
	Theirs *os.File // to close once pid 1 has it
}

// NewLifeline makes a Lifeline. The caller closes both ends.
func NewLifeline() (l Lifeline, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("making the lifeline of a sandbox: %w", err)
		}
	}()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return l, os.NewSyscallError("socketpair", err)
	}
	if l.Ours, err = unixConn(pair[0]); err != nil {
		unix.Close(pair[1])
		return l, err
	}
	l.Theirs = os.NewFile(uintptr(pair[1]), "lifeline")
	return l, nil
}

// unixConn returns a connection for a socket's descriptor, which it takes over.
func unixConn(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close() // FileConn makes a copy
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("not a Unix socket")
	}
	return u, nil
}

// Receive returns what pid 1 sends before the program starts: the control
// socket, and the sandbox's /workspace as a descriptor to open files below
// (openat(2)). The caller closes both. The descriptor keeps the folder's files
// readable when the rest of the sandbox is gone. Receive fails if pid 1 ended
// before it sent them; if it sent them and then ended, Receive still succeeds.
func (l Lifeline) Receive() (control *net.UnixConn, workspace *os.File, err error) {
	data, oob := make([]byte, 600), make([]byte, unix.CmsgSpace(2*4))
	size, n, _, _, err := l.Ours.ReadMsgUnix(data, oob)
	if err != nil {
		return nil, nil, err
	}
	if size > 1 && data[0] == 'e' {
		return nil, nil, errors.New(string(data[1:size]))
	}
	fds, err := parseRights(oob[:n], 2)
	if err != nil {
		return nil, nil, err
	}
	workspace = os.NewFile(uintptr(fds[1]), "/workspace")
	if control, err = unixConn(fds[0]); err != nil {
		return nil, nil, errors.Join(err, workspace.Close())
	}
	return control, workspace, nil
}

// parseRights returns the descriptors that came with a message, as many as wanted.
func parseRights(oob []byte, want int) (fds []int, err error) {
	fds, err = rights(oob)
	if err == nil && len(fds) != want {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, fmt.Errorf("pid 1 sent %d descriptors, not %d", len(fds), want)
	}
	return fds, err
}

// rights returns the descriptors that came with a message.
func rights(oob []byte) (fds []int, err error) {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return nil, errors.New("pid 1 sent no socket")
	}
	fds, err = syscall.ParseUnixRights(&messages[0])
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return fds, err
}

// Stop makes pid 1 stop every other process with SIGSTOP, and stop those that others continue
// again, until Continue.
func (l Lifeline) Stop() error { return l.order('s') }

// Continue makes pid 1 continue every process.
func (l Lifeline) Continue() error { return l.order('c') }

// Begin lets the program of a server begin (spec.Server). Further calls do nothing.
func (l Lifeline) Begin() error { return l.order('b') }

func (l Lifeline) order(what byte) error {
	_, err := l.Ours.Write([]byte{what})
	return err
}

// listenTimeout bounds the making of sockets by pid 1.
const listenTimeout = 30 * time.Second

// maxSockets bounds the sockets of one order, as in pid1.c.
const maxSockets = 250

// Sockets are sockets of a sandbox's own network, which are served on the host.
type Sockets struct {
	Packets   []net.PacketConn
	Listeners []net.Listener
}

// Close closes all of them.
func (s Sockets) Close() {
	for _, p := range s.Packets {
		p.Close()
	}
	for _, l := range s.Listeners {
		l.Close()
	}
}

// Listen returns a listener on a free port of the sandbox's own loopback, for connections of
// processes in the sandbox. The sandbox must not be stopped.
func (l Lifeline) Listen() (net.Listener, error) {
	all, err := l.sockets([]place{{unix.SOCK_STREAM, netip.AddrPortFrom(loopback, 0)}})
	if err != nil {
		return nil, err
	}
	if len(all.Listeners) != 1 {
		all.Close()
		return nil, errors.New("making a listener in the sandbox: pid 1 sent another socket")
	}
	return all.Listeners[0], nil
}

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// ListenAt returns sockets for UDP and TCP at these IPv4 addresses of the sandbox's own
// loopback. Those that the sandbox cannot have, since its code uses them, are left out; an
// error says that none can be had. At most 250 fit. The sandbox must not be stopped.
func (l Lifeline) ListenAt(udp, tcp []netip.AddrPort) (Sockets, error) {
	var places []place
	for _, at := range udp {
		places = append(places, place{unix.SOCK_DGRAM, at})
	}
	for _, at := range tcp {
		places = append(places, place{unix.SOCK_STREAM, at})
	}
	return l.sockets(places)
}

// A place is where a socket is made: pid1.c, struct place.
type place struct {
	kind uint16
	at   netip.AddrPort
}

func (l Lifeline) sockets(places []place) (all Sockets, err error) {
	defer func() {
		if err != nil {
			all.Close()
			all, err = Sockets{}, fmt.Errorf("making a listener in the sandbox: %w", err)
		}
	}()
	if len(places) > maxSockets {
		return all, fmt.Errorf("%d sockets are too many", len(places))
	}
	// The answer comes over a socket of its own: others read the lifeline.
	reply, err := NewLifeline()
	if err != nil {
		return all, err
	}
	defer reply.Close()
	var wanted []byte
	for _, p := range places {
		address := p.at.Addr().As4()
		wanted = binary.NativeEndian.AppendUint16(wanted, p.kind)
		wanted = binary.BigEndian.AppendUint16(wanted, p.at.Port())
		wanted = append(wanted, address[:]...)
	}
	if _, err := reply.Ours.Write(wanted); err != nil { // fits into the socket's buffer
		return all, err
	}
	_, _, err = l.Ours.WriteMsgUnix([]byte{'l'}, unix.UnixRights(int(reply.Theirs.Fd())), nil)
	reply.Theirs.Close()
	if err != nil {
		return all, err
	}
	_ = reply.Ours.SetReadDeadline(time.Now().Add(listenTimeout))
	oob := make([]byte, unix.CmsgSpace(4*len(places)))
	_, n, _, _, err := reply.Ours.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return all, err
	}
	fds, err := rights(oob[:n])
	for _, fd := range fds {
		err = errors.Join(err, all.add(fd))
	}
	return all, err
}

// add adds a socket, whose descriptor it takes over.
func (s *Sockets) add(fd int) error {
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close() // the functions of net make a copy
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return os.NewSyscallError("getsockopt", err)
	}
	if kind == unix.SOCK_DGRAM {
		p, err := net.FilePacketConn(f)
		if err != nil {
			return err
		}
		s.Packets = append(s.Packets, p)
		return nil
	}
	l, err := net.FileListener(f)
	if err != nil {
		return err
	}
	s.Listeners = append(s.Listeners, l)
	return nil
}

// Resolve makes pid 1 write into the sandbox's resolv.conf whether there is a name server on
// 127.0.0.1, before it obeys a later order.
func (l Lifeline) Resolve(names bool) error {
	if names {
		return l.order('n')
	}
	return l.order('o')
}

// Close closes the ends that are still open.
func (l Lifeline) Close() {
	l.Ours.Close()
	l.Theirs.Close()
}
