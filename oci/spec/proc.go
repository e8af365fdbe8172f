package spec

import "strings"

// CoveredFiles are files of /proc that show the host's load, memory and uptime,
// and that programs need. Others of the same name and form lie over them
// (container/procfiles.go).
var CoveredFiles = []string{"/proc/loadavg", "/proc/meminfo", "/proc/stat", "/proc/uptime"}

// MaskedPaths reveal things about the host, or can be used to slow it down;
// they read as empty. The list is the defaults of Docker and Podman, plus the
// files that show the host's load, memory and locks.
var MaskedPaths = []string{
	"/proc/acpi", "/proc/asound", "/proc/buddyinfo", "/proc/diskstats", "/proc/interrupts", "/proc/kcore", "/proc/keys",
	"/proc/latency_stats", "/proc/locks", "/proc/sched_debug", "/proc/schedstat", "/proc/scsi", "/proc/softirqs",
	"/proc/swaps", "/proc/timer_list", "/proc/timer_stats", "/proc/kallsyms", "/proc/kmsg", "/proc/kpagecount",
	"/proc/kpageflags", "/proc/pressure", "/proc/vmstat", "/proc/zoneinfo", "/sys/firmware", "/sys/devices/virtual/powercap",
}

// ReadonlyPaths configure the kernel, or are device nodes of the host, whose
// times and modes are the host's too; what is written to a device is not a
// write to its file system.
var ReadonlyPaths = []string{
	"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
}

// InProc reports whether a path is below /proc.
func InProc(path string) bool { return strings.HasPrefix(path, "/proc/") }

// coverBinds are the mounts over CoveredFiles. A template sees the files below
// OwnDir only, for its forks to mount: the kernel refuses a /proc where parts of
// one are covered (mount_namespaces(7)).
func coverBinds(p Process, h Host) (out []Bind) {
	switch {
	case p.Proc == "" || h.NoProc:
	case p.Template:
		out = append(out, Bind{Source: p.Proc, Target: OwnDir + "/proc"})
	default:
		for _, file := range CoveredFiles {
			out = append(out, Bind{Source: p.Proc + strings.TrimPrefix(file, "/proc"), Target: file})
		}
	}
	return out
}
