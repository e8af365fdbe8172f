package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// unreadCode has as many connections as there may be, and reads nothing more on them: half
// of them first download so fast that the kernel gives them all the buffer that it does,
// the others send until all buffers are full. Then it waits for the test.
const unreadCode = rawAsk + `
import concurrent.futures
CHUNK = bytes(1 << 18)
def download():
    s = tls(SITE, None)
    s.sendall(b"GET /bytes?n=900000000 HTTP/1.1\r\nHost: x\r\n\r\n")
    n = 0
    while n < 4 << 20: n += len(s.recv(1 << 16))
    return s
def upload():
    s = tls(SITE, None)
    s.sendall(b"POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 900000000\r\n\r\n")
    s.settimeout(0.2)
    try:
        while True: s.send(CHUNK)
    except TimeoutError: return s
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    held = list(pool.map(lambda f: f(), (download, upload) * 31))
waiting = tls(SITE, None)
waiting.sendall(b"GET /wait?filled HTTP/1.1\r\nHost: x\r\n\r\n")
print(line(waiting), len(held))
`

// TestConnectionsThatAreNotReadTakeLittle of the host's memory: on the side of the sandbox,
// its limits hold, and on toolcell's, few connections may have large buffers.
func TestConnectionsThatAreNotReadTakeLittle(t *testing.T) {
	const most = 192
	s := newSite(t)
	s.narrow.Store(true)
	at := s.hostPort()
	code := fmt.Sprintf("SITE = %q\n", at) + unreadCode
	inEveryWay(t, onEveryHost, func(t *testing.T, h *host) {
		s.release = make(chan struct{})
		c := h.serve(t, s.env(fmt.Sprintf("allow = [%q]\nprivate = [%q]", at, siteAddress), env{"TOOLCELL_MEMORY": "192m"})) // with cgroup v2 buffers count, too
		before := socketMemory(t)
		done := make(chan reply)
		go func() {
			done <- c.call(t, map[string]any{"code": code, "servers": []string{"https://" + at}, "timeout": seconds(100)})
		}()
		select {
		case <-s.arrived:
			t.Logf("%d MiB in buffers of sockets", socketMemory(t)-before)
			if got := socketMemory(t) - before; got > most {
				t.Errorf("%d MiB are in buffers of sockets, more than %d", got, most)
			}
			close(s.release)
			(<-done).want(t, "HTTP/1.1 200 OK 62")
		case r := <-done:
			if h.name == "no-proc" && r.status() == "memory_limit" {
				break // there the kernel lets buffers grow, and what is in them counts
			}
			t.Errorf("the run ended as %s:\n%s", r.status(), r.text)
		}
		c.python(t, "print('next')").want(t, "next")
	})
}

// socketMemory returns what all TCP sockets of this machine hold, in MiB (proc_net(5),
// sockstat).
func socketMemory(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var inuse, orphan, tw, alloc, mem int
		if n, _ := fmt.Sscanf(line, "TCP: inuse %d orphan %d tw %d alloc %d mem %d", &inuse, &orphan, &tw, &alloc, &mem); n == 5 {
			return mem * os.Getpagesize() >> 20
		}
	}
	t.Fatalf("no TCP in %s", b)
	return 0
}
