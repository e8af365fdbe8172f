package spec

import (
	"fmt"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

// Limits bound the resources of one sandbox. Zero means no limit.
type Limits struct {
	Memory int64   // bytes, without swap
	PIDs   int64   // processes and threads
	CPUs   float64 // processors, such as 1.5
}

// maxSocketBuffers bounds the buffers of a sandbox's TCP and UDP sockets, in bytes, if cgroup
// v1 counts them separately from memory.
const maxSocketBuffers = 64 << 20

// SocketBuffers returns that limit, or the limit on memory if that is lower.
func (l Limits) SocketBuffers() int64 {
	if l.Memory > 0 {
		return min(maxSocketBuffers, l.Memory)
	}
	return maxSocketBuffers
}

// Words describes what l and the limits of every sandbox allow, by the name of the limited
// resource: memory, pids, files (descriptors), space (in writable file systems), and the
// folders of these, if one is full.
func (l Limits) Words() map[string]string {
	words := map[string]string{
		"files": fmt.Sprintf("%d open files in one process", maxFiles),
		"space": fmt.Sprintf("/tmp holds %d MiB in %d files, /workspace %d MiB in %d, /dev/shm %d MiB in %d",
			tmpSize>>20, tmpFiles, workspaceSize>>20, workspaceFiles, shmSize>>20, shmFiles),
		"/tmp":       fmt.Sprintf("/tmp holds %d MiB in %d files, and is full", tmpSize>>20, tmpFiles),
		"/workspace": fmt.Sprintf("/workspace holds %d MiB in %d files, and is full", workspaceSize>>20, workspaceFiles),
		"/dev/shm":   fmt.Sprintf("/dev/shm holds %d MiB in %d files, and is full", shmSize>>20, shmFiles),
	}
	if l.Memory > 0 {
		words["memory"] = fmt.Sprintf("%d MiB of memory", l.Memory>>20)
	}
	if l.PIDs > 0 {
		words["pids"] = fmt.Sprintf("%d processes and threads", l.PIDs)
	}
	return words
}

// resources returns the limits as cgroup settings, nil without a cgroup: libcontainer fails
// the start if it cannot apply one.
func resources(l Limits, c host.Cgroup) *specs.LinuxResources {
	if c.Driver == host.CgroupNone {
		return nil
	}
	r := &specs.LinuxResources{}
	if l.Memory > 0 && c.Memory {
		r.Memory = &specs.LinuxMemory{Limit: &l.Memory}
		if c.Swap {
			// The limit on memory and swap together is the same: no swap.
			r.Memory.Swap = &l.Memory
		}
		if c.V2 {
			// Kill the whole sandbox, not a single process.
			r.Unified = map[string]string{"memory.oom.group": "1"}
		}
	}
	if l.PIDs > 0 && c.PIDs {
		r.Pids = &specs.LinuxPids{Limit: &l.PIDs}
	}
	if l.CPUs > 0 && c.CPU {
		quota, period := int64(l.CPUs*host.CPUPeriod), uint64(host.CPUPeriod)
		r.CPU = &specs.LinuxCPU{Quota: &quota, Period: &period}
	}
	return r
}

// Niceness returns the code's nice value (nice(2)). With a cgroup that shares CPU time it
// would have no effect. The code cannot lower it (RLIMIT_NICE).
func Niceness(h Host) int {
	if h.Cgroup.CPU {
		return 0
	}
	return 10
}

// Sysctls returns settings of the sandbox's own network namespace (ip-sysctl), which only a
// /proc of its own can have.
//
// Without any capability, pid 1 listens on ports below 1024 for hosts by name
// (pid1.c, send_sockets). What code gains by that it has in its own sandbox only.
//
// Where no cgroup counts TCP buffers as memory, their automatic growth is bound (tcp_rmem and
// tcp_wmem). Both directions may use what the memory watch charges for a socket. With more, a
// program that leaves 60 responses unread, as it may, would use up what cgroup v1 allows all
// its sockets, and wait forever.
func Sysctls(h Host) map[string]string {
	if h.NoProc {
		return nil
	}
	all := map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"}
	if !h.Cgroup.Memory || !h.Cgroup.V2 {
		all["net.ipv4.tcp_rmem"], all["net.ipv4.tcp_wmem"] = "4096 131072 425984", "4096 65536 425984"
	}
	return all
}

// maxFiles is how many descriptors a process in the sandbox may have open.
const maxFiles = 4096

// maxLocked is how much memory a process may lock, in bytes: the kernel's default
// (include/uapi/linux/resource.h, MLOCK_LIMIT).
const maxLocked = 8 << 20

// maxSignals is how many signals and timers (timer_create(2)) may be pending.
const maxSignals = 1024

// RlimitNumbers are the kernel's numbers of the limits named in rlimits.
var RlimitNumbers = map[string]int{
	"RLIMIT_CORE":       unix.RLIMIT_CORE,
	"RLIMIT_MEMLOCK":    unix.RLIMIT_MEMLOCK,
	"RLIMIT_MSGQUEUE":   unix.RLIMIT_MSGQUEUE,
	"RLIMIT_NICE":       unix.RLIMIT_NICE,
	"RLIMIT_NOFILE":     unix.RLIMIT_NOFILE,
	"RLIMIT_NPROC":      unix.RLIMIT_NPROC,
	"RLIMIT_RTPRIO":     unix.RLIMIT_RTPRIO,
	"RLIMIT_SIGPENDING": unix.RLIMIT_SIGPENDING,
}

// Rlimits returns the limits that need no cgroup. An ordinary user cannot set a limit above
// its own hard limit, so the lower of both is used.
func Rlimits(l Limits, h Host) []specs.POSIXRlimit {
	var out []specs.POSIXRlimit
	add := func(name string, n uint64) {
		n = h.LimitOf(RlimitNumbers[name], n)
		out = append(out, specs.POSIXRlimit{Type: name, Hard: n, Soft: n})
	}
	// One byte prevents core files and the host's core handler, which would run as its root.
	// With zero, the handler would be started (fs/coredump.c, do_coredump).
	add("RLIMIT_CORE", 1)
	add("RLIMIT_NOFILE", maxFiles)
	// Some hosts have higher limits for root or desktop users.
	add("RLIMIT_MEMLOCK", maxLocked)
	add("RLIMIT_MSGQUEUE", 0)
	add("RLIMIT_NICE", 0)
	add("RLIMIT_RTPRIO", 0)
	// Queued signals and timers also count for the user who runs toolcell.
	add("RLIMIT_SIGPENDING", maxSignals)
	if l.PIDs > 0 && !h.Cgroup.PIDs {
		// Counted per user namespace since Linux 5.14, so that sandboxes do not share it.
		add("RLIMIT_NPROC", uint64(l.PIDs))
	}
	return out
}

// pid1Rlimits returns the limits of pid 1. The limit on descriptors is set only for the
// code's process (pid1.c): the kernel compares it with the descriptors queued in sockets of
// all sandboxes with the same user ID (net/core/scm.c, too_many_unix_fds), and pid 1 has to
// send two.
//
// A template has the host's limit on signals, which bounds all its forks together
// (include/linux/user_namespace.h, UCOUNT_RLIMIT_SIGPENDING).
func pid1Rlimits(p Process, h Host) []specs.POSIXRlimit {
	return slices.DeleteFunc(Rlimits(p.Limits, h), func(l specs.POSIXRlimit) bool {
		return l.Type == "RLIMIT_NOFILE" || p.Template && l.Type == "RLIMIT_SIGPENDING"
	})
}
