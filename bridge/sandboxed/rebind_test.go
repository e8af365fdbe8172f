package sandboxed

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// A rebinder is a name server whose names have another address each time they are looked up.
type rebinder struct {
	mu      sync.Mutex
	answers [][]string     // in turn; the last one stays
	asked   map[string]int // questions for an IPv4 address, by name
}

// newRebinder has this process look names up at a rebinder.
func newRebinder(t *testing.T, answers [][]string) *rebinder {
	t.Helper()
	r := &rebinder{answers: answers, asked: map[string]int{}}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	usual := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", packets.LocalAddr().String())
	}}
	done := make(chan struct{})
	t.Cleanup(func() {
		net.DefaultResolver = usual
		packets.Close()
		<-done
	})
	go func() {
		defer close(done)
		buffer := make([]byte, 1500)
		for {
			n, from, err := packets.ReadFrom(buffer)
			if err != nil {
				return
			}
			if reply := r.reply(buffer[:n]); reply != nil {
				_, _ = packets.WriteTo(reply, from)
			}
		}
	}()
	return r
}

// reply answers a question. No answer lasts.
func (r *rebinder) reply(question []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
		return nil
	}
	m.Response, m.Additionals = true, nil
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
		r.mu.Lock()
		name := q.Name.String()
		turn := min(r.asked[name], len(r.answers)-1)
		r.asked[name]++
		r.mu.Unlock()
		for _, addr := range r.answers[turn] {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(addr).As4()},
			})
		}
	}
	reply, err := m.Pack()
	if err != nil {
		return nil
	}
	return reply
}

// ownAddress returns an address of this host that is not on its loopback, "" if it has none.
func ownAddress(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if ip := a.(*net.IPNet).IP; ip.To4() != nil && !ip.IsLoopback() && ip.IsGlobalUnicast() {
			return ip.String()
		}
	}
	return ""
}

// rebinds connects to a name in every way that a server can, TIMES times each.
const rebinds = `exec python3 -c 'import os, socket, ssl
proxy = ("127.0.0.1", int(os.environ["https_proxy"].rpartition(":")[2]))
insecure = ssl._create_unverified_context()
def say(s, text):
    s.settimeout(60)
    s.sendall(text.encode())
    return s.recv(4096).decode().split("\r\n")[0]
def tried(way, do):
    for _ in range(TIMES):
        try: print(way, do())
        except OSError as e: print(way, type(e).__name__)
def get(to): return f"GET http://{to}/ HTTP/1.1\r\nHost: {to}\r\n\r\n"
def to(name, port): return socket.create_connection((name, port), 60)
tried("proxy", lambda: say(socket.create_connection(proxy), get("plain.test:PORT")))
tried("CONNECT", lambda: say(socket.create_connection(proxy), "CONNECT tls.test:PORT HTTP/1.1\r\n\r\n"))
tried("by name", lambda: say(to("plain.test", PORT), "GET / HTTP/1.1\r\nHost: plain.test:PORT\r\n\r\n"))
tried("by name, TLS", lambda: say(insecure.wrap_socket(to("tls.test", PORT), server_hostname="tls.test"), get("tls.test")))
tried("by name, looked at", lambda: say(insecure.wrap_socket(to("rules.test", PORT), server_hostname="rules.test"), "GET /v1/x HTTP/1.1\r\nHost: rules.test:PORT\r\n\r\n"))
tried("by name, tcp", lambda: say(to("any.test", PORT), "hello\n") or "closed")' 2>&1`

// TestServersDoNotRebind: the owner of a host that the section allows may be the attacker, and chooses its
// addresses. However they change, and however the server connects, it reaches none of this host's: each
// connection looks the name up once, and goes only where that said.
func TestServersDoNotRebind(t *testing.T) {
	l := newLab(t)
	trap, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	var caught atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := trap.Accept()
			if err != nil {
				return
			}
			caught.Add(1)
			_, _ = c.Write([]byte("HTTP/1.1 200 caught\r\n\r\n"))
			c.Close()
		}
	}()
	defer func() { trap.Close(); <-done }()
	port := strconv.Itoa(trap.Addr().(*net.TCPAddr).Port)
	const public = "192.88.99.1" // which leads nowhere since RFC 7526
	answers := [][]string{{public, "127.0.0.1"}, {"127.0.0.1"}, {"127.0.0.1", public}, {"169.254.169.254"}, {"0.0.0.0"}, {"10.0.0.1"}}
	if own := ownAddress(t); own != "" {
		answers = append(answers, []string{own})
	}
	names := newRebinder(t, answers)
	section := strings.ReplaceAll(`network = ["http://plain.test:PORT", "tls.test:PORT", "GET https://rules.test:PORT/v1/*", "tcp://any.test:PORT"]`, "PORT", port)
	out, how := l.ends(t, shell(strings.NewReplacer("PORT", port, "TIMES", strconv.Itoa(len(answers))).Replace(rebinds)), boxOf(t, section))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if n := caught.Load(); n > 0 || strings.Contains(out, " 200 ") || len(lines) != 6*len(answers) {
		t.Errorf("%d connections reached this host; %d lines, %s\n%s", n, len(lines), how, out)
	}
	for _, way := range []string{"proxy", "CONNECT"} {
		said := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.HasPrefix(line, way+" HTTP/1.1 ") })
		if len(said) != len(answers) {
			t.Errorf("%s: %q", way, lines)
		}
		for _, line := range said {
			if !strings.Contains(line, "which is not a public one") {
				t.Errorf("it was told %q", line)
			}
		}
	}
	names.mu.Lock()
	defer names.mu.Unlock()
	for name, ways := range map[string]int{"plain.test.": 2, "tls.test.": 2, "rules.test.": 1, "any.test.": 1} {
		if got := names.asked[name]; got != ways*len(answers) {
			t.Errorf("%s was looked up %d times for %d connections", name, got, ways*len(answers))
		}
	}
}
