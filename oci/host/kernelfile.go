package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
)

// ReadCounter reads the counter file of a controller of a cgroup.
func ReadCounter(m cgroups.Manager, controller string) ([]byte, error) {
	name := controller + ".events"
	if controller == "memory" && !cgroups.IsCgroup2UnifiedMode() {
		name = "memory.oom_control"
	}
	return os.ReadFile(filepath.Join(m.Path(controller), name))
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

// ChildrenOf returns the processes that any thread of one has started. With an error, it
// returns those of the threads that can be read.
func ChildrenOf(pid int) (children []int, err error) {
	threads, err := ThreadsOf(pid)
	for _, thread := range threads {
		all, readErr := os.ReadFile(thread + "/children")
		err = errors.Join(err, readErr)
		for field := range strings.FieldsSeq(string(all)) {
			child, numErr := strconv.Atoi(field)
			if err = errors.Join(err, numErr); numErr == nil {
				children = append(children, child)
			}
		}
	}
	return children, err
}

// ThreadsOf returns the folders of a process's threads in /proc.
func ThreadsOf(pid int) (threads []string, err error) {
	at := fmt.Sprintf("/proc/%d/task/", pid)
	entries, err := os.ReadDir(at)
	for _, e := range entries {
		threads = append(threads, at+e.Name())
	}
	return threads, err
}

// MemoryAvailable returns how many bytes programs could use without swapping (proc(5),
// MemAvailable); a large number if unknown.
func MemoryAvailable() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if n := Number(b, "MemAvailable"); err == nil && n > 0 {
		return n << 10
	}
	return 1 << 62
}
