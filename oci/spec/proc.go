package spec

import (
	"slices"
	"strings"
)

// CoveredFiles are files of /proc that reveal the host's load, memory and uptime, but that
// programs need. Substitutes of the same form are mounted on them (container/procsubstitutes.go).
var CoveredFiles = []string{"/proc/loadavg", "/proc/meminfo", "/proc/stat", "/proc/uptime"}

// maskedPaths reveal something about the host or can be used to slow it down; they read as
// empty. The list has the defaults of Docker and Podman, plus files that change with the
// activity of the host and other sandboxes. Every fork makes a mount for each: the few
// counters below /proc/sys are not worth that, and docs/security.md names them.
var maskedPaths = []string{
	"/proc/acpi", "/proc/asound", "/proc/buddyinfo", "/proc/bus", "/proc/cgroups", "/proc/crypto", "/proc/diskstats", "/proc/driver",
	"/proc/fs", "/proc/interrupts", "/proc/irq", "/proc/kcore", "/proc/key-users", "/proc/keys",
	"/proc/latency_stats", "/proc/locks", "/proc/mdstat", "/proc/modules", "/proc/partitions", "/proc/sched_debug", "/proc/schedstat",
	"/proc/scsi", "/proc/softirqs", "/proc/swaps", "/proc/timer_list", "/proc/timer_stats", "/proc/kallsyms", "/proc/kmsg",
	"/proc/kpagecount", "/proc/kpageflags", "/proc/pressure", "/proc/vmstat", "/proc/zoneinfo",
	"/sys/firmware", "/sys/devices/virtual/powercap",
}

// shownProc are the names at the top of /proc that a sandbox sees unchanged: those about its
// own processes and namespaces, and those that never change. They include CoveredFiles.
var shownProc = []string{
	"cmdline", "config.gz", "consoles", "cpuinfo", "devices", "dma", "execdomains", "filesystems", "iomem", "ioports", "loadavg",
	"meminfo", "misc", "mounts", "mtrr", "net", "self", "stat", "sys", "sysvipc", "thread-self", "tty", "uptime", "version",
	"version_signature",
}

// MaskedPaths returns what a sandbox on h sees as empty. This includes names in this host's
// /proc that are in no list: drivers can add any.
func MaskedPaths(h Host) []string {
	out := slices.Clone(maskedPaths)
	for _, name := range h.ProcNames {
		if path := "/proc/" + name; !slices.Contains(shownProc, name) && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	return append(out, coveredMounts(h)...)
}

// ReadonlyPaths configure the kernel, or are device nodes of the host, whose times and modes
// are shared with the host. Writing to a device is not a write to its file system.
var ReadonlyPaths = []string{
	"/proc/sys", "/proc/sysrq-trigger",
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
}

// InProc reports whether a path is below /proc.
func InProc(path string) bool { return strings.HasPrefix(path, "/proc/") }

// coverBinds returns the mounts on CoveredFiles. A template sees the substitutes only below
// OwnDir, for its forks to mount: the kernel refuses a new /proc while parts of the current
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
