package oci

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/ocitest"
	"golang.org/x/sys/unix"
)

// restless is code that keeps a sandbox busy, each in a way that could outlive
// being frozen. What begins with begin goes on in processes of its own.
var restless = map[string]string{
	"spinning": "import threading\ndef spin():\n  while True: pass\nthreading.Thread(target=spin).start()\nfor _ in range(4): begin(spin)",
	"continuing all": "def wake():\n  while True:\n    try: os.kill(-1, signal.SIGCONT)\n    except OSError: pass\n" +
		"for _ in range(8): begin(wake)",
	"fork bomb": "def bomb():\n  while True:\n    try: os.fork()\n    except OSError: pass\nbegin(bomb)",
	"orphaned groups": "signal.signal(signal.SIGHUP, signal.SIG_IGN)\ndef chain():\n  while True:\n    try: child = os.fork()\n    except OSError: continue\n" +
		"    if child:\n      try: os.setpgid(child, child)\n      except OSError: pass\n      os._exit(0)\nfor _ in range(8): begin(chain)",
	"timers": "import ctypes\nsignal.signal(signal.SIGCONT, lambda *_: None)\ndef tick():\n  event = (ctypes.c_int * 16)(0, 0, signal.SIGCONT, 0)\n" +
		"  times, timer = (ctypes.c_long * 4)(0, 1000000, 0, 1000000), ctypes.c_int()\n  libc = ctypes.CDLL(None)\n" +
		"  libc.syscall(TIMER, 1, event, ctypes.byref(timer))\n  libc.syscall(TIMER + 1, timer.value, 0, times, None)\n  while True: pass\nfor _ in range(4): begin(tick)",
	"vfork": "import subprocess\ndef start():\n  while True: subprocess.run(['/bin/true'])\nfor _ in range(4): begin(start)",
}

const begin = `
import os, platform, signal, time
TIMER = {"x86_64": 222, "aarch64": 107}[platform.machine()]
def begin(work):
  while True:
    try: child = os.fork()
    except OSError: continue  # what began before has filled the sandbox
    break
  if child == 0:
    os.setsid()
    try: work()
    finally: os._exit(1)
`

// statFields returns the fields of a process from its state on (proc(5)), nil if
// it is gone.
func statFields(pid int) []string {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	if f := strings.Fields(rest); len(f) > 15 {
		return f
	}
	return nil
}

// used returns the processor time that the processes of a sandbox have used, in
// ticks, also of those that have ended.
func used(sb *Sandbox) (ticks int) {
	for _, pid := range tree(sb.sandbox.PID()) {
		if f := statFields(pid); f != nil {
			for _, field := range f[11:15] { // utime, stime, cutime, cstime
				n, _ := strconv.Atoi(field)
				ticks += n
			}
		}
	}
	return ticks
}

// still reports whether all processes of a sandbox but pid 1 stand still.
func still(sb *Sandbox) bool {
	return !slices.ContainsFunc(tree(sb.sandbox.PID())[1:], func(pid int) bool { return !stands(pid) })
}

// stands reports whether a process is stopped, or in a frozen cgroup. One that waits
// for a child of vfork(2) is in state D until then.
func stands(pid int) bool {
	f := statFields(pid)
	if f == nil || strings.Contains("TZXD", f[0]) {
		return true
	}
	cgroup, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	_, path, _ := strings.Cut(strings.TrimSpace(string(cgroup)), "0::")
	events, _ := os.ReadFile(filepath.Join("/sys/fs/cgroup", path, "cgroup.events"))
	return strings.Contains(string(events), "frozen 1")
}

// tree returns a process and all that stem from it.
func tree(pid int) []int {
	all := []int{pid}
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, thread := range threads {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
		for child := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				all = append(all, tree(n)...)
			}
		}
	}
	return all
}

// TestFrozenSandboxUsesNoProcessor, whatever is in it, and goes on when it is thawed.
//
//test:long
func TestFrozenSandboxUsesNoProcessor(t *testing.T) {
	eachKind(t, func(t *testing.T, l *lab) {
		l.p.Limits.Memory = 2 << 30 // a busy kernel frees ended processes late, and counts them until then
		for range 3 {               // until sandboxes with this limit are ready
			l.run(t, "pass")
		}
		for name, code := range restless {
			t.Run(name, func(t *testing.T) {
				sb, _ := l.start(t.Context(), t, l.p, begin+code+"\n"+sleep)
				moved := func() bool {
					before := used(sb)
					time.Sleep(300 * time.Millisecond)
					return used(sb) > before
				}
				waitFor(t, "the code to begin", moved)
				for range 2 {
					sb.Freeze()
					waitFor(t, "the sandbox to stand still", func() bool { return still(sb) && !moved() })
					sb.Thaw()
					waitFor(t, "the sandbox to go on", moved)
				}
				sb.Freeze()
				start := time.Now()
				if exit, err := func() (Exit, error) { _ = sb.Close(); return sb.Wait() }(); err != nil || exit.Signal != unix.SIGKILL {
					t.Errorf("exit %+v, %v", exit, err)
				}
				if took := time.Since(start); took > 20*time.Second {
					t.Errorf("ending a frozen sandbox took %s", took)
				}
			})
		}
	})
}

// TestFrozenSandboxIsNotWatched: what watches its limits finds out that nothing in it
// runs, however many processes and threads it has, and that it goes on.
func TestFrozenSandboxIsNotWatched(t *testing.T) {
	eachKind(t, func(t *testing.T, l *lab) {
		for name, code := range restless {
			sb, _ := l.start(t.Context(), t, l.p, begin+code+"\n"+sleep)
			for range 2 {
				sb.Freeze()
				waitFor(t, name+": the sandbox to be found still", sb.freezer.Still)
				sb.Thaw()
				waitFor(t, name+": it to go on", func() bool { return !sb.freezer.Still() })
			}
			_ = sb.Close()
		}
	})
}

// TestProcessIsToldHowLongItWasHeld before it goes on.
func TestProcessIsToldHowLongItWasHeld(t *testing.T) {
	eachKind(t, func(t *testing.T, l *lab) {
		sb, out := l.start(t.Context(), t, l.p, `
import resource, time
def told(): return max(0, resource.getrlimit(10)[0])
while not told(): time.sleep(0.001)
print(told(), flush=True)
while told() == 1500000: time.sleep(0.001)
print(told(), flush=True)
`+sleep)
		lines := bufio.NewScanner(out)
		for _, want := range []string{"1500000", "1500001"} {
			sb.Freeze()
			if want == "1500000" {
				sb.AddHeld(1500 * time.Millisecond)
			} else {
				sb.AddHeld(time.Microsecond)
			}
			sb.Thaw()
			if lines.Scan(); lines.Text() != want {
				t.Errorf("the process was told %s, want %s", lines.Text(), want)
			}
		}
	})
}

// TestFrozenSandboxEndsAtOnce, whatever ends it, and what is done with it afterwards
// does no harm.
func TestFrozenSandboxEndsAtOnce(t *testing.T) {
	eachKind(t, func(t *testing.T, l *lab) {
		for name, end := range map[string]func(sb *Sandbox, cancel func()){
			"close":   func(sb *Sandbox, _ func()) { _ = sb.Close() },
			"context": func(_ *Sandbox, cancel func()) { cancel() },
		} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			sb, out := l.start(ctx, t, l.p, begin+restless["spinning"]+"\n"+sleep)
			sb.Freeze()
			waitFor(t, "the sandbox to stand still", func() bool { return still(sb) })
			start := time.Now()
			end(sb, cancel)
			if exit, err := sb.Wait(); err != nil || exit.Signal != unix.SIGKILL || exit.OOM || exit.PIDs {
				t.Errorf("%s: exit %+v, %v", name, exit, err)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("%s: it took %s", name, took)
			}
			if _, err := io.ReadAll(out); err != nil {
				t.Errorf("%s: a process is left: %v", name, err)
			}
			sb.AddHeld(time.Second)
			sb.Freeze()
			sb.Thaw()
		}
	})
}

// TestKilledServerLeavesNoFrozenSandbox: pid 1 is not frozen, and ends it.
func TestKilledServerLeavesNoFrozenSandbox(t *testing.T) {
	ocitest.NeedNamespaces(t)
	marker := "31536002." + strconv.Itoa(os.Getpid())
	helper := startHelper(t, filepath.Join(t.TempDir(), "run"), ocitest.HostRoot(t).Dir, marker)
	sleeps := func(pid int) bool {
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return strings.HasPrefix(string(cmdline), "/bin/sleep\x00"+marker)
	}
	waitFor(t, "the process to start", func() bool { return slices.ContainsFunc(tree(helper.Process.Pid), sleeps) })
	if err := helper.Process.Signal(unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it to be frozen", func() bool {
		return slices.ContainsFunc(tree(helper.Process.Pid), func(pid int) bool { return sleeps(pid) && stands(pid) })
	})
	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the frozen process to end", func() bool { return !alive(t, marker) })
}
