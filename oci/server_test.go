package oci

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/homes"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/ocitest"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// A serverLab starts servers with one HOME, and folders of the user's.
type serverLab struct {
	r      *Runtime
	root   spec.Root
	server spec.Server
}

func newServerLab(t *testing.T) *serverLab {
	t.Helper()
	ocitest.NeedNamespaces(t)
	r, err := Open(t.TempDir(), 65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	h, err := r.containers.Host()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store := homes.Open(filepath.Join(dir, "homes"), h.Host)
	t.Cleanup(func() {
		if err := store.RemoveAll(context.Background()); err != nil {
			t.Error(err)
		}
	})
	home, err := store.Ensure(t.Context(), "server")
	if err != nil {
		t.Fatal(err)
	}
	return &serverLab{r: r, root: ocitest.HostRoot(t), server: spec.Server{Home: home.Dir, UID: home.UID}}
}

// start starts a shell in a server's sandbox, which waits for Begin.
func (l *serverLab) start(t *testing.T, script string) (*Sandbox, *os.File) {
	t.Helper()
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	sb, err := l.r.Start(t.Context(), Process{
		Root: l.root, Server: &l.server, Args: []string{"/bin/sh", "-c", script},
		Env: []string{"PATH=/usr/bin:/bin", "HOME=" + spec.HomeTarget}, Limits: spec.Limits{Memory: 256 << 20, PIDs: 64},
		Stdout: theirs,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close(); sb.Close() })
	return sb, ours
}

// says begins a server, and returns what it prints until its end.
func (l *serverLab) says(t *testing.T, script string) string {
	t.Helper()
	sb, out := l.start(t, script+" 2>&1")
	if err := sb.Begin(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(out)
	if err != nil {
		t.Error(err)
	}
	if _, err := sb.Wait(); err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(string(text))
}

// TestServerWaitsForItsNetwork: what it connects to first is there by then.
func TestServerWaitsForItsNetwork(t *testing.T) {
	l := newServerLab(t)
	sb, out := l.start(t, "echo begun; exec sleep 100")
	begun := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n')
		begun <- text
	}()
	_, listeners, err := sb.ListenAt(nil, []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:80")})
	if err != nil || len(listeners) != 1 {
		t.Fatalf("%v, %v", listeners, err)
	}
	for _, l := range listeners {
		defer func(l net.Listener) { l.Close() }(l)
	}
	select {
	case text := <-begun:
		t.Errorf("before Begin it printed %q", text)
	case <-time.After(50 * time.Millisecond):
	}
	for range 2 {
		if err := sb.Begin(); err != nil {
			t.Fatal(err)
		}
	}
	if text := <-begun; text != "begun\n" {
		t.Errorf("it printed %q", text)
	}
}

// TestServerHasAHome: the one place of a sandbox that lasts, and from which programs run.
func TestServerHasAHome(t *testing.T) {
	l := newServerLab(t)
	write := `pwd; printf '#!/bin/sh\necho ran' > tool && chmod 755 tool && ./tool; cp /bin/true /tmp/true; /tmp/true || echo not from /tmp; stat -c %a .`
	if got, want := l.says(t, write), "/home/server\nran\n"; !strings.HasPrefix(got, want) || !strings.Contains(got, "not from /tmp") {
		t.Errorf("it printed %q", got)
	}
	if got := l.says(t, "./tool"); got != "ran" {
		t.Errorf("the next one printed %q", got)
	}
}

// TestServersCommandIsFoundInItsPath, which the sandbox's stages do not have.
func TestServersCommandIsFoundInItsPath(t *testing.T) {
	l := newServerLab(t)
	l.says(t, `printf '#!/bin/sh\necho ran $1' > tool; chmod 755 tool`)
	for path, want := range map[string]string{spec.HomeTarget + ":/bin": "ran mine", "/nowhere": "toolcell: running tool: No such file or directory"} {
		ours, theirs, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		sb, err := l.r.Start(t.Context(), Process{
			Root: l.root, Server: &l.server, Args: []string{"tool", "mine"}, Env: []string{"PATH=" + path},
			Stdout: theirs, Stderr: theirs,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := sb.Begin(); err != nil {
			t.Error(err)
		}
		got, err := io.ReadAll(ours)
		if strings.TrimSpace(string(got)) != want || err != nil {
			t.Errorf("with PATH=%s: %q, %v", path, got, err)
		}
		ours.Close()
		sb.Close()
	}
}

// TestServerSeesItsFoldersAlone, and writes only where it may.
func TestServerSeesItsFoldersAlone(t *testing.T) {
	l := newServerLab(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "note"), []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l.server.Mounts, l.server.Section = []spec.Mount{{Source: dir, Target: "/notes"}}, "[servers.notes]"
	l.server.Dir = "/notes"
	if got := l.says(t, "pwd; cat note; echo x > new || echo refused; ls /notes"); !strings.HasPrefix(got, "/notes\nmine\n") || !strings.Contains(got, "refused") || !strings.HasSuffix(got, "note") {
		t.Errorf("it printed %q", got)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", dir); err != nil {
		t.Fatal(err)
	}
	_, err = l.r.Start(t.Context(), Process{Root: l.root, Server: &l.server, Args: []string{"/bin/true"}})
	if err == nil || !strings.Contains(err.Error(), "[servers.notes]") {
		t.Errorf("with a link in its place: %v", err)
	}
}

// TestFolderThatTheServerCouldNotUse is an error at its start, and not of the first call that needs it.
func TestFolderThatTheServerCouldNotUse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: an ordinary user's server has the user's own rights in the folders that it is shown")
	}
	l := newServerLab(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l.server.Mounts, l.server.Section = []spec.Mount{{Source: dir, Target: "/notes", Writable: true}}, "[servers.notes]"
	_, err = l.r.Start(t.Context(), Process{Root: l.root, Server: &l.server, Args: []string{"/bin/true"}})
	if err == nil || !strings.Contains(err.Error(), "could not write") || !strings.Contains(err.Error(), "[servers.notes]") {
		t.Errorf("a folder of root: %v", err)
	}
	if err := os.Chown(dir, 1000, 1000); err != nil {
		t.Fatal(err)
	}
	if got := l.says(t, "echo x > /notes/new && cat /notes/new"); got != "x" && host.HasAllIDs() {
		t.Errorf("a folder of a person: %q", got)
	}
}

const serverCalls = `
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def errno(*args):
    ctypes.set_errno(0)
    return 0 if libc.syscall(*args) >= 0 else ctypes.get_errno()
print("inotify", libc.inotify_init1(0) >= 0 and libc.inotify_add_watch(3, b"/home/server", 2) >= 0 or os.strerror(ctypes.get_errno()))
for name, protocol in ("route", 0), ("audit", 9):
    try: print(name, bool(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)))
    except OSError as e: print(name, e.strerror)
print("ptrace", errno(101 if os.uname().machine == "x86_64" else 117, 0, 0, 0, 0))
print("io_uring", errno(425, 1, 0))
print("userfaultfd", errno(323 if os.uname().machine == "x86_64" else 282, 0))
print("interfaces", [name for _, name in socket.if_nameindex()])
`

// TestServersMayWatchAndListInterfaces: fs.watch and os.networkInterfaces() of Node.js. What else of
// these calls code is refused, servers are refused too.
func TestServersMayWatchAndListInterfaces(t *testing.T) {
	l := newServerLab(t)
	want := "inotify True\nroute True\naudit Operation not permitted\nptrace 1\nio_uring 1\nuserfaultfd 1\ninterfaces ['lo']"
	if got := l.says(t, "exec python3 -c '"+strings.ReplaceAll(serverCalls, "'", `'\''`)+"'"); got != want {
		t.Errorf("it printed\n%s\nwant\n%s", got, want)
	}
}

const takesWatchers = `
import ctypes, time
libc, n = ctypes.CDLL(None), 0
while n < 100_000 and libc.inotify_init1(0) >= 0: n += 1
print(n, flush=True)
time.sleep(600)
`

// TestServersLeaveWatchersToOthers: the kernel counts them for the user who runs toolcell, too.
func TestServersLeaveWatchersToOthers(t *testing.T) {
	l := newServerLab(t)
	if _, err := os.Stat("/proc/sys/user/max_inotify_instances"); err != nil {
		t.Skip("this kernel does not count them for users")
	}
	sb, out := l.start(t, "exec python3 -c '"+takesWatchers+"'")
	if err := sb.Begin(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if n, _ := strconv.Atoi(strings.TrimSpace(line)); n == 0 || err != nil {
		t.Errorf("it has %q, %v", line, err)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatalf("beside a server that has %s, this user has none: %v", strings.TrimSpace(line), err)
	}
	unix.Close(fd)
}
