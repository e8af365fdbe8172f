package state

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Holder returns the process that has locked a file with Lock or TryLock, as far as the kernel
// tells (proc_locks(5)); 0 if it does not, such as of a process in another container. It takes no
// lock itself, so that it is in nobody's way. Whether there is a holder, TryLock tells.
func Holder(path string) (pid int) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	// On file systems of several devices, such as Btrfs, the device is not that of stat(2).
	inode := ":" + strconv.FormatUint(st.Ino, 10)
	for line := range strings.Lines(string(locks)) {
		fields := strings.Fields(line) // 1: FLOCK ADVISORY WRITE 8091 fe:00:10616945 0 EOF
		if len(fields) < 6 || fields[1] != "FLOCK" || !strings.HasSuffix(fields[5], inode) {
			continue
		}
		if n, err := strconv.Atoi(fields[4]); err == nil && n > 0 {
			return n
		}
	}
	return 0
}
