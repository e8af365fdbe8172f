package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
)

// tunnel passes bytes between a client and a server, if the client begins with a TLS
// handshake for the host that it connected to.
func (b *Broker) tunnel(client net.Conn, buffered *bufio.Reader, server net.Conn, t target) {
	name, hello, err := readHello(client, io.MultiReader(unread(buffered), client))
	if err == nil {
		err = checkServerName(name, t.host)
	}
	if err != nil {
		b.usage.addRefusal(t.host, t.port, "", asciiLine(err.Error()))
		return
	}
	// The client may have sent more with it, such as early data.
	rest, _ := io.ReadAll(unread(buffered)) // from memory
	hello = append(hello, rest...)
	if _, err := server.Write(hello); err != nil {
		return
	}
	if b.usage.addBytes(t.host, t.port, int64(len(hello)), 0) != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		copyCounted(server, rawConn(client), func(n int64) error { return b.usage.addBytes(t.host, t.port, n, 0) })
	})
	copyCounted(rawConn(client), server, func(n int64) error { return b.usage.addBytes(t.host, t.port, 0, n) })
	both.Wait()
}

// checkServerName compares the name in a handshake (RFC 6066, 3: no address may stand
// there) with the host of the CONNECT before it.
func checkServerName(name, host string) error {
	if _, err := netip.ParseAddr(host); err == nil && name == "" {
		return nil
	}
	if strings.ToLower(name) == host {
		return nil
	}
	return fmt.Errorf("the TLS handshake is for %q, and the connection for %q", name, host)
}

// passed is how many bytes pass between two looks at the limit.
const passed = 1 << 20

// copyCounted copies until the end of from, and then ends to. Between two sockets the kernel
// copies (splice(2)).
func copyCounted(to, from net.Conn, count func(int64) error) {
	for {
		n, err := io.CopyN(to, from, passed)
		if count(n) != nil || err != nil && err != io.EOF {
			to.Close()
			from.Close()
			return
		}
		if err == io.EOF {
			if half, ok := to.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			} else {
				to.Close()
			}
			return
		}
	}
}
