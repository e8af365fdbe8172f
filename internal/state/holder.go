package state

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Holder returns the process that has locked a file with Lock or TryLock, as far as the kernel
// tells (proc_locks(5)); 0 if it does not, such as of a process in another container. It takes no
// lock itself, so no process waits for it. Whether there is a holder, TryLock tells.
func Holder(path string) (pid int) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	return holderIn(string(locks), unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
}

// holderIn finds the holder of a file in /proc/locks. On file systems of several devices, such as
// Btrfs, the device there is not that of stat(2), so one with the inode's number alone will do if
// no other fits.
func holderIn(locks string, major, minor uint32, inode uint64) (pid int) {
	exact, number := fmt.Sprintf("%02x:%02x:%d", major, minor, inode), fmt.Sprintf(":%d", inode)
	for line := range strings.Lines(locks) {
		fields := strings.Fields(line) // 1: FLOCK ADVISORY WRITE 8091 fe:00:10616945 0 EOF
		if len(fields) < 6 || fields[1] != "FLOCK" || !strings.HasSuffix(fields[5], number) {
			continue
		}
		n, err := strconv.Atoi(fields[4])
		switch {
		case err != nil || n <= 0:
		case fields[5] == exact:
			return n
		case pid == 0:
			pid = n
		}
	}
	return pid
}
