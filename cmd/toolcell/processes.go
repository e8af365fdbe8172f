package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/program"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/oci"
)

// A runningProcess is a toolcell of this user that runs.
type runningProcess struct {
	PID     int       `json:"pid"`     // 0 if it is in another container
	Command string    `json:"command"` // serve, exec and so on; "" if it cannot be seen
	Client  string    `json:"client"`  // the program that started it; "" if it cannot be seen
	Since   time.Time `json:"since,omitzero"`
	Folder  string    `json:"folder"` // of its own, or the file that it has locked
}

// String names a process for the user.
func (p runningProcess) String() string {
	said := "a process that cannot be seen from here"
	if p.PID != 0 {
		said = strings.TrimSpace("toolcell "+p.Command) + fmt.Sprintf(" (PID %d", p.PID)
		if p.Client != "" {
			said += ", started by " + p.Client
		}
		said += ")"
	}
	return said
}

// runningProcesses returns the processes that work with these settings.
func runningProcesses(s settings.Settings) (all []runningProcess, err error) {
	for _, dir := range s.RunDirs() {
		instances, listErr := oci.Instances(dir)
		err = errors.Join(err, listErr)
		for _, i := range instances {
			if p := processOf(ours(i.PID), i.Dir, i.Since); i.Running && p.PID != 0 {
				all = withNew(all, []runningProcess{p}) // it has a folder for each change of its settings
			} else if i.Running {
				all = append(all, p)
			}
		}
	}
	return withNew(all, processesAt(s.Dirs)), err
}

// withNew adds the processes that are not among others yet.
func withNew(all, more []runningProcess) []runningProcess {
	for _, m := range more {
		if !slices.ContainsFunc(all, func(p runningProcess) bool { return p.PID == m.PID }) {
			all = append(all, m)
		}
	}
	return all
}

// cacheUsers returns the processes that use the cache, such as images pull. Some of them run code,
// too.
func cacheUsers(d settings.Dirs) (all []runningProcess) {
	for _, name := range []string{"images", "packages", "npm"} {
		locks, _ := state.Match(filepath.Join(d.Cache, name, "locks"), "*")
		for _, lock := range locks {
			if pid, locked := holder(lock); locked {
				all = withNew(all, []runningProcess{processOf(pid, lock, time.Time{})})
			}
		}
	}
	return all
}

// holder returns the process that has locked a file, 0 if the kernel does not tell.
func holder(lock string) (pid int, locked bool) {
	for range 5 { // a holder that is not told may just have released it, and others lock it for moments
		f, err := state.TryLock(lock, 0, state.Exclusive)
		if err == nil {
			f.Close()
		}
		if !errors.Is(err, state.ErrLocked) {
			return 0, false
		}
		if pid = ours(state.Holder(lock)); pid != 0 {
			return pid, true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return 0, true
}

// backgroundCommand is what a run may leave at work on its image, for some seconds.
const backgroundCommand = "images refresh"

// processesAt returns the processes that work with these folders by their command lines: also those that
// have just begun and have no folder of their own yet, or have it elsewhere, since their client has
// another XDG_RUNTIME_DIR.
func processesAt(d settings.Dirs) (all []runningProcess) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		args := commandLine(pid)
		if len(args) < 2 || slices.Contains(harmless, args[1]) {
			continue
		}
		if isToolcell(pid) && cacheOf(pid, args) == d.Cache {
			all = append(all, processOf(pid, d.Cache, time.Time{}))
		}
	}
	return all
}

// harmless are commands that need no files of toolcell while they go on.
var harmless = []string{"purge", "status", "help", "version", "upgrade", "completion", "__complete", "man"}

// isToolcell reports whether a process runs this program, or one of its name.
func isToolcell(pid int) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	exe = strings.TrimSuffix(exe, " (deleted)") // as after an upgrade
	return err == nil && (exe == program.Self() || filepath.Base(exe) == clientconfig.ProgramName)
}

// ours returns the number of a process that the kernel tells for a lock, 0 if it is another
// program's: a file of the same number on another file system.
func ours(pid int) int {
	if !isToolcell(pid) {
		return 0
	}
	return pid
}

// cacheOf returns the cache folder of a process, "" if its environment cannot be read.
func cacheOf(pid int, args []string) string {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return ""
	}
	vars := map[string]string{}
	for v := range strings.SplitSeq(string(environ), "\x00") {
		name, value, _ := strings.Cut(v, "=")
		vars[name] = value
	}
	one := cmp.Or(vars["TOOLCELL_STATE_DIR"], vars["MCP_BRIDGE_STATE_DIR"])
	for i, arg := range args {
		if dir, ok := strings.CutPrefix(arg, "--state-dir="); ok {
			one = dir
		} else if arg == "--state-dir" && i+1 < len(args) {
			one = args[i+1]
		}
	}
	switch {
	case one != "" && !filepath.IsAbs(one):
		dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		if err != nil {
			return ""
		}
		return filepath.Join(dir, one, "cache")
	case one != "":
		return filepath.Join(one, "cache")
	case vars["XDG_CACHE_HOME"] != "":
		return filepath.Join(vars["XDG_CACHE_HOME"], "toolcell")
	}
	return filepath.Join(vars["HOME"], ".cache", "toolcell")
}

// processOf describes a process, as far as it can be seen.
func processOf(pid int, folder string, since time.Time) runningProcess {
	p := runningProcess{PID: pid, Since: since, Folder: folder}
	if pid == 0 {
		return p
	}
	p.Command, p.Client = commandOf(commandLine(pid)), clientAbove(pid)
	return p
}

// commandOf returns the command of a command line, without flags and arguments: they may hold code.
func commandOf(args []string) (command string) {
	for _, arg := range args[min(1, len(args)):] {
		if strings.HasPrefix(arg, "-") || len(arg) > 20 {
			break
		}
		if command = strings.TrimSpace(command + " " + arg); !hasSubcommands(arg) {
			break
		}
	}
	return console.OneLine(command, 40)
}

func hasSubcommands(command string) bool {
	return slices.Contains([]string{"images", "packages", "servers", "tools", "approvals"}, command)
}

func commandLine(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
}

// launching are programs between a client and toolcell.
var launching = []string{"sh", "dash", "bash", "env", "setsid", "uv", "uvx", "npx", "npm", "pnpm", "bunx", "mise"}

// clientAbove returns the name of the program that has started a process, such as claude.
func clientAbove(pid int) string {
	for range 8 {
		if pid = parentOf(pid); pid <= 1 {
			return ""
		}
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		name := strings.TrimSpace(string(comm))
		if args := commandLine(pid); isInterpreter(name) && len(args) > 1 && !strings.HasPrefix(args[1], "-") {
			name = filepath.Base(args[1])
		}
		if err == nil && !slices.Contains(launching, name) {
			return console.OneLine(name, 40)
		}
	}
	return ""
}

// isInterpreter reports whether the program that it runs says more than its own name.
func isInterpreter(name string) bool {
	return name == "node" || name == "bun" || name == "MainThread" || strings.HasPrefix(name, "python")
}

func parentOf(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "PPid:"); ok {
			parent, _ := strconv.Atoi(strings.TrimSpace(rest)) // 0 if it is no number
			return parent
		}
	}
	return 0
}

// byPID orders processes.
func byPID(a, b runningProcess) int { return cmp.Compare(a.PID, b.PID) }
