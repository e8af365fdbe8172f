package spec

import (
	"fmt"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

// Limits bound what one sandbox may take. Zero means no limit of that kind.
type Limits struct {
	Memory int64   // bytes, without swap
	PIDs   int64   // processes and threads
	CPUs   float64 // processors' worth of time, 1.5 being one and a half
}

// maxSocketBuffers is how much the buffers of a sandbox's TCP and UDP sockets may
// hold where cgroup v1 counts them apart from memory.
const maxSocketBuffers = 64 << 20

// SocketBuffers is that limit, which is never above that of memory.
func (l Limits) SocketBuffers() int64 {
	if l.Memory > 0 {
		return min(maxSocketBuffers, l.Memory)
	}
	return maxSocketBuffers
}

// Words says in words what l and the limits that hold in every sandbox allow,
// by the name of what is limited: memory, pids, files (descriptors), space
// (in the file systems that can be written), and the folders of these, if one is full.
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

// resources gives the limits as cgroup settings, nil where there is no cgroup
// to set them on: libcontainer fails the start rather than leave one out.
func resources(l Limits, c host.Cgroup) *specs.LinuxResources {
	if c.Driver == host.CgroupNone {
		return nil
	}
	r := &specs.LinuxResources{}
	if l.Memory > 0 && c.Memory {
		r.Memory = &specs.LinuxMemory{Limit: &l.Memory}
		if c.Swap {
			// Memory and swap together: the same number, so no swap.
			r.Memory.Swap = &l.Memory
		}
		if c.V2 {
			// The sandbox dies as a whole, not with one process missing.
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

// Niceness is how nice the code is (nice(2)). Where a cgroup shares out processor
// time it would change nothing. The code cannot lower it (RLIMIT_NICE).
func Niceness(h Host) int {
	if h.Cgroup.CPU {
		return 0
	}
	return 10
}

// Sysctls bound how far the buffers of TCP connections grow by themselves where no
// cgroup counts them as memory; they belong to the sandbox's own network namespace
// (ip-sysctl, tcp_rmem and tcp_wmem). Both ways may have what the watch on memory
// charges for a socket. With more, a program that leaves 60 answers unread, as it may,
// would fill what cgroup v1 grants to all its sockets, and wait for ever.
func Sysctls(h Host) map[string]string {
	if h.Cgroup.Memory && h.Cgroup.V2 || h.NoProc {
		return nil
	}
	return map[string]string{"net.ipv4.tcp_rmem": "4096 131072 425984", "net.ipv4.tcp_wmem": "4096 65536 425984"}
}

// maxFiles is how many descriptors a process in the sandbox may have open.
const maxFiles = 4096

// maxLocked is how much memory a process may pin, in bytes: what the kernel
// gives to everyone (include/uapi/linux/resource.h, MLOCK_LIMIT).
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

// Rlimits are the limits that need no cgroup. A limit above the host's own
// hard limit cannot be set by an ordinary user, so the lower of both is taken.
func Rlimits(l Limits, h Host) []specs.POSIXRlimit {
	var out []specs.POSIXRlimit
	add := func(name string, n uint64) {
		n = h.LimitOf(RlimitNumbers[name], n)
		out = append(out, specs.POSIXRlimit{Type: name, Hard: n, Soft: n})
	}
	// With one byte there are neither core files nor a core handler of the
	// host's, which would run as its root. With none the handler is started
	// (fs/coredump.c, do_coredump).
	add("RLIMIT_CORE", 1)
	add("RLIMIT_NOFILE", maxFiles)
	// Limits that are higher for root or a desktop's user than for others.
	add("RLIMIT_MEMLOCK", maxLocked)
	add("RLIMIT_MSGQUEUE", 0)
	add("RLIMIT_NICE", 0)
	add("RLIMIT_RTPRIO", 0)
	// Queued signals and timers count for the user who runs toolcell as well.
	add("RLIMIT_SIGPENDING", maxSignals)
	if l.PIDs > 0 && !h.Cgroup.PIDs {
		// Counted per user namespace since Linux 5.14, so one sandbox does
		// not use up the share of another.
		add("RLIMIT_NPROC", uint64(l.PIDs))
	}
	return out
}

// pid1Rlimits are the limits that pid 1 starts with. That on descriptors is set
// for the code's process alone (pid1.c): the kernel compares it with the
// descriptors that are queued in sockets of all sandboxes with the same user ID
// (net/core/scm.c, too_many_unix_fds), and pid 1 has to send two.
//
// A template has the host's limit on signals: it bounds those of all forks
// together (include/linux/user_namespace.h, UCOUNT_RLIMIT_SIGPENDING).
func pid1Rlimits(p Process, h Host) []specs.POSIXRlimit {
	return slices.DeleteFunc(Rlimits(p.Limits, h), func(l specs.POSIXRlimit) bool {
		return l.Type == "RLIMIT_NOFILE" || p.Template && l.Type == "RLIMIT_SIGPENDING"
	})
}
