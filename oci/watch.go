package oci

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// watchInterval is how often a sandbox without a memory cgroup is looked at.
// What code can touch in between, some 50 MB, is how far it can overshoot.
const watchInterval = 10 * time.Millisecond

// A memoryWatch keeps the memory limit of one sandbox where no cgroup does: it
// adds up what the sandbox holds and kills it if that is too much.
type memoryWatch struct {
	pid   int      // the sandbox's first process
	root  *os.File // its root directory, from outside
	proc  *os.File // its /proc, which lists its processes and no others; nil if it has none
	limit int64
	over  atomic.Bool
	stop  chan struct{}
	ended chan struct{}
}

// startMemoryWatch watches the sandbox whose first process is pid, and calls
// kill once it holds more than limit bytes. ownProc says that the sandbox has a
// /proc of its own.
func startMemoryWatch(pid int, ownProc bool, limit int64, kill func()) *memoryWatch {
	w := &memoryWatch{pid: pid, limit: limit, stop: make(chan struct{}), ended: make(chan struct{})}
	go w.run(ownProc, kill)
	return w
}

// open takes hold of the sandbox's root and /proc, so that no later process
// with the same pid is ever looked at. It fails until the first process has
// become the program to run: before, the kernel guards it like one of ours.
func (w *memoryWatch) open(ownProc bool) (err error) {
	at := filepath.Join("/proc", strconv.Itoa(w.pid), "root")
	if w.root, err = os.OpenFile(at, unix.O_PATH|unix.O_DIRECTORY, 0); err != nil || !ownProc {
		return err
	}
	if w.proc, err = os.Open(filepath.Join(at, "proc")); err != nil {
		w.root.Close()
	}
	return err
}

func (w *memoryWatch) run(ownProc bool, kill func()) {
	defer close(w.ended)
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for w.open(ownProc) != nil {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
	}
	defer w.root.Close()
	if w.proc != nil {
		defer w.proc.Close()
	}
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
		// Resident memory counts pages that processes share once for each,
		// so it is at least as much as they hold; it is quick to read.
		if files := w.inFiles(); files+w.sum("statm", residentOf) > w.limit && files+w.sum("smaps_rollup", anonymousOf) > w.limit {
			w.over.Store(true)
			kill()
			return
		}
	}
}

// exceeded stops the watch and reports whether the limit was passed.
func (w *memoryWatch) exceeded() bool {
	if w == nil {
		return false
	}
	close(w.stop)
	<-w.ended
	return w.over.Load()
}

// sum adds up what a file of each process says, in bytes.
func (w *memoryWatch) sum(file string, read func([]byte) int64) (total int64) {
	for _, dir := range w.processes() {
		if b, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
			total += read(b)
		}
	}
	return total
}

// processes gives a directory of some /proc for each process in the sandbox.
func (w *memoryWatch) processes() (dirs []string) {
	if w.proc == nil {
		return descendants(nil, strconv.Itoa(w.pid))
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

// descendants appends the directories, in our /proc, of a process and all that
// stem from it. No process of a sandbox can get out from under its first one.
func descendants(dirs []string, pid string) []string {
	dirs = append(dirs, filepath.Join("/proc", pid))
	threads, _ := filepath.Glob(filepath.Join("/proc", pid, "task", "*", "children"))
	for _, file := range threads {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, child := range bytes.Fields(b) {
			dirs = descendants(dirs, string(child))
		}
	}
	return dirs
}

// inFiles gives the bytes in the sandbox's own file systems, which lie in
// memory and in no process.
func (w *memoryWatch) inFiles() (total int64) {
	dir := filepath.Join("/proc/self/fd", strconv.Itoa(int(w.root.Fd())))
	for _, at := range []string{"/tmp", "/workspace", "/dev/shm"} {
		var fs unix.Statfs_t
		if unix.Statfs(dir+at, &fs) == nil && fs.Type == unix.TMPFS_MAGIC {
			total += int64(fs.Blocks-fs.Bfree) * fs.Bsize
		}
	}
	return total
}

// residentOf reads the second field of statm, in pages (proc(5)).
func residentOf(statm []byte) int64 {
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// anonymousOf reads a process's share of memory that no file stands behind,
// each shared page divided among who shares it (proc(5), smaps_rollup).
func anonymousOf(rollup []byte) int64 {
	for _, line := range bytes.Split(rollup, []byte("\n")) {
		if rest, ok := bytes.CutPrefix(line, []byte("Pss_Anon:")); ok {
			kib, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}
