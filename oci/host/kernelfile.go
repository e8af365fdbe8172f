package host

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

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

// MemoryAvailable returns how many bytes programs could use without swapping (proc(5),
// MemAvailable); a large number if unknown.
func MemoryAvailable() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if n := Number(b, "MemAvailable"); err == nil && n > 0 {
		return n << 10
	}
	return 1 << 62
}
