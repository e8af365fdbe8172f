package egress

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/internal/contain"
)

// tunnel copies bytes between a client and a server, if the client begins with a TLS
// handshake for the host of its CONNECT.
func (b *Broker) tunnel(client net.Conn, buffered *bufio.Reader, server net.Conn, t target) {
	name, hello, err := readHello(client, io.MultiReader(unread(buffered), client))
	if errors.Is(err, io.EOF) {
		return // the client has given up, as it may
	}
	if err == nil {
		err = checkServerName(name, t.host)
	}
	if err != nil {
		b.usage.addRefusal(t.host, t.port, "", err.Error())
		return
	}
	// The client may have sent more with it, such as early data.
	rest, _ := io.ReadAll(unread(buffered)) // from memory
	b.exchange(client, append(hello, rest...), server, t)
}

// exchange sends a server what was read of a client's already, and copies bytes between them.
func (b *Broker) exchange(client net.Conn, read []byte, server net.Conn, t target) {
	if b.usage.addBytes(t.host, t.port, int64(len(read)), 0) != nil {
		return
	}
	if _, err := server.Write(read); err != nil {
		return
	}
	stop := b.usage.whenSpent(func() { client.Close(); server.Close() })
	defer stop()
	largest := smallCopy
	release, ok := b.large.tunnels.take()
	defer release()
	if ok {
		largest = largeCopy
	}
	var both sync.WaitGroup
	both.Go(func() {
		defer contain.Recover("passing bytes to a host", func(error) { client.Close(); server.Close() })
		copyCounted(server, client, largest, func(n int64) error { return b.usage.addBytes(t.host, t.port, n, 0) })
	})
	copyCounted(client, server, largest, func(n int64) error { return b.usage.addBytes(t.host, t.port, 0, n) })
	both.Wait()
}

// checkServerName compares the name in a handshake (never an address: RFC 6066, 3) with the
// host of the CONNECT before it.
func checkServerName(name, host string) error {
	if _, err := netip.ParseAddr(host); err == nil && name == "" {
		return nil
	}
	if len(name) == len(host) && strings.ToLower(name) == host { // not with the Kelvin sign for k
		return nil
	}
	return fmt.Errorf("the TLS handshake is for %.260q, and the connection for %q", name, host)
}

// copyCounted copies until the end of from, and then ends to. Its buffer grows to at most
// largest while reads fill it. Unlike io.Copy it does not use splice(2), with which
// alternated downloads were slower, since the code is then the first to touch the data.
func copyCounted(to, from net.Conn, largest int, count func(int64) error) {
	buf := make([]byte, minCopy)
	for {
		n, err := from.Read(buf)
		if over := count(int64(n)); over != nil {
			err = over
		} else if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		switch {
		case err == nil:
			if n == len(buf) && n < largest {
				buf = make([]byte, 2*n)
			}
			continue
		case !errors.Is(err, io.EOF):
			from.Close()
			to.Close()
			return
		}
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		} else {
			to.Close()
		}
		return
	}
}
