package oci

import (
	"fmt"
	"strings"
	"testing"
)

// TestSocketBuffersAreLimited: cgroup v1 counts those of TCP and UDP apart from
// memory, and v2 with it. Past their limit the kernel drops UDP datagrams. It
// gives each TCP connection a little more, so too many of them end the sandbox.
//
//test:long
func TestSocketBuffersAreLimited(t *testing.T) {
	if h, err := openRuntime(t).containers.Host(); err != nil || h.Cgroup.V2 || !h.Cgroup.Memory {
		t.Skipf("needs the memory controller of cgroup v1, as root (%v)", err)
	}
	const datagrams = `
import os, socket, time
kept = []
for _ in range(2000):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", 0))
    s.connect(s.getsockname())
    kept.append(s)
    for _ in range(30):
        try: s.send(bytes(60000), socket.MSG_DONTWAIT)
        except OSError: break
time.sleep(0.3)
print(sum(int(l.split()[4].split(":")[1], 16) for l in open("/proc/net/udp").readlines()[1:]) >> 20)
`
	const streams = `
import os, socket, time
for _ in range(8):
    if os.fork() == 0:
        kept = [socket.create_server(("127.0.0.1", 0), backlog=4000)]
        try:
            while True:
                kept += [socket.create_connection(kept[0].getsockname()), kept[0].accept()[0]]
                kept[-1].setblocking(False)
                try:
                    while True: kept[-1].send(bytes(65536))
                except BlockingIOError: pass
        except OSError: pass
        time.sleep(600)
time.sleep(600)
`
	eachKind(t, func(t *testing.T, l *lab) {
		l.p.Limits.Memory = 1 << 30 // so that only the sockets reach a limit
		if l.run(t, "pass"); !strings.HasSuffix(t.Name(), "cold") {
			l.wait(t)
		}
		got, exit := l.run(t, datagrams)
		var queued int
		if _, err := fmt.Sscan(got, &queued); err != nil || exit.Code != 0 {
			t.Fatalf("wrote %q and ended with %+v", got, exit)
		}
		if queued < 1 || queued > 72 {
			t.Errorf("%d MiB are queued in UDP sockets, want up to 64", queued)
		}
		if _, exit := l.run(t, streams); !exit.OOM {
			t.Errorf("TCP connections: ended with %+v, want the memory limit", exit)
		}
	})
}
