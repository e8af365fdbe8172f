package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci"
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
	"epoll watches": `
import os, select
files = [os.eventfd(0) for _ in range(1000)]
polls, n = [select.epoll() for _ in range(100)], 0
try:
    for poll in polls:
        for fd in files:
            poll.register(fd); n += 1
except OSError as e:
    print(e.strerror)
print(n, "held")
`,
	"open files": `
import os
files = []
try:
    while True: files.append(open("/dev/null"))
except OSError as e:
    print(len(files), e.strerror, "held")
`,
	"buffers of sockets": `
import socket
# With a hundred sockets, as no more are free where no cgroup counts them.
sockets, n = [], 0
for _ in range(45):
    a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sockets += a, b
    a.bind(("127.0.0.1", 0))
    for _ in range(200): n += b.sendto(b"x" * 4000, a.getsockname())
print(n, "held")
`,
	"threads": `
import threading
n, stop = 0, threading.Event()
try:
    while True: threading.Thread(target=stop.wait, daemon=True).start(); n += 1
except RuntimeError as e:
    print(n, e, "held")
`,
	"keys and contexts of AIO": `
import ctypes, platform
libc, kept = ctypes.CDLL(None), []
for name, number, args in ("add_key", (248, 217), (b"user", b"x", b"y", 1, -3)), ("io_setup", (206, 0), (60_000, (ctypes.c_ulong * 1)())):
    result = libc.syscall(number[platform.machine() == "aarch64"], *args)
    if result != -1: kept.append(name)
print(kept or "held")
`,
	"processor time": `
import os, time
for _ in range(8):
    if os.fork() == 0:
        while True: pass
time.sleep(0.5)
print("held")
`,
}

// victim is what another run does meanwhile: it prints "done" after each part.
const victim = `
import array, ctypes, fcntl, os, select, signal, socket, subprocess, threading
t = threading.Thread(target=print, args=("a thread",)); t.start(); t.join()
print(subprocess.run(["echo", "a process: done"], capture_output=True, text=True).stdout, end="")

held = [open("/dev/null") for _ in range(3000)]
print("open files: done")
del held

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
libc = ctypes.CDLL(None)
assert {libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) for _ in range(1000)} == {0}
print("signals: done")

a, b = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
a.bind(("127.0.0.1", 0))
for _ in range(100):
    b.sendto(b"x" * 60_000, a.getsockname())
    assert len(a.recv(65_536)) == 60_000
print("datagrams: done")

a = socket.create_server(("127.0.0.1", 0))
b = socket.create_connection(a.getsockname())
c, n = a.accept()[0], 0
threading.Thread(target=lambda: (b.sendall(b"x" * 8_000_000), b.close())).start()
while got := c.recv(65_536): n += len(got)
assert n == 8_000_000
print("connections: done")
`

// victimWithItsID has to itself what the kernel counts for a user ID.
const victimWithItsID = victim + `
sizes = {fcntl.fcntl(os.pipe()[1], 1032) for _ in range(100)}
assert sizes == {65536}, sizes
print("pipes: done")

a, b = socket.socketpair()
for _ in range(10):
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 250))])
print("descriptors in flight: done")

files = [os.eventfd(0) for _ in range(200)]
for poll in [select.epoll() for _ in range(50)]:
    for fd in files: poll.register(fd)
print("epoll watches: done")
`

// hasOwnID reports whether the code that gave this result had a user ID on the
// host that no other sandbox has.
func (r reply) hasOwnID() bool {
	isolation, _ := r.fields["isolation"].(string)
	return !strings.Contains(isolation, "one-id") && !strings.Contains(isolation, "no-proc")
}

// TestNeighborTakesNothing: while sessions hold all that they can get of something,
// and after they have ended, other runs have all of it that they may use, in the same
// server and in another, and the counters of the host return. It has the machine for
// itself, as far as a test can have it.
func TestNeighborTakesNothing(t *testing.T) {
	inEveryWay(t, onEveryHost, func(t *testing.T, h *host) {
		hogging, other := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SESSIONS": "16"}), h.serve(t, env{"TOOLCELL_IMAGE": "host"})
		work := victim
		if other.python(t, "pass").hasOwnID() {
			work = victimWithItsID
		}
		held := map[string]bool{}
		before := hostCounters(t, other)
		for name, hog := range hogs {
			if r := hogging.in(t, name, hog); !strings.Contains(r.text, "held") {
				t.Errorf("%s: %s", name, r.text)
			}
		}
		works := func(c *client) func(*testing.T) {
			return func(t *testing.T) {
				if r := c.python(t, work); r.isError || strings.Count(r.text, ": done") != strings.Count(work, ": done") {
					t.Error(r.text)
				}
			}
		}
		held["beside, in the same server"] = t.Run("same server", works(hogging))
		held["beside, in another server"] = t.Run("other server", works(other))
		during := hostCounters(t, other)
		if h.start == oci.StartFork {
			logPace(t, hogging, other)
		}
		hogging.Close()
		held["afterwards"] = t.Run("afterwards", works(other))
		for name := range before {
			held[name] = t.Run(name, func(t *testing.T) {
				t.Logf("%d before, %d beside", before[name], during[name])
				waitFor(t, name+" to return", func() bool { return hostCounters(t, other)[name] <= before[name]+noise[name] })
			})
		}
		writeReport(t, h, "neighbor", held)
	})
}

// logPace tells how much slower warm runs are while another server's run takes all the
// processor time that it can get. `make bench` has the figures of a quiet machine.
func logPace(t *testing.T, hogging, other *client) {
	pace := func() time.Duration {
		var took []time.Duration
		for range 31 {
			begin := time.Now()
			other.python(t, "pass")
			took = append(took, time.Since(begin))
			time.Sleep(30 * time.Millisecond) // what is done after an answer is not to be measured
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	quiet := pace()
	var hog sync.WaitGroup
	hog.Go(func() {
		hogging.call(t, map[string]any{"code": "import os\nfor _ in range(3): os.fork()\nwhile True: pass", "timeout": 5})
	})
	time.Sleep(time.Second)
	t.Logf("the median of warm runs is %s, and %s beside a run that spins", quiet, pace())
	hog.Wait()
}

// noise is by how much counters change on an idle host. Each processor keeps 256 pages
// for sockets (net.core.mem_pcpu_rsv).
var noise = map[string]int64{
	"open files": 500, "processes and threads": 50, "signals pending": 10, "keys": 20,
	"pages of TCP": int64(256 * (runtime.NumCPU() + 1)), "pages of UDP": int64(256 * (runtime.NumCPU() + 1)),
}

// hostCounters reads what the kernel counts for the whole host, or for the user of
// a server.
func hostCounters(t *testing.T, c *client) map[string]int64 {
	t.Helper()
	number := func(file, pattern string) (sum int64) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindAllSubmatch(content, -1)
		if found == nil {
			t.Fatalf("%s is %q", file, content)
		}
		for _, f := range found {
			n, err := strconv.ParseInt(string(f[1]), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
		return sum
	}
	return map[string]int64{
		"contexts of AIO":       number("/proc/sys/fs/aio-nr", `^(\d+)`),
		"open files":            number("/proc/sys/fs/file-nr", `^(\d+)`),
		"keys":                  number("/proc/key-users", `(?m)^ *\d+: +\d+ (\d+)/`),
		"pages of TCP":          number("/proc/net/sockstat", `TCP: .* mem (\d+)`),
		"pages of UDP":          number("/proc/net/sockstat", `UDP: .* mem (\d+)`),
		"processes and threads": number("/proc/loadavg", `/(\d+)`),
		"signals pending":       number(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid), `SigQ:\t(\d+)/`),
	}
}

// TestEachSandboxHasItsOwnID on the host, also if two servers know nothing of
// each other's state folder; unless there is only one.
func TestEachSandboxHasItsOwnID(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		other := filepath.Join(h.home, "state-of-another-"+h.start)
		seen := map[string]string{}
		for n, e := range []env{{}, {"TOOLCELL_STATE_DIR": other}} {
			e["TOOLCELL_IMAGE"] = "host"
			c := h.serve(t, e)
			for _, session := range []string{"a", "b", "c"} {
				mark := marker()
				r := c.in(t, session, fmt.Sprintf(leaves, mark))
				if !r.hasOwnID() {
					return
				}
				id, who := uidsOf(mark), fmt.Sprintf("server %d, session %s", n, session)
				if seen[id] != "" || len(strings.Fields(id)) != 4 {
					t.Errorf("%s has the ids %q, which %q has too: %s", who, id, seen[id], r.text)
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
		if b, err := os.ReadFile(f); err != nil || !bytes.Contains(b, []byte(marker)) {
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
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host"})
		for range 2 { // and each sandbox has them for itself
			c.in(t, "hog", hogs["signals"])
			if r := c.python(t, hogs["signals"]+"print(1000 <= n <= 1024)"); !strings.HasSuffix(r.text, "\nTrue") {
				t.Errorf("got %s", r.text)
			}
		}
	})
}
