package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
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
	// In a process without other threads, which would take them.
	"signals": `
import ctypes, os, signal, time
r, w = os.pipe()
if os.fork() == 0:
    libc, n = ctypes.CDLL(None), 0
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
    while n < 200_000 and libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) == 0:
        n += 1
    os.write(w, b"%d" % n)
    time.sleep(1e6)
n = int(os.read(r, 9))
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

// hasOwnID reports whether the code that gave this result had a user ID on the
// host that no other sandbox has.
func (r reply) hasOwnID() bool {
	isolation, _ := r.fields["isolation"].(string)
	return !strings.Contains(isolation, "one-id") && !strings.Contains(isolation, "no-proc")
}

// TestNeighborTakesNothing: what the kernel counts for a user ID, a run has to
// the full extent while others have used up theirs, unless it shares an ID.
func TestNeighborTakesNothing(t *testing.T) {
	inEveryWay(t, onEveryHost, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serve(t, env{"MCP_BRIDGE_IMAGE": "host"})
		if !c.python(t, "pass").hasOwnID() {
			return
		}
		for name, hog := range hogs {
			if r := c.in(t, name, hog); !strings.Contains(r.text, "held") {
				t.Errorf("%s: %s", name, r.text)
			}
		}
		const work = `
import array, fcntl, os, socket
print({fcntl.fcntl(os.pipe()[1], 1032) for _ in range(100)}, "bytes in a pipe")
a, b = socket.socketpair()
for _ in range(10):
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 250))])
print("2500 descriptors in flight")
`
		for range 3 {
			c.python(t, work).want(t, "{65536} bytes in a pipe\n2500 descriptors in flight")
		}
		// From another server of the same user too.
		h.serve(t, env{"MCP_BRIDGE_IMAGE": "host"}).python(t, work).want(t, "{65536} bytes in a pipe\n2500 descriptors in flight")
	})
}

// TestEachSandboxHasItsOwnID on the host, also if two servers know nothing of
// each other's state folder; unless there is only one.
func TestEachSandboxHasItsOwnID(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		other := filepath.Join(h.home, "state-of-another-"+h.start)
		seen := map[string]string{}
		for n, e := range []env{{}, {"MCP_BRIDGE_STATE_DIR": other}} {
			e["MCP_BRIDGE_IMAGE"] = "host"
			c := h.serve(t, e)
			for _, session := range []string{"a", "b", "c"} {
				mark := marker()
				r := c.in(t, session, fmt.Sprintf("import subprocess; p = subprocess.Popen(['sleep', %q])", mark))
				if !r.hasOwnID() {
					return
				}
				id, who := uidsOf(mark), fmt.Sprintf("server %d, session %s", n, session)
				if seen[id] != "" || len(strings.Fields(id)) != 4 {
					t.Errorf("%s has the ids %q, which %q has too", who, id, seen[id])
				}
				seen[id] = who
			}
		}
	})
}

// uidsOf gives the user IDs on this host of the process that has the marker in its
// command line: real, effective, saved and of the file system.
func uidsOf(marker string) string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if b, err := os.ReadFile(f); err != nil || !bytes.Contains(b, []byte("sleep\x00"+marker)) {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "status"))
		for line := range strings.Lines(string(status)) {
			if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
				return ids
			}
		}
	}
	return ""
}

// TestSignalsAreCountedForTheSandbox: the host's user is charged for what a
// sandbox has pending, so it may have only little.
func TestSignalsAreCountedForTheSandbox(t *testing.T) {
	inEveryWay(t, onEveryHost, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serve(t, env{"MCP_BRIDGE_IMAGE": "host"})
		for range 2 { // and each sandbox has them for itself
			c.in(t, "hog", hogs["signals"])
			if r := c.python(t, hogs["signals"]+"print(1000 <= n <= 1024)"); !strings.HasSuffix(r.text, "\nTrue") {
				t.Errorf("got %s", r.text)
			}
		}
	})
}
