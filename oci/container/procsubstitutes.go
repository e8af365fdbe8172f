package container

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// procFiles returns a folder with the files that sandboxes with this memory limit see in
// place of spec.CoveredFiles. It is created when first needed, and again if a cleaner of
// temporary files has removed it.
func (r *Runtime) procFiles(dir string, h spec.Host, memory int64) (at string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.EUID == 0 && !h.Admin && makeSearchable(stagingDir) == nil {
		dir = stagingDir // root of a container: the ids of sandboxes may not search our folders
	}
	at = filepath.Join(dir, "proc-"+strconv.FormatInt(memory, 10))
	if isComplete(at) {
		return at, nil
	}
	// Filled elsewhere first: other processes may use the same folder.
	filled, err := os.MkdirTemp(dir, ".proc-")
	if err == nil {
		defer os.RemoveAll(filled)
		err = fillProc(filled, memory)
	}
	if err == nil {
		err = errors.Join(os.RemoveAll(at), os.Rename(filled, at))
	}
	if err != nil && !isComplete(at) {
		return "", fmt.Errorf("writing what covers files of /proc: %w", err)
	}
	return at, nil
}

// makeSearchable creates a folder that every user may search, whatever our umask is.
// host.IDSlots may have created it before, for root alone.
func makeSearchable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

// fillProc writes the files to a folder, for every user to read, whatever our umask is.
func fillProc(dir string, memory int64) error {
	texts, err := procTexts(memory)
	if err != nil {
		return err
	}
	for _, file := range spec.CoveredFiles {
		name := filepath.Join(dir, path.Base(file))
		if err := errors.Join(os.WriteFile(name, texts[file], 0o644), os.Chmod(name, 0o444)); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o755)
}

func isComplete(dir string) bool {
	for _, file := range spec.CoveredFiles {
		if _, err := os.Stat(filepath.Join(dir, path.Base(file))); err != nil {
			return false
		}
	}
	return true
}

// procTexts returns the contents of the files. The total memory is the limit. None of the
// figures changes over time.
func procTexts(memory int64) (map[string][]byte, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return nil, os.NewSyscallError("sysinfo", err)
	}
	total := int64(info.Totalram) * int64(max(info.Unit, 1))
	if memory > 0 {
		total = min(total, memory)
	}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"/proc/loadavg": []byte("0.00 0.00 0.00 1/1 1\n"),
		"/proc/meminfo": meminfo(total),
		"/proc/stat":    quietStat(stat),
		"/proc/uptime":  []byte("1.00 1.00\n"),
	}, nil
}

// meminfo returns the lines that programs look for. A quarter of the memory is shown as
// used, for Python and its modules.
func meminfo(total int64) []byte {
	var b bytes.Buffer
	line := func(size int64, names ...string) {
		for _, name := range names {
			fmt.Fprintf(&b, "%-15s %8d kB\n", name+":", size>>10)
		}
	}
	free := total - total/4
	line(total, "MemTotal")
	line(free, "MemFree", "MemAvailable")
	line(0, "Buffers", "Cached", "SwapCached", "Active", "Inactive", "SwapTotal", "SwapFree", "Dirty", "Writeback")
	line(total-free, "AnonPages")
	line(0, "Mapped", "Shmem", "KReclaimable", "Slab", "SReclaimable", "SUnreclaim", "KernelStack", "PageTables")
	return b.Bytes()
}

// quietStat returns /proc/stat with every counter at zero. Without a /sys, the C library
// counts processors in it, and the start times of processes are relative to the boot time
// (proc(5)).
func quietStat(stat []byte) []byte {
	var b bytes.Buffer
	for line := range strings.Lines(string(stat)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch name := fields[0]; {
		case name == "btime":
		case name == "procs_running":
			fields = []string{name, "1"}
		case strings.HasPrefix(name, "cpu"):
			for n := range fields[1:] {
				fields[n+1] = "0"
			}
		default:
			fields = []string{name, "0"}
		}
		b.WriteString(strings.Join(fields, " ") + "\n")
	}
	return b.Bytes()
}
