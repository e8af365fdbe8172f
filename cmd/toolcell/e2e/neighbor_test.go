package e2e

import (
	"strings"
	"testing"
)

// hogs are sessions that take as much as they can of something that the kernel
// counts for a user or for the whole host, and then keep it. Each prints "held".
var hogs = map[string]string{
	"descriptors in flight": `
import array, os, socket
null = os.open("/dev/null", os.O_RDONLY)
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null] * 250))]
pairs, sent = [], 0
try:
    while sent < 20_000:
        pairs.append(socket.socketpair())
        for _ in range(8):
            pairs[-1][0].sendmsg([b"x"], rights)
            sent += 250
except OSError as e:
    print(sent, e.strerror, "held")
`,
	// Each timer has room for its signal (timer_create(2)).
	"timers": `
import ctypes
libc, timer, n = ctypes.CDLL(None), ctypes.c_void_p(), 0
while n < 200_000 and libc.timer_create(0, None, ctypes.byref(timer)) == 0:
    n += 1
print(n, "held")
`,
	"pipes": `
import fcntl, os
pipes = []
try:
    while True:
        pipes.append(os.pipe())
        fcntl.fcntl(pipes[-1][1], 1031, 1 << 20)
except OSError as e:
    print(len(pipes), e.strerror, "held")
`,
}

// TestNeighborStarts: what the kernel counts for all sandboxes of a user
// together may be used up by one of them, and still a run starts and works.
func TestNeighborStarts(t *testing.T) {
	inEveryWay(t, onEveryHost, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serve(t, env{"MCP_BRIDGE_IMAGE": "host"})
		for name, hog := range hogs {
			if r := c.in(t, name, hog); !strings.Contains(r.text, "held") {
				t.Errorf("%s: %s", name, r.text)
			}
		}
		const work = `
import os, subprocess, threading
t = threading.Thread(target=print, args=("a thread",)); t.start(); t.join()
print(subprocess.run(["echo", "a process"], capture_output=True, text=True).stdout, end="")
`
		for range 3 {
			c.python(t, work).want(t, "a thread\na process")
		}
		// From another server of the same user too.
		h.serve(t, env{"MCP_BRIDGE_IMAGE": "host"}).python(t, work).want(t, "a thread\na process")
	})
}

// TestSignalsAreCountedForTheSandbox: the host's user is charged for what a
// sandbox has pending, so it may have only little.
func TestSignalsAreCountedForTheSandbox(t *testing.T) {
	inEveryWay(t, onEveryHost, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serve(t, env{"MCP_BRIDGE_IMAGE": "host"})
		for range 2 { // and each sandbox has them for itself
			c.in(t, "hog", hogs["timers"])
			if r := c.python(t, hogs["timers"]+"print(1000 <= n <= 1024)"); !strings.HasSuffix(r.text, "\nTrue") {
				t.Errorf("got %s", r.text)
			}
		}
	})
}
