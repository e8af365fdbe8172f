package oci

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// TestProcShowsNothingOfTheHost's load and memory, and programs find there what
// they look for.
func TestProcShowsNothingOfTheHost(t *testing.T) {
	const code = `
import os
def text(name): return open("/proc/" + name).read()
memory = {l.split(":")[0]: int(l.split()[1]) for l in text("meminfo").splitlines()}
print(memory["MemTotal"], memory["MemTotal"] >= memory["MemAvailable"] == memory["MemFree"] > 0, memory["SwapTotal"])
print(text("loadavg").split()[:3], text("uptime").split(), os.cpu_count())
stat = {l.split()[0]: l.split()[1:] for l in text("stat").splitlines()}
print({n for k, v in stat.items() if k not in ("btime", "procs_running") for n in v}, int(stat["btime"][0]) > 1_000_000_000)
files = ("buddyinfo", "cgroups", "crypto", "diskstats", "interrupts", "key-users", "locks", "mdstat", "modules", "partitions", "softirqs",
    "swaps", "vmstat", "zoneinfo")
print([n for n in files if os.path.exists("/proc/" + n) and text(n)])
print([n for n in ("acpi", "bus", "driver", "fs", "irq", "pressure") if os.path.isdir("/proc/" + n) and os.listdir("/proc/" + n)])
def moves(n):
    try: return bool(os.listdir("/proc/" + n) if os.path.isdir("/proc/" + n) else text(n))
    except OSError: return False
known = KNOWN.split()
print([n for n in os.listdir("/proc") if not n.isdigit() and n not in known and moves(n)])
for name in ("loadavg", "meminfo", "stat", "uptime"):
    try: open("/proc/" + name, "w"); print("writable")
    except OSError: pass
`
	// What does not move, and what is the sandbox's own.
	const known = "cmdline config.gz consoles cpuinfo devices dma execdomains filesystems iomem ioports loadavg meminfo misc mounts " +
		"mtrr net self stat sys sysvipc thread-self tty uptime version version_signature"
	want := fmt.Sprintf("262144 True 0\n['0.00', '0.00', '0.00'] ['1.00', '1.00'] %d\n{'0'} True\n[]\n[]\n[]\n", processors(t))
	eachKind(t, func(t *testing.T, l *lab) { l.wants(t, fmt.Sprintf("KNOWN = %q\n", known)+code, want) })
}

// processors returns what os.cpu_count gives on the host.
func processors(t *testing.T) int {
	t.Helper()
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return runtime.NumCPU()
	}
	n := -1
	for line := range strings.Lines(string(stat)) {
		if strings.HasPrefix(line, "cpu") {
			n++
		}
	}
	return n
}
