package oci

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/ocitest"

	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// A lab runs pieces of Python in sandboxes of every kind. It is an ordinary
// program for fork.py, whose main runs what comes over the control socket.
type lab struct {
	r *Runtime
	p Process
}

const labProgram = `
import os, sys, json
def before_preload(): pass
def warm_up(): pass
def prepare(): pass
def ended(prepared, code): pass
def main(prepared=None):
    size = int.from_bytes(os.read(3, 4), "big")
    code = b""
    while len(code) < size:
        code += os.read(3, size - len(code))
    try:
        exec(code.decode(), {"__name__": "__main__"})
    except SystemExit as e:
        return e.code or 0
    return 0
if __name__ == "__main__":
    sys.exit(main())
`

// newLab makes one with modules that the code can import, by file name.
func newLab(t *testing.T, w PoolOptions, preload []string, modules map[string]string) *lab {
	t.Helper()
	const python = "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		t.Skip("needs the host's own Python")
	}
	r := openRuntime(t)
	if w.Idle == 0 {
		w.Idle = time.Minute
	}
	r.KeepStandbys(w)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	modules["program.py"] = labProgram
	for name, text := range modules {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program := spec.OwnDir + "/lab/program.py"
	return &lab{r, Process{
		Root:   ocitest.HostRoot(t),
		Binds:  []spec.Bind{{Source: dir, Target: spec.OwnDir + "/lab"}},
		Args:   []string{python, "-s", "-B", "-u", program},
		Env:    []string{"PATH=/usr/bin:/bin", "HOME=/workspace", "PYTHONPATH=" + spec.OwnDir + "/lab"},
		Limits: spec.Limits{Memory: 256 << 20, PIDs: 64}, Control: true,
		Python: &spec.Python{Interpreter: []string{python, "-s", "-B", "-u"}, Program: program, Base: []string{"random"}, Preload: preload},
	}}
}

// run runs code, and gives what it wrote.
func (l *lab) run(t *testing.T, code string) (string, container.Exit) {
	t.Helper()
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	errs, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := l.p
	p.Stdout, p.Stderr = w, w
	defer errs.Close()
	text := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(out)
		text <- string(b)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	sb, err := l.r.Start(ctx, p)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	sendCode(sb, code)
	exit, err := sb.Wait()
	if err := errors.Join(err, sb.Close()); err != nil {
		t.Fatalf("Wait and Close: %v", err)
	}
	return <-text, exit
}

// wants fails the test unless code writes just this.
func (l *lab) wants(t *testing.T, code, want string) {
	t.Helper()
	if got, exit := l.run(t, code); got != want || exit.Code != 0 {
		t.Errorf("exit code %d, wrote %q, want %q", exit.Code, got, want)
	}
}

// isFork is true in forks only: they have the filter of the template as well.
const isFork = `any(l.split() == ["Seccomp_filters:", "2"] for l in open("/proc/self/status"))`

// forksHere skips the test where no fork can be had, which other tests are
// about, and gives a lab whose runs are forks.
func forksHere(t *testing.T, preload []string, modules map[string]string) *lab {
	t.Helper()
	l := newLab(t, PoolOptions{Start: StartFork, Max: 2}, preload, modules)
	// On a busy machine the zygote may not be there in time. If there can be none, a note says why.
	for try, end := 0, time.Now().Add(20*time.Second); try < 3 || time.Now().Before(end) && len(l.r.pool.Notes()) == 0; try++ {
		if got, _ := l.run(t, "print("+isFork+")"); got == "True\n" {
			return l
		}
		t.Logf("not a fork: %s", l.r.pool.Notes())
		time.Sleep(100 * time.Millisecond)
	}
	t.Skipf("there are no forks here: %s", l.r.pool.Notes())
	return nil
}

// inspection reports all that a process can tell of what it is in.
const inspection = `
import os, json, resource, signal, socket, re
def text(path):
    try: return open(path).read()
    except OSError as e: return e.strerror
status = dict(l.split(":", 1) for l in text("/proc/self/status").splitlines())
seen = {k: status[k].strip() for k in status if re.match("Cap|NoNew|Seccomp$|Sig(Blk|Ign|Pnd)|ShdPnd|Umask|Uid|Gid|Threads|NSpgid|NSsid|PPid|Cpus_allowed|TracerPid", k)}
seen["limits"] = {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT_")}
seen["files"] = {fd: re.sub(r"\d+", "", os.readlink("/proc/self/fd/" + fd)) for fd in "0123"}
seen["more files"] = [fd for fd in range(4, 4096) if os.path.exists("/proc/self/fd/%d" % fd) and os.path.exists("/proc/self/fd/%d" % fd) and not os.readlink("/proc/self/fd/%d" % fd).startswith("/proc")]
import fcntl
seen["flags of files"] = [fcntl.fcntl(fd, c) for fd in range(4) for c in (fcntl.F_GETFL, fcntl.F_GETFD, fcntl.F_GETOWN)]
seen["environment"] = dict(os.environ)
seen["at"] = os.getcwd(), os.listdir("."), os.listdir("/tmp"), os.listdir("/dev/shm"), socket.gethostname()
for name in ("oom_score_adj", "cgroup", "timerslack_ns", "personality"):
    seen[name] = text("/proc/self/" + name)
seen["group"] = os.getpgid(0) == os.getpid(), os.getsid(0)
seen["processes"] = len([p for p in os.listdir("/proc") if p.isdigit()])
top = {}
for line in text("/proc/self/mountinfo").splitlines():
    f = line.split()
    kind = f[f.index("-") + 1:]
    top[f[4]] = f[5], kind[0], sorted(o for o in kind[2].split(",") if o.startswith(("size", "nr_inodes", "mode")) and f[4] not in ("/", "/dev", "/proc/acpi", "/proc/pressure", "/proc/scsi", "/proc/asound"))
for path in list(top):
    if path.startswith("/proc/") and top[path][1] == "tmpfs":
        top[path] = "a masked folder, empty:", "tmpfs", os.listdir(path) == [] and "ro" in top[path][0]
for name in ("fork.py", "proc"):
    top.pop("/run/toolcell/" + name, None)
seen["mounts"] = top
seen["masks"] = {p: text(p) for p in ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/interrupts", "/proc/kallsyms", "/proc/locks", "/proc/vmstat", "/proc/cgroups", "/proc/key-users", "/proc/crypto", "/proc/modules", "/proc/partitions", "/proc/loadavg", "/proc/meminfo", "/proc/stat", "/proc/uptime")}
seen["proc"] = {n: os.listdir("/proc/" + n) if os.path.isdir("/proc/" + n) and n not in ("self", "thread-self", "net", "sys", "sysvipc", "tty") else 0 for n in sorted(os.listdir("/proc")) if not n.isdigit()}
seen["modes"] = {p: oct(os.stat(p).st_mode) for p in ("/tmp", "/workspace", "/dev/shm", "/proc", "/dev/null", "/")}
seen["lo"] = text("/proc/net/dev").count(":"), socket.create_server(("127.0.0.1", 0)).getsockname()[0]
def refused(path, how):
    try: open(path, how).close(); return "opened"
    except OSError as e: return e.strerror
seen["writes"] = {p: refused(p, "w") for p in ("/x", "/usr/x", "/proc/sys/kernel/hostname", "/proc/1/mem", "/proc/self/uid_map", "/dev/null", "/dev/zero", "/run/toolcell/x", "/tmp/x", "/dev/shm/x")}
def found(path, how):
    try: os.close(os.open(path, how)); return "opened"
    except OSError as e: return e.strerror
seen["reads"] = {p: (found(p, os.O_RDONLY), found(p, os.O_PATH)) for p in ("/", "/usr", "/usr/bin/env", "/bin/sh", "/etc", "/proc/self/status", "/dev/null", "/dev/zero", "/run/toolcell/init", "/run/toolcell/lab/program.py", "/tmp", ".", "/run", "/lib")}
try: seen["ioctl of a device"] = fcntl.ioctl(os.open("/dev/null", os.O_RDWR), 0x5401)
except OSError as e: seen["ioctl of a device"] = e.strerror
seen["signals"] = {s: str(signal.getsignal(s)) for s in range(1, 65)}
print(json.dumps(seen, sort_keys=True, indent=1, default=str))
`

// TestForkIsAsAContainer compares all that is seen from inside: whatever a
// sandbox has that a fork has not shows here, with no list to keep. Left out is
// what a fork has more of: setgroups is denied in its user namespace, and it
// has two filters.
func TestForkIsAsAContainer(t *testing.T) {
	forks := forksHere(t, nil, map[string]string{})
	containers := newLab(t, PoolOptions{Start: StartContainer}, nil, map[string]string{})
	warm := newLab(t, PoolOptions{Start: StartContainer, Max: 1}, nil, map[string]string{})
	warm.p.Root = containers.p.Root
	want, _ := containers.run(t, inspection)
	warm.run(t, "pass")
	for name, l := range map[string]*lab{"fork": forks, "container that waited": warm} {
		l.p.Root = containers.p.Root
		if name != "fork" {
			l.wait(t)
		}
		got, _ := l.run(t, inspection)
		got = strings.ReplaceAll(strings.ReplaceAll(got, "relatime,", ""), "size=4k,nr_inodes=2", "")
		for i, line := range strings.Split(want, "\n") {
			line = strings.ReplaceAll(line, "relatime,", "")
			if lines := strings.Split(got, "\n"); i >= len(lines) || lines[i] != line {
				t.Errorf("%s: line %d: a container sees\n%s\nand this\n%s", name, i, line, strings.Join(lines[min(i, len(lines)-1):min(i+3, len(lines))], "\n"))
				break
			}
		}
		if len(want) < 2000 {
			t.Errorf("too little was seen: %s", want)
		}
	}
}

// wait returns once a sandbox waits.
func (l *lab) wait(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if l.r.pool.State().Ready > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no sandbox was made ready")
		}
	}
}

// TestForkFilterIsTheSame asks for every call there may be, with arguments that
// are wrong for all of them: the errors tell what the filter lets through.
func TestForkFilterIsTheSame(t *testing.T) {
	const calls = `
import ctypes, os, json
libc = ctypes.CDLL(None, use_errno=True)
out = {}
skip = {0, 1, 15, 22, 23, 34, 35, 60, 61, 231, 288, 247, 219, 7, 271, 270, 232, 281, 441, 202, 56, 57, 58, 435, 3, 436, 62, 200, 234, 109, 112, 128, 127, 130, 24}
for number in list(range(600)) + [1 << 30 | n for n in (0, 1, 59, 520)]:
    if number in skip: continue
    child = os.fork()
    if child == 0:
        r, w = os.pipe() if False else (0, 0)
        ctypes.set_errno(0)
        value = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
        os._exit(min(ctypes.get_errno(), 254) if value == -1 else 255)
    s = os.waitpid(child, 0)[1]
    out[number] = -os.WTERMSIG(s) if os.WIFSIGNALED(s) else os.WEXITSTATUS(s)
print(json.dumps(out))
`
	l := forksHere(t, nil, map[string]string{})
	got, _ := l.run(t, calls)
	want, _ := newLab(t, PoolOptions{}, nil, map[string]string{}).run(t, calls)
	var g, w map[string]int
	if json.Unmarshal([]byte(got), &g) != nil || json.Unmarshal([]byte(want), &w) != nil || len(g) < 400 {
		t.Fatalf("fork: %.300s\ncontainer: %.300s", got, want)
	}
	for number, errno := range w {
		if g[number] != errno {
			t.Errorf("call %s: %v in a container, %v in a fork", number, unix.Errno(errno), unix.Errno(g[number]))
		}
	}
}

// TestForksShareNothing tries what could be had of the template or of another
// fork.
func TestForksShareNothing(t *testing.T) {
	l := forksHere(t, []string{"keeper", "tempfile", "uuid", "secrets", "ssl"}, map[string]string{
		"keeper.py": "import os, random, ssl\nvalue = ['as it was']\npid = os.getpid()\nssl.RAND_bytes(8)\n",
	})
	for name, tt := range map[string]struct{ code, want string }{
		"is a fork with the modules": {`import sys; print(` + isFork + `, all(m in sys.modules for m in ("keeper", "ssl")))`, "True True\n"},
		"objects": {
			"import keeper; print(keeper.value); keeper.value.append(1)", "['as it was']\n",
		},
		"flags of standard input": {
			"import fcntl, os; print(fcntl.fcntl(0, fcntl.F_GETFL) & os.O_NONBLOCK, fcntl.fcntl(0, fcntl.F_GETOWN))\n" +
				"fcntl.fcntl(0, fcntl.F_SETFL, os.O_NONBLOCK); fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())", "0 0\n",
		},
		"memory that is mapped shared": {
			"print([l for l in open('/proc/self/maps') if l.split()[1][3] == 's' and 'w' in l.split()[1]])", "[]\n",
		},
		"threads, locks and buffers": {
			"import os, threading, logging\nprint(os.listdir('/proc/self/task') == [str(os.getpid())], threading.active_count())\n" +
				"with logging._lock: pass\nt = threading.Thread(target=print, args=('runs',)); t.start(); t.join()", "True 1\nruns\n",
		},
		"processes": {
			"import os, signal\nfound = []\nfor pid in range(3, 5000):\n  try: os.kill(pid, 0); found.append(pid)\n  except ProcessLookupError: pass\n  except PermissionError: found.append(-pid)\nprint(found, os.getppid())", "[] 1\n",
		},
		"sockets": {
			"import os; print([os.readlink(f'/proc/self/fd/{f}')[:6] for f in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{f}')])\n" +
				"print(len(open('/proc/net/unix').readlines()) - 1)", "['/dev/n', 'pipe:[', 'pipe:[', 'socket']\n2\n",
		},
		"the template's files": {
			"import os; print(os.listdir('/tmp'), os.listdir('/workspace'), os.listdir('/dev/shm')); open('/tmp/a', 'w'); open('a', 'w'); open('/dev/shm/a', 'w')", "[] [] []\n",
		},
		"its own parent's memory": {
			"import os\nfor f in ('mem', 'environ', 'maps', 'fd', 'root', 'cwd'):\n  try: (os.listdir if f in ('fd', 'root', 'cwd') else open)('/proc/1/' + f); print(f)\n  except OSError: pass\nprint('end')", "end\n",
		},
		"what covers what": {
			"import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nprint(libc.umount2(b'/proc', 2), libc.umount2(b'/tmp', 2), libc.unshare(0x10000000), libc.setns(0, 0), libc.mount(b'x', b'/tmp', b'tmpfs', 0, None))", "-1 -1 -1 -1 -1\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l.wants(t, tt.code, tt.want)
			l.wants(t, tt.code, tt.want) // what the first left would show
		})
	}
	t.Run("randomness", func(t *testing.T) {
		// OpenSSL tells a fork by its pid, and a process of the code may get the
		// template's. It has to draw before its parent does.
		const draw = "import keeper, os, random, secrets, ssl, tempfile, uuid\nfor _ in range(30):\n  r, w = os.pipe()\n" +
			"  if os.fork() == 0:\n    if os.getpid() == keeper.pid: os.write(w, ssl.RAND_bytes(8).hex().encode())\n    os._exit(0)\n" +
			"  os.close(w); os.wait(); drawn = os.read(r, 100)\n  if drawn: print(drawn.decode()); break\n" +
			"print(random.random(), random.getrandbits(64), next(tempfile._get_candidate_names()), uuid.uuid4(), secrets.token_hex(), os.urandom(8).hex(), ssl.RAND_bytes(8).hex(), sep='\\n')"
		seen := map[string]bool{}
		for range 4 {
			out, _ := l.run(t, draw)
			for line := range strings.Lines(out) {
				if seen[line] {
					t.Errorf("drawn twice: %q", line)
				}
				seen[line] = true
			}
		}
		if len(seen) != 32 {
			t.Errorf("%d numbers were drawn", len(seen))
		}
	})
}

// TestTemplateCannotBecomeTheUser tries from a module what CAP_SETUID might give
// it: inside, id 0 is the user who runs toolcell.
func TestTemplateCannotBecomeTheUser(t *testing.T) {
	l := forksHere(t, []string{"climber"}, map[string]string{"climber.py": `
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
tried = []
def attempt(what, how, *args):
    child = os.fork()
    if child == 0:
        try:
            how(*args)
        except OSError:
            os._exit(0)
        os._exit(1)
    if os.waitpid(child, 0)[1] != 0:
        tried.append(what)
attempt("setuid", os.setuid, 0)
attempt("seteuid", os.seteuid, 0)
attempt("setreuid", os.setreuid, 0, 0)
attempt("setresuid", os.setresuid, 0, 0, 0)
attempt("setresuid, effective", os.setresuid, -1, 0, -1)
attempt("setresuid, real", os.setresuid, 1 << 30, 1 << 30, 1 << 30)
def setfsuid():
    libc.setfsuid(0)
    if libc.setfsuid(-1) != 0:
        raise OSError("it is as before")
attempt("setfsuid", setfsuid)
def map_root(line):
    r, w = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(w, b"%d" % libc.unshare(0x10000000))
        time.sleep(60)
        os._exit(0)
    os.read(r, 1)
    try:
        with open("/proc/%d/uid_map" % child, "w") as file:
            file.write(line)
    finally:
        os.kill(child, 9); os.waitpid(child, 0); os.close(r); os.close(w)
attempt("mapping root", map_root, "5 0 1\n")
attempt("mapping root and more", map_root, "0 65534 1\n1 0 1\n")
`})
	l.wants(t, "import climber; print(climber.tried)", "[]\n")
}

// TestTemplateRefusesWhatForksWouldShare preloads modules that leave something
// behind: they are left out, with a note that says why, and the others serve.
func TestTemplateRefusesWhatForksWouldShare(t *testing.T) {
	for name, tt := range map[string]struct{ module, note string }{
		"a thread":        {"import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n", "keeps threads running"},
		"a file":          {"f = open('/usr/bin/env')\n", "keeps descriptors open"},
		"shared memory":   {"import mmap\nm = mmap.mmap(-1, 4096)\n", "keeps memory that forks would share"},
		"a process":       {"import subprocess\np = subprocess.Popen(['/bin/sleep', '600'])\n", "keeps processes running"},
		"an orphan":       {"import os, time\nif os.fork() == 0:\n  if os.fork() == 0:\n    os.setsid(); time.sleep(600)\n  os._exit(0)\nos.wait()\n", "keeps processes running"},
		"a signal":        {"import signal\nsignal.signal(signal.SIGUSR1, lambda *a: None)\n", "handles signal"},
		"nothing at all":  {"import sys\nsys.exit('no')\n", "cannot be preloaded: SystemExit: no"},
		"not even itself": {"", "cannot be preloaded: ModuleNotFoundError"},
	} {
		t.Run(name, func(t *testing.T) {
			modules := map[string]string{"good.py": "", "bad.py": tt.module}
			if tt.module == "" {
				delete(modules, "bad.py")
			}
			l := newLab(t, PoolOptions{Start: StartFork, Max: 1}, []string{"bad", "good"}, modules)
			got, _ := l.run(t, "import sys; print("+isFork+", 'good' in sys.modules)")
			notes := strings.Join(l.r.pool.Notes(), "\n")
			if got != "True True\n" || !strings.Contains(notes, `"bad"`) || !strings.Contains(notes, tt.note) {
				t.Errorf("ran as %q, notes: %s", got, notes)
			}
		})
	}
}

// TestModulesTrustedAsCodeAreImportedAnew: what such a module leaves, here a process
// that looks for others, is in one sandbox and in no other.
func TestModulesTrustedAsCodeAreImportedAnew(t *testing.T) {
	l := newLab(t, PoolOptions{Start: StartFork, Max: 2}, []string{"hostile"}, map[string]string{"hostile.py": `
import os
token = os.urandom(8).hex()
if os.fork() == 0:
    import time
    while True:
        for pid in os.listdir("/proc"):
            try: found = open("/proc/%s/cmdline" % pid).read()
            except OSError: continue
            if "a secret" in found: open("/tmp/" + token, "a").write(found)
        time.sleep(0.01)
`})
	l.p.Python.Alone = true
	l.run(t, "pass")
	seen := map[string]bool{}
	for range 3 {
		l.wait(t)
		got, _ := l.run(t, "import hostile, os, subprocess; print("+isFork+", os.listdir('/tmp') in ([], [hostile.token]), hostile.token)\n"+
			"subprocess.run(['/bin/sh', '-c', 'sleep 0.1; exit', 'a secret'])")
		if !strings.HasPrefix(got, "False True ") || seen[got] {
			t.Errorf("got %q, before %v", got, seen)
		}
		seen[got] = true
	}
}

// TestEndedProcessesKeepNoModuleOut: what only waits to be collected sees nothing.
func TestEndedProcessesKeepNoModuleOut(t *testing.T) {
	l := newLab(t, PoolOptions{Start: StartFork, Max: 1}, []string{"asker"}, map[string]string{
		"asker.py": "import os, subprocess\np = subprocess.Popen(['/bin/true'])\nos.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)\n",
	})
	if got, _ := l.run(t, "import sys; print("+isFork+", 'asker' in sys.modules)"); got != "True True\n" {
		t.Errorf("ran as %q, notes: %s", got, l.r.pool.Notes())
	}
}

func TestForkEndsAsPythonDoes(t *testing.T) {
	l := forksHere(t, nil, map[string]string{})
	for name, tt := range map[string]struct {
		code, want string
		status     int
	}{
		"exit code":        {"raise SystemExit(7)", "", 7},
		"killed":           {"import os; os.kill(os.getpid(), 9)", "", 137},
		"atexit":           {"import atexit; atexit.register(print, 'bye')", "bye\n", 0},
		"threads first":    {"import threading\nthreading.Thread(target=lambda: (threading.main_thread().join(), print('thread'))).start()\nprint('main')", "main\nthread\n", 0},
		"C's own buffers":  {"import ctypes; ctypes.CDLL(None).printf(b'from C')", "from C", 0},
		"processes it had": {"import subprocess; subprocess.Popen(['sleep', '60']); print('end')", "end\n", 0},
		"orphans":          {"import os, time\nif os.fork() == 0:\n  if os.fork() == 0: time.sleep(60)\n  os._exit(0)\nprint('end')", "end\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			got, exit := l.run(t, tt.code)
			if got != tt.want || exit.Code != tt.status {
				t.Errorf("wrote %q and ended with %+v, want %q and %d", got, exit, tt.want, tt.status)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}
