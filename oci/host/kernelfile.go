package host

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
)

// ReadCounter reads the counter file of a controller of a cgroup.
func ReadCounter(m cgroups.Manager, controller string) ([]byte, error) {
	return readFile(CounterPath(m, controller))
}

// CounterPath returns the counter file of a controller.
func CounterPath(m cgroups.Manager, controller string) string {
	name := controller + ".events"
	if controller == "memory" && !cgroups.IsCgroup2UnifiedMode() {
		name = "memory.oom_control"
	}
	return filepath.Join(m.Path(controller), name)
}

// OpenFile opens a kernel file whose reads never block. os.Open would register it
// with the poller, which takes three times as many system calls.
func OpenFile(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// ReadAgain reads the current content of a short, open kernel file.
func ReadAgain(f *os.File) ([]byte, error) {
	b := make([]byte, 4096)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b[:n], nil
}

// readFile reads a file of the kernel, such as one in /proc.
func readFile(path string) ([]byte, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAgain(f)
}

// Number reads a number from a file of lines such as "max 3" or "VmRSS:  12 kB".
func Number(file []byte, name string) int64 {
	for line := range bytes.Lines(file) {
		fields := bytes.Fields(line)
		if len(fields) >= 2 && string(bytes.TrimSuffix(fields[0], []byte(":"))) == name {
			n, err := strconv.ParseInt(string(fields[1]), 10, 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}

// MemoryAvailable returns how many bytes programs could use without swapping (proc(5),
// MemAvailable); a large number if unknown.
func MemoryAvailable() int64 {
	b, err := readFile("/proc/meminfo")
	if n := Number(b, "MemAvailable"); err == nil && n > 0 {
		return n << 10
	}
	return 1 << 62
}
