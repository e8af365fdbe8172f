package sandboxed

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/ostest"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// TestServersDoNotChooseWhatIsShownNext: one that may write to a folder puts a link in the place of what
// is to be shown at the next start, or in the way to it.
func TestServersDoNotChooseWhatIsShownNext(t *testing.T) {
	l := newLab(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.Mkdir(in("open"), 0o777), os.Mkdir(in("private"), 0o755), os.WriteFile(in("private/key"), []byte("secret"), 0o644),
		os.Symlink(in("open"), in("of the user")), os.Symlink("../private", in("open/planted")), os.Symlink("open/planted", in("through")),
		os.Symlink(".", in("open/again")), os.Symlink("loop", in("loop")), os.Chmod(dir, 0o755),
	); err != nil {
		t.Fatal(err)
	}
	l.written = []string{in("of the user"), in("missing")}
	for name, want := range map[string]string{
		"open/planted":             "is a link in a folder that a sandbox may write to",
		"open/planted/key":         "is a link in a folder that a sandbox may write to",
		"of the user/planted":      "is a link in a folder that a sandbox may write to",
		"through":                  "is a link in a folder that a sandbox may write to",
		"open/again/again/planted": "is a link in a folder that a sandbox may write to",
		"open/again":               "is a link in a folder that a sandbox may write to",
		"loop":                     "is one link too many",
		"open/none":                "no such file or directory",
		"of the user":              "",
	} {
		section := `mounts = [{ source = "` + in(name) + `", target = "/shown" }]`
		started, err := l.Launch(t.Context(), shell("ls /shown"), boxOf(t, section))
		switch {
		case want != "":
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "[servers.x]") {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		}
		if started != nil {
			started.Child.Await()
			started.Child.Reap()
			closePipes(started)
		}
	}
	if open := ostest.OpenFiles(t, dir); len(open) > 0 {
		t.Errorf("left open: %q", open)
	}
}

// TestServersEndWithTheirFirstProcess, whatever they have left running, and let no one wait for them.
func TestServersEndWithTheirFirstProcess(t *testing.T) {
	l := newLab(t)
	for name, tt := range map[string]struct{ script, how string }{
		"a daemon": {`python3 -c 'import os, time
if os.fork(): os.wait(); raise SystemExit(4)
os.setsid()
if os.fork(): os._exit(0)
time.sleep(1e6)'`, "exit status 4"},
		"one that holds the pipes":  {"(trap '' TERM HUP INT; while :; do sleep 1; done) & exit 5", "exit status 5"},
		"one that kills its parent": {"kill -9 1; kill -TERM 1; kill -STOP 1; exit 6", "exit status 6"},
		"processes without end": {`python3 -c 'import os
n = 0
try:
    while True:
        if os.fork() == 0:
            while True: os.read(os.pipe()[0], 1)
        n += 1
except OSError: pass
os._exit(7 if 20 < n < 64 else 8)'`, "exit status 7, after it had all of its 64 processes and threads; pids in its section of the policy gives it more"},
	} {
		out, how := l.ends(t, shell(tt.script), boxOf(t, "pids = 64"))
		if how != tt.how && how != strings.Split(tt.how, ",")[0] { // without cgroups no one counts them
			t.Errorf("%s: %s\n%s", name, how, out)
		}
	}
}

// TestServersThatFloodAreEnded, although nothing reads what they write, and they read nothing.
func TestServersThatFloodAreEnded(t *testing.T) {
	l := newLab(t)
	started := l.launch(t, shell("trap '' TERM PIPE; echo begun; yes flood >&2 & yes flood"), boxOf(t, ""))
	if _, err := io.ReadFull(started.Stdout, make([]byte, 100_000)); err != nil {
		t.Error(err)
	}
	if err := started.Stdin.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := started.Stdin.Write(make([]byte, 10<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it reads: %v", err)
	}
	started.Child.Signal(unix.SIGTERM)
	started.Child.Signal(unix.SIGKILL)
	started.Child.Await()
	if how := started.Child.Reap(); how != "signal: killed" {
		t.Error(how)
	}
}

// TestServersHaveNothingOfTheirStart: no descriptor but its pipes, and no variable that toolcell or what it
// starts acts on. What an entry gives the server it gives no stage before it.
func TestServersHaveNothingOfTheirStart(t *testing.T) {
	l := newLab(t)
	hostile := map[string]string{
		"LD_PRELOAD": "/home/server/evil.so", "LD_LIBRARY_PATH": "/home/server", "GODEBUG": "inittrace=1", "GOTRACEBACK": "crash",
		"GLIBC_TUNABLES": "glibc.malloc.check=3", "NODE_OPTIONS": "--require=/home/server/x", "PYTHONPATH": "/home/server",
		"_TOOLCELL_PID1": "3:1:1:0:9:0", "_TOOLCELL_NEST": "0:0:0", "_TOOLCELL_ADOPT": "3:4:5", "_TOOLCELL_WRITE": "/", "_TOOLCELL_READ": "/",
		"_TOOLCELL_ENV__TOOLCELL_NEST": "0:0:0", "_TOOLCELL_HOMES": "1", "_LIBCONTAINER_INITPIPE": "3", "_LIBCONTAINER_SYNCPIPE": "4",
	}
	s := shell("ls /proc/self/fd; echo --; exec cat /proc/$$/environ")
	s.Env = hostile
	started := l.launch(t, s, boxOf(t, ""))
	out, err1 := io.ReadAll(started.Stdout)
	errs, err2 := io.ReadAll(started.Stderr)
	if err := errors.Join(err1, err2); err != nil {
		t.Error(err)
	}
	started.Child.Await()
	if how := started.Child.Reap(); how != "exit status 0" {
		t.Error(how)
	}
	fds, variables, _ := strings.Cut(string(out), "--\n")
	if fds != "0\n1\n2\n3\n" { // 3 is of ls
		t.Errorf("it has the descriptors %q", fds)
	}
	has := strings.Split(variables, "\x00")
	for name, value := range hostile {
		if ours := strings.HasPrefix(name, "_"); slices.Contains(has, name+"="+value) == ours {
			t.Errorf("%s=%s: the server has it: %t", name, value, !ours)
		}
	}
	if strings.Contains(variables, "_TOOLCELL") || strings.Contains(variables, "_LIBCONTAINER") {
		t.Errorf("it has %q", has)
	}
	for _, stage := range []string{"init oci", "init internal/", "toolcell:"} { // what GODEBUG has Go print, and our own stages
		if strings.Contains(string(errs), stage) {
			t.Errorf("a stage before it had its variables:\n%s", errs)
		}
	}
	s.Env = map[string]string{"NUL": "a\x00b"}
	if started, err := l.Launch(t.Context(), s, boxOf(t, "")); err == nil {
		started.Child.Signal(unix.SIGKILL)
		started.Child.Await()
		started.Child.Reap()
		t.Error("a variable with a zero byte was taken")
	}
}

// TestServersScanTheirNetwork: only the ports of what they are allowed answer, and none of the host.
func TestServersScanTheirNetwork(t *testing.T) {
	l := newLab(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	const scan = `exec python3 -c 'import os, socket
proxy, at = int(os.environ["https_proxy"].rpartition(":")[2]), set()
for line in [*open("/proc/net/tcp"), *open("/proc/net/tcp6")]:
    local, state = line.split()[1], line.split()[3]
    if state == "0A": at.add((".".join(str(b) for b in bytes.fromhex(local[:8])[::-1]), int(local.split(":")[1], 16)))
print("proxy" if ("127.0.0.1", proxy) in at else at, sorted(port for host, port in at if port != proxy))
for host in "127.0.0.1", "127.64.0.9", "10.0.2.2", "169.254.169.254", "192.0.2.1":
    with socket.socket() as s:
        s.settimeout(5)
        print(host, os.strerror(s.connect_ex((host, HOST))))' 2>&1`
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	out, how := l.ends(t, shell(strings.ReplaceAll(scan, "HOST", port)), boxOf(t, `network = ["api.example.com"]`))
	want := "proxy [53, 80, 443]\n127.0.0.1 Connection refused\n127.64.0.9 Connection refused\n10.0.2.2 Network is unreachable\n169.254.169.254 Network is unreachable\n192.0.2.1 Network is unreachable\n"
	if out != want {
		t.Errorf("%s, %s", out, how)
	}
	c, err := net.DialTimeout("tcp", listener.Addr().String(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// TestServersFillTheirHome until it is too much, also by folders in each other, and it can be removed.
func TestServersFillTheirHome(t *testing.T) {
	l := newLab(t)
	l.maxHome, l.homeEvery = 1<<20, 10*time.Millisecond
	for name, script := range map[string]string{
		"one file":   "exec cat /dev/zero > x",
		"many files": "i=0; while :; do i=$((i+1)); echo x > $i; done",
		"deep folders": `exec python3 -c 'import os
while True: os.mkdir("d"); os.chdir("d")'`,
		"by an unreadable folder": "mkdir -m 700 x; cat /dev/zero > x/y & sleep 0.1; chmod 0 x; wait",
	} {
		_, how := l.ends(t, shell(script), boxOf(t, ""))
		if !strings.HasPrefix(how, "had more in its HOME than the 1 MiB that it may have there (") {
			t.Errorf("%s: %s", name, how)
		}
		store, err := l.o.Homes(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Remove(t.Context(), "x"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhatServersLeaveInTheirHome harms no start, and all of it can be removed.
func TestWhatServersLeaveInTheirHome(t *testing.T) {
	l := newLab(t)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	leave := `ln -s / root; ln -s ` + outside + ` .npmrc; ln -s .. .config; ln -s /proc/self/exe node; mkfifo .profile
cp /bin/true setuid; chmod 6755 setuid; mkdir -p a/b/c; echo x > a/b/c/d; chmod 0 a/b/c a/b a
mknod null c 1 3; mv ../server ../other; rmdir ../server; chmod 0 .; echo left`
	if out, how := l.ends(t, shell(leave), boxOf(t, "")); out != "left\n" {
		t.Fatalf("%q, %s", out, how)
	}
	next := "chmod 700 ~; cd ~; (echo x > .npmrc) 2> /dev/null || echo refused; echo $(ls -A)"
	if out, how := l.ends(t, shell(next), boxOf(t, "")); out != "refused\n.config .npmrc .profile a node root setuid\n" {
		t.Errorf("the next start: %q, %s", out, how)
	}
	store, err := l.o.Homes(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.RemoveAll(t.Context()); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "mine" {
		t.Errorf("outside is %q, %v", text, err)
	}
	if out, how := l.ends(t, shell("ls -A; echo done"), boxOf(t, "")); out != "done\n" {
		t.Errorf("afterwards: %q, %s", out, how)
	}
}

// TestServersDoNotChangeTheirPackages, whose files belong to them where there is one ID only: neither by
// their paths, nor by descriptors, links or other names.
func TestServersDoNotChangeTheirPackages(t *testing.T) {
	l := newLab(t)
	layer, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(layer, "index.js")
	if err := errors.Join(os.Chmod(layer, 0o777), os.WriteFile(file, []byte("good"), 0o666), os.Chmod(file, 0o666)); err != nil {
		t.Fatal(err)
	}
	l.prepared.Binds = []spec.Bind{{Source: layer, Target: spec.OwnDir + "/npm"}}
	const attack = `exec python3 -c 'import errno, os
at = "/run/toolcell/npm"
held = os.open(at + "/index.js", os.O_RDONLY)
os.symlink(at, "node_modules")
def tried(do, *args):
    try: return do(*args) or "done"
    except OSError as e: return errno.errorcode[e.errno]
w = os.O_WRONLY
print(tried(os.open, at + "/index.js", w), tried(os.open, "node_modules/index.js", w), tried(os.open, f"/proc/self/fd/{held}", w),
    tried(os.open, "node_modules/new.js", w | os.O_CREAT), tried(os.unlink, at + "/index.js"), tried(os.rename, "node_modules/index.js", at + "/x"),
    tried(os.chmod, at, 0o700), tried(os.truncate, f"/proc/self/fd/{held}", 0), tried(os.link, at + "/index.js", "linked"), tried(os.rmdir, at))'`
	want := "EROFS EROFS EROFS EROFS EROFS EROFS EROFS EROFS EXDEV EROFS\n"
	out, how := l.ends(t, shell(attack), boxOf(t, ""))
	if got := strings.ReplaceAll(strings.ReplaceAll(out, "EBUSY", "EROFS"), "EACCES", "EROFS"); got != want { // Landlock is asked first
		t.Errorf("%q, %s", out, how)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "good" {
		t.Errorf("the package is %q, %v", text, err)
	}
}

// TestServersSideBySide do not reach what is the other's.
func TestServersSideBySide(t *testing.T) {
	l := newLab(t)
	const keep = `exec python3 -c 'import ctypes, os, socket, time
secret = b"the-secret"
for place in os.environ["HOME"], "/tmp", "/dev/shm", "/workspace":
    with open(place + "/kept", "wb") as f: f.write(secret)
a = socket.socket(socket.AF_UNIX); a.bind("\0of the first"); a.listen()
b = socket.create_server(("127.0.0.1", 20202))
libc = ctypes.CDLL(None); libc.shmget(20202, 64, 0o1666)
print(open("/proc/self/uid_map").read().split(), flush=True)
time.sleep(1e6)'`
	const reach = `exec python3 -c 'import ctypes, glob, os, socket
def tried(do):
    try: return do()
    except OSError as e: return None
kept = [p for p in glob.glob("/home/*/kept") + glob.glob("/*/kept") + glob.glob("/dev/shm/kept") + glob.glob("/proc/[0-9]*/root/**/kept")]
unix, inet = socket.socket(socket.AF_UNIX), socket.socket()
print(kept, tried(lambda: unix.connect("\0of the first") or "connected"), tried(lambda: inet.connect(("127.0.0.1", 20202)) or "connected"),
    ctypes.CDLL(None).shmget(20202, 64, 0), [p for p in os.listdir("/proc") if p.isdigit() and p not in ("1", str(os.getpid()))])
print(open("/proc/self/uid_map").read().split())'`
	first := shell(keep)
	first.Name = "first"
	started := l.launch(t, first, boxOf(t, ""))
	ids, err := bufio.NewReader(started.Stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	out, how := l.ends(t, shell(reach), boxOf(t, ""))
	got, own, _ := strings.Cut(out, "\n")
	if got != "[] None None -1 []" {
		t.Errorf("%s, %s", out, how)
	}
	store, err := l.o.Homes(nil)
	if err != nil {
		t.Fatal(err)
	}
	home, err := store.Ensure(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if same := ids == own; same != (home.UID < 0) {
		t.Errorf("the IDs of the first are %s, of the second %s", ids, own)
	}
	if home.UID >= 0 && !strings.Contains(own, fmt.Sprintf("'%d'", home.UID)) {
		t.Errorf("its IDs are %s, and its HOME belongs to %d", own, home.UID)
	}
}
