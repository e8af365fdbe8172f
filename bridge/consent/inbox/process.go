package inbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// A process is one at a time: its ID may be another's later.
type process struct {
	pid     int
	started uint64 // in clock ticks after boot; 0 if it cannot be seen
}

// same reports whether two are one process, as far as can be seen.
func (p process) same(q process) bool {
	return p.pid == q.pid && (p.started == q.started || p.started == 0 || q.started == 0)
}

// A procStat is what /proc/PID/stat tells (proc_pid_stat(5)).
type procStat struct {
	process
	parent   int
	session  int // the process that leads it
	terminal int // that controls it; 0 is none
}

func readStat(pid int) (procStat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	// The name, in parentheses, may have parentheses and spaces itself.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 20 {
		return procStat{}, fmt.Errorf("reading /proc/%d/stat: it has %d fields", pid, len(fields))
	}
	s := procStat{pid: pid}
	var errs [4]error
	s.parent, errs[0] = strconv.Atoi(fields[1])
	s.session, errs[1] = strconv.Atoi(fields[3])
	s.terminal, errs[2] = strconv.Atoi(fields[4])
	s.started, errs[3] = strconv.ParseUint(fields[19], 10, 64)
	return s, errors.Join(errs[:]...)
}

// maxDepth bounds the processes that are looked at from one upward.
const maxDepth = 1000

// errUnseen is the error of a process whose parents cannot be found out.
var errUnseen = errors.New("the processes above it cannot be seen")

// lineage returns a process and those above it. A parent that ends meanwhile has left
// its children to another, so it is read again then.
func lineage(pid int) (line []procStat, err error) {
	for range 3 {
		if line, err = lineageOnce(pid); err == nil {
			return line, nil
		}
	}
	return nil, errUnseen
}

func lineageOnce(pid int) (line []procStat, err error) {
	for child := 0; pid > 0; {
		if len(line) == maxDepth {
			return nil, errUnseen // what is above counts
		}
		s, err := readStat(pid)
		if errors.Is(err, fs.ErrNotExist) && child != 0 {
			// With hidepid (proc(5)) processes of others are not there to see. They are
			// above those of the user.
			if again, err := readStat(child); err != nil || again.parent != pid {
				return nil, errUnseen
			}
			return append(line, procStat{pid: pid}), nil
		}
		if err != nil {
			return nil, err
		}
		line = append(line, s)
		child, pid = pid, s.parent
	}
	if len(line) == 0 {
		return nil, errUnseen
	}
	return line, nil
}

// launchers returns how many of the processes above a server have started it: its parent,
// which is its client or was started by it, and those above as long as they read from a
// pipe, as a program does that another one has started, such as npx, a shell, or a gateway.
// The client itself reads from a terminal, or from nothing if the desktop has started it;
// the processes of one program, such as an editor, count as one. What is above, such as
// a shell, a terminal or tmux, starts other things for the user as well.
func launchers(above []procStat) int {
	for i, p := range above {
		switch {
		case i+1 == len(above):
		case above[i+1].pid == 1: // init starts everything
		case readsFromPipe(p.pid), sameProgram(p.pid, above[i+1].pid):
			continue
		}
		return i + 1
	}
	return 0
}

// readsFromPipe reports whether a process has a pipe or a socket as its standard input.
func readsFromPipe(pid int) bool {
	in, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", pid))
	return err == nil && (strings.HasPrefix(in, "pipe:") || strings.HasPrefix(in, "socket:"))
}

// sameProgram reports whether two processes run one program.
func sameProgram(a, b int) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", a))
	if err != nil {
		return false
	}
	other, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", b))
	return err == nil && exe == other
}
