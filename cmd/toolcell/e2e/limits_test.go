package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci"
	"golang.org/x/sys/unix"
)

// A limitCase is code that goes for one limit.
type limitCase struct {
	name    string
	group   string // column of the table in docs/security.md
	code    string
	timeout int      // seconds asked for; 30 if 0
	status  []string // how it may end
	says    string   // what the text tells the model
	big     bool     // with 512 MiB of memory, not 96
}

// limitCases go on every kind of host, with 32 processes and one processor. A
// case may end in more than one way only where the kernel differs: a cgroup
// counts what the watcher charges.
var limitCases = []limitCase{
	{
		name: "memory in one process", group: "memory", says: "96 MiB", status: []string{"memory_limit"},
		code: "import time\nx = b'x' * (300 << 20)\ntime.sleep(20)",
	},
	{
		name: "memory in many processes", group: "memory", says: "96 MiB", status: []string{"memory_limit"},
		code: "import os, time\nfor _ in range(9):\n  if os.fork() == 0: x = b'x' * (20 << 20); time.sleep(20); os._exit(0)\nos.wait(); time.sleep(20)",
	},
	{
		name: "memory in a process beside", group: "memory", says: "96 MiB", status: []string{"memory_limit"},
		code: "import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', 'x = b\"x\" * (300 << 20)'])\ntime.sleep(20)",
	},
	{
		name: "memory in files", group: "memory", says: "96 MiB", status: []string{"memory_limit"},
		code: "import time\nfor n in ('/workspace/a', '/workspace/b', '/dev/shm/a'): open(n, 'wb').write(b'x' * (40 << 20))\ntime.sleep(20)",
	},
	{
		name: "memory in page tables", group: "memory", says: "96 MiB", status: []string{"memory_limit"},
		// A page that is only read takes no memory of its own, and its table does.
		code: "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_void_p\nlibc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\n" +
			"size = 1 << 40\na = libc.mmap(None, size, 1, 0x4022, -1, 0)\nlibc.madvise(ctypes.c_void_p(a), ctypes.c_size_t(size), 15)\n" +
			"for at in range(a, a + size, 2 << 20): ctypes.string_at(at, 1)\nimport time; time.sleep(20)",
	},
	{
		name: "memory in sockets", group: "memory", says: "96 MiB", status: []string{"memory_limit"},
		code: "import os, socket, time\nheld = []\nfor _ in range(3): os.fork()\nwhile True:\n" +
			"  try: held.append(socket.socketpair())\n  except OSError: time.sleep(20)\n  s = held[-1][0]; s.setblocking(False)\n" +
			"  try:\n    while True: s.send(b'x' * 4096)\n  except BlockingIOError: pass",
	},
	{
		name: "memory in small files", group: "memory", says: "96 MiB", status: []string{"memory_limit"},
		code: "import os, time\nfor d in ('/tmp', '/workspace'):\n  try:\n    for i in range(200_000): os.symlink('x' * 1000, f'{d}/{i}')\n  except OSError: pass\ntime.sleep(20)",
	},
	{
		name: "fork bomb", group: "processes", says: "32 processes and threads", timeout: 2, status: []string{"timeout"},
		code: "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
	},
	{
		name: "fork bomb that gives up", group: "processes", says: "32 processes and threads", timeout: 10, status: []string{"error"},
		code: "import os, time\nfor _ in range(100):\n  if os.fork() == 0: time.sleep(20)",
	},
	{
		name: "fork bomb of a shell", group: "processes", says: "ran longer than", timeout: 2, status: []string{"timeout"},
		code: "import subprocess\nsubprocess.run(['sh', '-c', 'b() { b | b & }; b; sleep 60'], stderr=subprocess.DEVNULL)\nwhile True: pass",
	},
	{
		name: "thread bomb", group: "processes", says: "32 processes and threads", timeout: 10, status: []string{"error"},
		code: "import threading, time\nfor _ in range(100): threading.Thread(target=time.sleep, args=(1,), daemon=True).start()",
	},
	{
		name: "spinning on four processors", group: "time", says: "held", timeout: 15, status: []string{"success"},
		code: "import os, time\nend = time.monotonic() + 2\nfor _ in range(4):\n  if os.fork() == 0:\n    while time.monotonic() < end: pass\n    os._exit(0)\n" +
			"for _ in range(4): os.wait()\nt = os.times()\nused = (t.children_user + t.children_system) / 2\nprint('held' if 0 < used < 1.3 else used)",
	},
	{
		name: "wall time", group: "time", says: "ran longer than", timeout: 1, status: []string{"timeout"},
		code: "import signal, time\nfor s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}: signal.signal(s, signal.SIG_IGN)\nwhile True: time.sleep(1)",
	},
	{
		name: "full /tmp", group: "space", says: "/tmp holds 64 MiB in 32768 files, and is full", big: true, status: []string{"error"},
		code: "f = open('/tmp/a', 'wb')\nwhile True: f.write(b'x' * (1 << 20)); f.flush()",
	},
	{
		name: "full /workspace", group: "space", says: "/workspace holds 128 MiB in 65536 files, and is full", big: true, status: []string{"error"},
		code: "f = open('a', 'wb')\nwhile True: f.write(b'x' * (1 << 20)); f.flush()",
	},
	{
		name: "100,000 files", group: "space", says: "/tmp holds 64 MiB in 32768 files, and is full", big: true, status: []string{"error"},
		code: "for i in range(100_000): open(f'/tmp/{i}', 'w').close()",
	},
	{
		name: "100,000 open files", group: "space", says: "4096 open files", big: true, status: []string{"error"},
		code: "held = [open('/dev/null') for _ in range(100_000)]",
	},
	{
		name: "endless output", group: "output", says: "left out", timeout: 2, status: []string{"timeout"},
		code: "while True: print('x' * 1000)",
	},
	{
		name: "endless output of many", group: "output", says: "left out", timeout: 2, status: []string{"timeout"},
		code: "import subprocess\nfor _ in range(4): subprocess.Popen(['sh', '-c', 'yes; yes >&2'])\nwhile True: print()",
	},
	{
		name: "core file", group: "space", says: "['out']", status: []string{"success"},
		code: "import os, signal\nif os.fork() == 0: os.abort()\nos.wait(); print(os.listdir('.'))",
	},
}

// TestLimits: every limit holds on every kind of host, the text names it, the
// server answers meanwhile, and the next run is clean.
func TestLimits(t *testing.T) {
	inEveryWay(t, onEveryHost, func(t *testing.T, h *host) {
		t.Parallel()
		limits := env{"TOOLCELL_IMAGE": "host", "TOOLCELL_PIDS": "32", "TOOLCELL_CPUS": "1", "TOOLCELL_MEMORY": "96m"}
		small := h.serve(t, limits)
		limits["TOOLCELL_MEMORY"] = "512m"
		big := h.serve(t, limits)
		if h.name != "no-proc" {
			small.wantStart(t, h)
			big.wantStart(t, h)
		}
		held := map[string]bool{}
		for _, tt := range limitCases {
			held[tt.name] = t.Run(tt.name, func(t *testing.T) {
				c := small
				if tt.big {
					c = big
				}
				tt.try(t, c)
			})
		}
		writeReport(t, h, "limits", held)
	})
}

// TestCodeLeavesProcessorsToTheHost: where no cgroup shares out processor time, it
// cannot use one of them, and on the others it comes after the host's programs.
func TestCodeLeavesProcessorsToTheHost(t *testing.T) {
	const look = `
import os, platform, ctypes
def tries(do, *args):
    try: do(*args); print("let", do.__name__)
    except PermissionError: pass
everywhere = (ctypes.c_ulong * 16)(*[2 ** 64 - 1] * 16)
number = {"x86_64": 203, "aarch64": 122}[platform.machine()]
ctypes.CDLL(None).syscall(number, 0, ctypes.sizeof(everywhere), everywhere)
before = os.nice(0)
if before > 0:
    tries(os.nice, -1)
    tries(os.setpriority, os.PRIO_PROCESS, 0, before - 1)
print(len(os.sched_getaffinity(0)), os.nice(0))`
	inEveryWay(t, onEveryHost, func(t *testing.T, h *host) {
		t.Parallel()
		var ours unix.CPUSet
		if err := unix.SchedGetaffinity(0, &ours); err != nil {
			t.Fatal(err)
		}
		base, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err != nil {
			t.Fatal(err)
		}
		cpus, nice := ours.Count(), 20-base // the kernel gives 20 less it
		isolation, _ := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_CPUS": "1"}).python(t, "1").fields["isolation"].(string)
		if strings.Contains(isolation, "watched-limits") {
			cpus, nice = max(1, cpus-1), min(nice+10, 19)
		}
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host"})
		c.python(t, look).want(t, fmt.Sprint(cpus, nice))
	})
}

// run runs the code with a timeout, or with the usual one if that is 0.
func (tt limitCase) run(t *testing.T, c *client, timeout int) reply {
	args := map[string]any{"code": tt.code}
	switch {
	case timeout > 0 && slow(1) > 1:
		args["timeout"] = 3*timeout + 12 // the start takes seconds there, and more beside another machine
	case timeout > 0:
		args["timeout"] = timeout
	}
	return c.call(t, args)
}

func (tt limitCase) try(t *testing.T, c *client) {
	stop := stayResponsive(t, c)
	start := time.Now()
	r := tt.run(t, c, tt.timeout)
	early := func() bool { // on a busy machine: the code did not come as far as the limit
		return strings.Contains(r.text, "before Python had started") || r.status() == "timeout" && !strings.Contains(r.text, tt.says)
	}
	for more := 2 * tt.timeout; 0 < more && more <= 8*tt.timeout && early(); more *= 2 {
		start = time.Now()
		r = tt.run(t, c, more)
	}
	stop()
	if !slices.Contains(tt.status, r.status()) || !strings.Contains(r.text, tt.says) {
		t.Errorf("ended as %s after %s, want %v and %q in:\n%.2000s", r.status(), time.Since(start), tt.status, tt.says, r.text)
	}
	if took := time.Since(start); took > slow(patience) {
		t.Errorf("it took %s", took)
	}
	if len(r.text) > 3<<20 {
		t.Errorf("%d bytes of text", len(r.text))
	}
	if slow(1) == 1 { // there the next case has to do
		c.python(t, "import os; print(os.listdir('/workspace'), os.listdir('out'), os.listdir('/tmp'), 'next')").want(t, "['out'] [] [] next")
	}
}

// stayResponsive pings the server until stop is called: the sandbox must not
// take what the host needs.
func stayResponsive(t *testing.T, c *client) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan time.Duration)
	go func() {
		var worst, late time.Duration
		for ctx.Err() == nil {
			start := time.Now()
			if c.Ping(ctx, nil) == nil {
				worst = max(worst, time.Since(start))
			}
			start = time.Now()
			time.Sleep(20 * time.Millisecond)
			late = max(late, time.Since(start))
		}
		ended <- worst - 10*late // a busy machine delays this test as well
	}()
	return func() {
		cancel()
		if worst := <-ended; worst > slow(3*time.Second) {
			t.Errorf("the server took %s to answer a ping", worst)
		}
	}
}

// writeReport keeps what held on a kind of host for the table in
// docs/security.md, if TOOLCELL_REPORT names a folder for it.
func writeReport(t *testing.T, h *host, what string, held map[string]bool) {
	t.Helper()
	dir := os.Getenv("TOOLCELL_REPORT")
	if dir == "" {
		return
	}
	if h.start != "" && h.start != oci.StartContainer {
		what += "-" + h.start
	}
	body, err := json.Marshal(held)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, h.name+"."+what+".json"), body, 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}
