package inbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A serving is one `toolcell serve` and the processes that have started it.
type serving struct {
	launchers []procStat
	above     []procStat // the launchers
	own       bool       // it is the one that asks
}

// servingOf looks at the processes above a server.
func servingOf(pid int) (serving, error) {
	line, err := lineage(pid)
	if err != nil {
		return serving{}, err
	}
	n := launchers(line[1:])
	return serving{launchers: line[1 : 1+n], above: line[1+n:]}, nil
}

// began is when the first of the launchers began; 0 if that cannot be seen, such as from a
// container that has nothing but the server.
func (s serving) began() uint64 {
	if len(s.launchers) == 0 {
		return 0
	}
	first := s.launchers[0].started
	for _, p := range s.launchers {
		first = min(first, p.started)
	}
	return first
}

// ErrSelf is the error of an approval that comes from the program that asks for it.
var ErrSelf = errors.New("it would be approved by the program that asks for it: " +
	"this process was started by the MCP client whose code waits; approve in a terminal that the client has not started")

// ErrAgent is the error of an approval that comes from another such program.
var ErrAgent = errors.New("this process was started by an MCP client that runs toolcell, too, and whose model may use it: " +
	"approve in a terminal that no such client has started")

// ErrTerminal is the error of an approval without a terminal.
var ErrTerminal = errors.New("an approval needs a terminal, where a person types a code")

// ErrStrict is the error of an approval that is not clearly a person's, if the policy is
// strict about that.
var ErrStrict = errors.New(`the policy has approvals = "strict"`)

// lateTerminal says why an approval is not clearly a person's. That is no reason to refuse
// it: most often a person has opened a new terminal.
const lateTerminal = "the terminal of this approval, or what runs in it, began after an MCP client that runs toolcell: " +
	"it may be yours, or one that the client has made and left (such as by tmux or &)"

// mayApprove returns an error unless a process may approve what one of the servers asks,
// and a remark if it may, but is not clearly a person's. What cannot be seen is refused.
func mayApprove(pid int, all []serving) (remark string, err error) {
	if pid <= 0 {
		return "", fmt.Errorf("an approval has to come from where toolcell serve runs, not from outside of its container: %w", errUnseen)
	}
	line, err := lineage(pid)
	if err != nil {
		return "", fmt.Errorf("approving: %w", err)
	}
	if !slices.ContainsFunc(all, func(s serving) bool { return s.own }) {
		return "", fmt.Errorf("approving: of toolcell serve, %w", errUnseen)
	}
	for _, s := range all {
		if has(s.launchers, line...) {
			return "", map[bool]error{true: ErrSelf, false: ErrAgent}[s.own]
		}
	}
	if line[0].terminal == 0 {
		return "", ErrTerminal
	}
	leader, err := readStat(line[0].session)
	if err != nil || leader.terminal != line[0].terminal {
		return lateTerminal, nil // it has ended
	}
	if slices.ContainsFunc(all, func(s serving) bool { return s.mayHaveLeft(line, leader) }) {
		return lateTerminal, nil
	}
	return "", nil
}

// has reports whether one of some processes is among others.
func has(all []procStat, some ...procStat) bool {
	return slices.ContainsFunc(some, func(p procStat) bool {
		return slices.ContainsFunc(all, func(q procStat) bool { return q.same(p.process) })
	})
}

// mayHaveLeft reports whether a process, given with those above it, may be one that the
// launchers have started and cut off from themselves: a daemon, a job of the user's service
// manager, a window of tmux. The kernel gives orphans to init or another process above
// their parent, so what is below a process that both have above them must have begun before
// the launchers. The process that leads the session at the terminal must have, too.
func (s serving) mayHaveLeft(line []procStat, leader procStat) bool {
	began := s.began()
	late := func(p procStat) bool { return began == 0 || p.started == 0 || p.started >= began }
	if late(leader) {
		return true
	}
	common := slices.IndexFunc(line, func(p procStat) bool { return has(s.above, p) })
	if common > 0 && line[common].terminal == line[0].terminal {
		return false // a shell at that terminal, which adopts nothing
	}
	if common < 0 {
		common = len(line)
	}
	below := line[:common]
	for len(below) > 1 && below[len(below)-1].started == 0 { // hidden, of another user
		below = below[:len(below)-1]
	}
	return len(below) == 0 || late(below[len(below)-1])
}

// servings returns this server and all other ones of the user that can be found: those with
// a socket in the folder, and those that /proc shows.
func (s *Server) servings() ([]serving, error) {
	if s.ownErr != nil {
		return nil, fmt.Errorf("approving: of toolcell serve, %w", s.ownErr)
	}
	all := []serving{s.own}
	pids := map[int]bool{}
	for _, c := range s.folder.connect() {
		if peer, err := peerOf(c); err == nil && peer.Pid > 0 {
			pids[int(peer.Pid)] = true
		}
		_ = c.Close() // nothing was written
	}
	for _, pid := range servePIDs() {
		pids[pid] = true
	}
	delete(pids, os.Getpid())
	for pid := range pids {
		other, err := servingOf(pid)
		if err != nil {
			if _, gone := readStat(pid); errors.Is(gone, fs.ErrNotExist) {
				continue // it has ended
			}
			return nil, fmt.Errorf("approving: of toolcell serve (process %d), %w", pid, err)
		}
		// A server that init or the service manager has started was started by no client, and
		// everything of the user is below these.
		other.launchers = slices.DeleteFunc(slices.Clone(other.launchers), startsEverything)
		if len(other.launchers) > 0 {
			all = append(all, other)
		}
	}
	return all, nil
}

// BelowClient reports whether an MCP client that runs toolcell now has started this process. The error is of
// processes that cannot be seen.
func BelowClient() (bool, error) {
	line, err := lineage(os.Getpid())
	if err != nil {
		return false, err
	}
	for _, pid := range servePIDs() {
		s, err := servingOf(pid)
		if err != nil {
			if _, gone := readStat(pid); errors.Is(gone, fs.ErrNotExist) {
				continue // it has ended
			}
			return false, err
		}
		if has(slices.DeleteFunc(slices.Clone(s.launchers), startsEverything), line...) {
			return true, nil
		}
	}
	return false, nil
}

// startsEverything reports whether a process is init or a service manager.
func startsEverything(p procStat) bool {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.pid))
	return p.pid == 1 || p.terminal == 0 && p.parent == 1 && strings.TrimSpace(string(name)) == "systemd"
}

// servePIDs returns the processes of this user that run `toolcell serve`, as far as can be
// seen: their sockets may be in other folders.
func servePIDs() (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	self, _ := os.Readlink("/proc/self/exe")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		var st syscall.Stat_t
		if syscall.Stat("/proc/"+e.Name(), &st) != nil || int(st.Uid) != os.Geteuid() {
			continue
		}
		exe, err := os.Readlink("/proc/" + e.Name() + "/exe")
		exe = strings.TrimSuffix(exe, " (deleted)")
		if err != nil || exe != strings.TrimSuffix(self, " (deleted)") && filepath.Base(exe) != "toolcell" {
			continue
		}
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if slices.Contains(strings.Split(string(line), "\x00"), "serve") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// judge is mayApprove for a connection. The process is the one that has connected:
// its ID could be another's by now.
func (c *serverConn) judge() (remark string, err error) {
	all, err := c.servings()
	if err != nil {
		return "", err
	}
	if now, err := readStat(int(c.peer.Pid)); c.peer.Pid > 0 && (err != nil || !now.same(c.process)) {
		return "", fmt.Errorf("approving: the process that has connected is gone: %w", cmp.Or(err, errUnseen))
	}
	remark, err = mayApprove(int(c.peer.Pid), all)
	if err == nil && remark != "" && c.strict() {
		return "", fmt.Errorf("%w, and %s", ErrStrict, remark)
	}
	return remark, err
}
