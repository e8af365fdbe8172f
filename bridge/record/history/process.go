package history

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
)

// processLives reports whether the process of a run lives that has no lock between its entries. One
// that began after the run has the number of a process that has gone, and those of other hosts are not
// known.
func processLives(run *Run, pid int) bool {
	if pid <= 0 || run.Host != record.HostName("") {
		return false
	}
	began, err := processBegan(pid)
	return err == nil && began.Before(run.Start.Add(clockSlack))
}

// clockSlack is more than what the start of a process is known to: whole seconds.
const clockSlack = 2 * time.Second

// perSecond is how many ticks of /proc/PID/stat a second has on all Linux architectures of Go.
const perSecond = 100

// processBegan returns when a process began, by the clock as it is now.
func processBegan(pid int) (time.Time, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return time.Time{}, err
	}
	// The name of the program, in parentheses, may have spaces: proc_pid_stat(5).
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 || string(fields[0]) == "Z" {
		return time.Time{}, os.ErrProcessDone
	}
	ticks, err := strconv.ParseInt(string(fields[19]), 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	boot, err := bootTime()
	return boot.Add(time.Duration(ticks) * (time.Second / perSecond)), err
}

// bootTime returns when the kernel began.
func bootTime() (time.Time, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}, err
	}
	_, rest, _ := bytes.Cut(stat, []byte("\nbtime "))
	seconds, _, _ := bytes.Cut(rest, []byte{'\n'})
	at, err := strconv.ParseInt(string(seconds), 10, 64)
	return time.Unix(at, 0), err
}
