package limits

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/ostest"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

func procOf(pid int) string { return filepath.Join("/proc", strconv.Itoa(pid)) }

// startChild starts a process that lives until the test has ended.
func startChild(t *testing.T) (pid int) {
	t.Helper()
	cmd := exec.Command("cat") // it waits for input
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return cmd.Process.Pid
}

// openDir returns a folder, open until the test has ended.
func openDir(t *testing.T, dir string) *os.File {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestRootIsClosedWithoutAProc, since the watch tries again many times a second. A thread of
// this process, which only real root can confine, stands for pid 1.
func TestRootIsClosedWithoutAProc(t *testing.T) {
	empty, ready, done := t.TempDir(), make(chan error), make(chan struct{})
	defer close(done)
	w := &memoryWatch{}
	var confine func()
	confine = func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if unix.Gettid() == os.Getpid() {
			go confine() // in another, since this one lives on
			<-done
			runtime.UnlockOSThread()
			return
		}
		w.pid = unix.Gettid()
		err := os.WriteFile(filepath.Join(procOf(w.pid), "comm"), []byte(spec.PID1Name), 0)
		if err == nil {
			err = unix.Unshare(unix.CLONE_FS)
		}
		if err == nil {
			err = unix.Chroot(empty)
		}
		ready <- err
		<-done
	}
	go confine()
	if err := <-ready; err != nil {
		t.Logf("not here: %v", err)
		return
	}
	if err := w.open(true); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opened a root without a /proc: %v", err)
	}
	if err := w.root.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the root was still open: %v", err)
	}
}

// TestFilesInMemoryCount, which no process has in its address space.
func TestFilesInMemoryCount(t *testing.T) {
	const size = 1 << 20
	held, err := os.MkdirTemp("/dev/shm", "toolcell-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(held)
	if err := os.WriteFile(filepath.Join(held, "big"), []byte(strings.Repeat("x", size)), 0o600); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	w := &memoryWatch{root: openDir(t, root)}
	if got := w.inFiles(); got != 0 {
		t.Errorf("%d bytes in no folder", got)
	}
	if err := os.Symlink(held, filepath.Join(root, "workspace")); err != nil {
		t.Fatal(err)
	}
	if got := w.inFiles(); got < size {
		t.Errorf("%d bytes, %d were written", got, size)
	}
}

// TestSocketsCountPastTheFreeOnes, with what each may hold.
func TestSocketsCountPastTheFreeOnes(t *testing.T) {
	for used, want := range map[int]int64{0: 0, freeSockets: 0, freeSockets + 3: 3 * socketBytes} {
		proc := t.TempDir()
		dir := filepath.Join(proc, "1/net")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		text := fmt.Appendf(nil, "sockets: used %d\nTCP: inuse 1 orphan 0 tw 0 alloc 1 mem 0\n", used)
		if err := os.WriteFile(filepath.Join(dir, "sockstat"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		w := &memoryWatch{proc: openDir(t, proc)}
		if got := w.inSockets(); got != want {
			t.Errorf("%d sockets: %d bytes, want %d", used, got, want)
		}
	}
}

// TestQueuesCountWithoutAProc: there the growth of few sockets has no other limit.
func TestQueuesCountWithoutAProc(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const each = 50_000
	for range fewConnections + 1 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(make([]byte, each)); err != nil {
			t.Fatal(err)
		}
	}
	w := &memoryWatch{pid: os.Getpid()}
	if got := w.inSockets(); got < 2*each*(fewConnections+1) {
		t.Errorf("%d bytes are counted, %d were sent", got, each*(fewConnections+1))
	}
}

// TestTablesOfSocketsAreClosed, since they are read a hundred times a second.
func TestTablesOfSocketsAreClosed(t *testing.T) {
	inQueues(procOf(os.Getpid()))
	if open := ostest.OpenFiles(t, "/net/tcp"); len(open) > 0 {
		t.Errorf("%q are open", open)
	}
}
