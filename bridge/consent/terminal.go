package consent

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// From returns the process that an answer came through, and the terminal where it was typed, as far
// as that can be seen; "" if it was none.
func (q Question) From() (pid int, terminal string) {
	pid = cmp.Or(q.Answer.PID, os.Getpid())
	if q.Answer.By == "" || q.Answer.By == "form" {
		return pid, ""
	}
	return pid, terminalOf(pid)
}

// terminalOf names the terminal that controls a process, as far as that can be seen
// (proc_pid_stat(5), tty_nr).
func terminalOf(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 5 {
		return ""
	}
	number, err := strconv.ParseUint(fields[4], 10, 32)
	if err != nil || number == 0 {
		return ""
	}
	major, minor := number>>8&0xfff, number&0xff|number>>12&0xfff00
	switch {
	case major >= 136 && major <= 143: // Documentation/admin-guide/devices.txt
		return fmt.Sprintf("pts/%d", (major-136)<<8|minor)
	case major == 4 && minor >= 64: // a serial line
		return fmt.Sprintf("ttyS%d", minor-64)
	case major == 4:
		return fmt.Sprintf("tty%d", minor)
	}
	return fmt.Sprintf("%d:%d", major, minor)
}
