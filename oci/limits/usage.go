package limits

import (
	"bytes"
	"path/filepath"
	"strconv"
	"time"

	"github.com/toolcell/toolcell/oci/host"
)

// A Usage is what the processes of a sandbox have taken. What is not known is 0.
type Usage struct {
	CPU    time.Duration // of all processors together
	Memory int64         // bytes, now; 0 of a sandbox that has ended
	Peak   int64         // bytes of memory, at the time of the most
}

// Usage returns what the sandbox has taken by now, as its cgroup counts it (cgroups(7)). Where none
// counts memory, Memory and Peak are what looks at the processes have seen: Peak is less than there was.
func (w *Watch) Usage() (u Usage) {
	if w == nil {
		return u
	}
	if w.memory != nil {
		u.Memory, u.Peak = w.memory.seen.Load(), w.memory.peak.Load()
	}
	m, err := w.s.Cgroup()
	if err != nil || w.cgroup.Driver == host.CgroupNone {
		return u
	}
	if w.cgroup.V2 {
		stat, _ := host.ReadKernelFile(filepath.Join(m.Path(""), "cpu.stat"))
		u.CPU = time.Duration(host.Number(stat, "usage_usec")) * time.Microsecond
		u.Memory = max(u.Memory, numberIn(m.Path(""), "memory.current"))
		u.Peak = max(u.Peak, u.Memory, numberIn(m.Path(""), "memory.peak")) // since Linux 5.19
		return u
	}
	u.CPU = time.Duration(numberIn(m.Path("cpuacct"), "cpuacct.usage"))
	u.Memory = max(u.Memory, numberIn(m.Path("memory"), "memory.usage_in_bytes"))
	u.Peak = max(u.Peak, numberIn(m.Path("memory"), "memory.max_usage_in_bytes"))
	return u
}

// numberIn reads a file that has one number, 0 if that is not to be had.
func numberIn(dir, file string) int64 {
	if dir == "" {
		return 0
	}
	b, _ := host.ReadKernelFile(filepath.Join(dir, file))
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	return n
}
