package limits

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// watchInterval is the interval between checks of a sandbox without a memory cgroup. Code
// can exceed its limit by what it touches in between, some 50 MB.
const watchInterval = 10 * time.Millisecond

// Memory outside any address space. The kernel counts it only in a cgroup, so each object is
// charged its maximum; the few that every program has are free.
const (
	inodeBytes  = 1 << 10   // of a tmpfs: the inode and its name
	threadBytes = 24 << 10  // a kernel stack and what goes with it
	fileBytes   = 8 << 10   // a pipe past the user's first 64 MiB has two pages (pipe(7))
	socketBytes = 832 << 10 // buffers for both ways, at their most (socket(7), SO_SNDBUF)
	freeFiles   = 64        // of each process
	freeSockets = 100
)

// A memoryWatch enforces the memory limit of one sandbox without a cgroup: it adds up the
// sandbox's memory and kills it if that is too much. It also records that the limit on
// processes was reached, which the kernel does not report for a resource limit.
type memoryWatch struct {
	pid    int      // the sandbox's first process
	root   *os.File // its root directory, from outside
	proc   *os.File // its /proc, which lists only its processes; nil if it has none
	limits spec.Limits
	again  atomic.Bool  // look once more after stop
	seen   atomic.Int64 // memory that the last look has seen, in bytes
	peak   atomic.Int64 // and the most that one has
	*watching
}

// open opens the sandbox's root and /proc, so that a later process with the same pid is
// never read. It fails until pid 1 has reached its final mount namespace.
func (w *memoryWatch) open(ownProc bool) (err error) {
	dir := filepath.Join("/proc", strconv.Itoa(w.pid))
	if name, err := os.ReadFile(filepath.Join(dir, "comm")); err != nil || string(name) != spec.PID1Name+"\n" {
		return errors.New("pid 1 is not there yet")
	}
	at := filepath.Join(dir, "root")
	if w.root, err = os.OpenFile(at, unix.O_PATH|unix.O_DIRECTORY, 0); err != nil || !ownProc {
		return err
	}
	if w.proc, err = os.Open(filepath.Join(at, "proc")); err != nil {
		w.root.Close()
	}
	return err
}

// run kills the sandbox once it holds more than it may, or if it cannot watch on.
// ownProc says that the sandbox has a /proc of its own.
func (w *memoryWatch) run(ownProc bool) {
	defer close(w.ended)
	defer contain.Recover("watching the memory of a sandbox", w.watch.fail)
	for w.open(ownProc) != nil {
		if !w.pause(watchInterval) {
			return
		}
	}
	defer w.root.Close()
	if w.proc != nil {
		defer w.proc.Close()
	}
	for took := time.Duration(0); w.pause(max(watchInterval, 4*took)); {
		start, resting := time.Now(), w.watch.rest.begun()
		contain.Point("limits: looking")
		if w.tooMuch() {
			w.watch.oom.Store(true)
			w.watch.killAtLimit()
			return
		}
		// Checking many processes takes a while; leave most of the processor to them.
		took = time.Since(start)
		if resting != nil && !await(w.watching, resting) {
			break
		}
	}
	if w.again.Load() {
		w.tooMuch() // for the processes: the memory is free in a moment
	}
}

// lastLook checks the sandbox once more just before it is killed. On a busy host with a fork
// bomb in the sandbox, no earlier check may have completed.
func (w *memoryWatch) lastLook() {
	w.again.Store(true)
	w.stop()
	select {
	case <-w.ended:
	case <-time.After(time.Second):
	}
}

// tooMuch checks every process of the sandbox, if necessary twice.
func (w *memoryWatch) tooMuch() bool {
	dirs := w.processes()
	var resident, kernel, threads int64
	for _, dir := range dirs {
		status, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil {
			continue // it has ended
		}
		resident += host.Number(status, "VmRSS") << 10
		kernel += host.Number(status, "VmPTE") << 10
		kernel += max(0, host.Number(status, "FDSize")-freeFiles) * fileBytes
		threads += host.Number(status, "Threads")
	}
	w.seen.Store(resident)
	w.peak.Store(max(w.peak.Load(), resident))
	if w.limits.PIDs > 0 && threads >= w.limits.PIDs {
		w.watch.pids.Store(true)
	}
	if w.limits.Memory <= 0 {
		return false
	}
	kernel += threads*threadBytes + w.inFiles() + w.inSockets()
	if resident+kernel <= w.limits.Memory {
		return false
	}
	// Resident memory counts shared pages once per process. This does not, but is slower to
	// read.
	var private int64
	for _, dir := range dirs {
		if rollup, err := os.ReadFile(filepath.Join(dir, "smaps_rollup")); err == nil {
			private += host.Number(rollup, "Pss_Anon") << 10
		}
	}
	return private+kernel > w.limits.Memory
}

// processes returns a directory of some /proc for each process in the sandbox.
func (w *memoryWatch) processes() (dirs []string) {
	if w.proc == nil {
		return descendants(nil, w.pid)
	}
	if _, err := w.proc.Seek(0, 0); err != nil {
		return nil
	}
	names, err := w.proc.Readdirnames(-1)
	if err != nil {
		return nil // the namespace is ending
	}
	at := filepath.Join("/proc/self/fd", strconv.Itoa(int(w.proc.Fd())))
	for _, name := range names {
		if name[0] >= '0' && name[0] <= '9' {
			dirs = append(dirs, filepath.Join(at, name))
		}
	}
	return dirs
}

// descendants appends the directories, in our /proc, of a process and all its descendants.
// No process of a sandbox can leave the tree of its first process.
func descendants(dirs []string, pid int) []string {
	dirs = append(dirs, filepath.Join("/proc", strconv.Itoa(pid)))
	children, _ := host.ChildrenOf(pid) // threads may have ended
	for _, child := range children {
		dirs = descendants(dirs, child)
	}
	return dirs
}

// inFiles returns the memory of the sandbox's own file systems, including inodes, which
// belongs to no process.
func (w *memoryWatch) inFiles() (total int64) {
	dir := filepath.Join("/proc/self/fd", strconv.Itoa(int(w.root.Fd())))
	for _, at := range []string{"/tmp", "/workspace", "/dev/shm"} {
		var fs unix.Statfs_t
		if unix.Statfs(dir+at, &fs) == nil && fs.Type == unix.TMPFS_MAGIC {
			total += int64(fs.Blocks-fs.Bfree)*fs.Bsize + int64(fs.Files-fs.Ffree)*inodeBytes
		}
	}
	return total
}

// inSockets returns what the sandbox's sockets may hold.
func (w *memoryWatch) inSockets() int64 {
	at := filepath.Join("/proc", strconv.Itoa(w.pid))
	if w.proc != nil {
		at = filepath.Join("/proc/self/fd", strconv.Itoa(int(w.proc.Fd())), "1")
	}
	b, err := os.ReadFile(filepath.Join(at, "net/sockstat")) // "sockets: used 5"
	if err != nil {
		return 0
	}
	charged := max(0, socketCount(b, "sockets: used")-freeSockets) * socketBytes
	if w.proc == nil {
		b6, _ := os.ReadFile(filepath.Join(at, "net/sockstat6")) // a host without IPv6 has none
		if socketCount(b, "TCP: inuse")+socketCount(b6, "TCP6: inuse") > fewConnections {
			charged = max(charged, inQueues(at))
		}
	}
	return charged
}

// socketCount returns the number after some words in sockstat, 0 if there is none.
func socketCount(sockstat []byte, words string) int64 {
	_, rest, _ := bytes.Cut(sockstat, []byte(words+" "))
	number, _, _ := bytes.Cut(rest, []byte("\n"))
	number, _, _ = bytes.Cut(number, []byte(" "))
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
