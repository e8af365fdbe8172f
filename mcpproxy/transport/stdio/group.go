package stdio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"golang.org/x/sys/unix"
)

// A group is a process of this host with its process group. There is no Pdeathsig: it is tied
// to the thread that forked, which Go may end at any time, and it does not reach what the
// server started. If this program is killed, its servers see the end of stdin, and the guard
// kills the groups of those that do not care.
type group struct {
	cmd   *exec.Cmd
	guard *Guard
}

// OnHost returns the Launcher that starts a server in a process group of this host, with all
// of the user's rights. The guard may be nil.
func OnHost(g *Guard) Launcher {
	return func(_ context.Context, s config.Server) (*Launched, error) { return startGroup(s, g) }
}

func startGroup(s config.Server, g *Guard) (_ *Launched, err error) {
	if s.Dir, err = filepath.Abs(s.StartDir()); err != nil {
		return nil, err
	}
	if info, err := os.Stat(s.Dir); err != nil || !info.IsDir() {
		return nil, &CommandError{fmt.Errorf(`its directory %q is not there; create it or correct "cwd" in %s`, s.Dir, s.Source)}
	}
	path := s.LookPath("", s.Command)
	if path == "" {
		return nil, &CommandError{fmt.Errorf("command %q is not there or not executable; install it or correct %s", s.Command, s.Source)}
	}
	cmd := &exec.Cmd{
		Path: path, Args: append([]string{s.Command}, s.Args...), Dir: s.Dir, Env: environment(s),
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	stdin, noStdin := cmd.StdinPipe()
	stdout, noStdout := cmd.StdoutPipe()
	stderr, noStderr := cmd.StderrPipe()
	cmd.Err = cmp.Or(noStdin, noStdout, noStderr) // which Start returns; it closes the others then
	g.start()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g.watch(cmd.Process.Pid)
	return &Launched{Child: &group{cmd, g}, Stdin: stdin.(*os.File), Stdout: stdout, Stderr: stderr}, nil
}

// environment is this process's own, since servers are trusted and need PATH,
// HOME and proxies, with the entry's on top. PWD must not lead some servers to
// another directory than the one they start in.
func environment(s config.Server) []string {
	env := append(os.Environ(), "PWD="+s.Dir)
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, k+"="+s.Env[k])
	}
	return env
}

// Await leaves the leader to be reaped: until then its id cannot be given to another process,
// so that the kill which follows can only hit this group.
func (g *group) Await() {
	for {
		err := unix.Waitid(unix.P_PID, g.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func (g *group) Signal(sig unix.Signal) { _ = unix.Kill(-g.cmd.Process.Pid, sig) }

// Reap leaves the pipes open, which cmd.Wait would close: what the group wrote is still read.
func (g *group) Reap() string {
	g.guard.forget(g.cmd.Process.Pid)
	state, err := g.cmd.Process.Wait()
	if err != nil {
		return ""
	}
	return state.String()
}
