package stdio

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"golang.org/x/sys/unix"
)

const (
	// stopGrace is how long a server may take to exit after its stdin is closed, and again
	// after SIGTERM.
	stopGrace = time.Second
	// drainGrace is how long the pipes are still read after the server has ended. A
	// descendant that left the group would keep them open for ever.
	drainGrace = 500 * time.Millisecond
)

// Process is one server's child process with its process group and pipes.
// There is no Pdeathsig: it is tied to the thread that forked, which Go may
// end at any time, and it does not reach what the server started. If this
// program is killed, its servers see the end of stdin, and the guard kills the
// groups of those that do not care.
type Process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout io.ReadCloser
	output *outputTail
	guard  *Guard
	isDown chan struct{} // exited or read is closed, whichever came first
	once   sync.Once
	exited chan struct{} // the leader ended and its whole group was killed
	done   chan struct{} // and it was reaped, its stderr read, its pipes closed
	read   chan struct{} // closed by the reader of stdout when it is at the end
	state  *os.ProcessState

	mu       sync.Mutex // held while signaling
	gone     bool       // the process id may be another's: signal no more
	signaled bool       // it was still running when we wanted it gone
}

// OverPipes returns the transport over a process that is only its pipes, for tests that play
// a server. It cannot be stopped or waited for.
func OverPipes(stdin, stdout *os.File, notes *message.Notifications) *Transport {
	return newTransport(&Process{
		stdin: stdin, stdout: stdout, output: newOutputTail("pipes", redact.New(config.Server{}), slog.New(slog.DiscardHandler)),
		read: make(chan struct{}), isDown: make(chan struct{}),
	}, notes)
}

// Start starts s in a process group of its own. The caller calls Stop in the end.
func Start(s config.Server, hidden *redact.Redactor, g *Guard, log *slog.Logger, notes *message.Notifications) (_ *Transport, err error) {
	if s.Dir, err = filepath.Abs(s.StartDir()); err != nil {
		return nil, err
	}
	if info, err := os.Stat(s.Dir); err != nil || !info.IsDir() {
		return nil, &CommandError{fmt.Sprintf(`its directory %q is not there; create it or correct "cwd" in %s`, s.Dir, s.Source)}
	}
	path := s.LookPath("", s.Command)
	if path == "" {
		return nil, &CommandError{fmt.Sprintf("command %q is not there or not executable; install it or correct %s", s.Command, s.Source)}
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
	p := &Process{
		cmd: cmd, stdin: stdin.(*os.File), stdout: stdout, output: newOutputTail(s.Name, hidden, log), guard: g,
		exited: make(chan struct{}), done: make(chan struct{}), read: make(chan struct{}), isDown: make(chan struct{}),
	}
	g.watch(cmd.Process.Pid)
	go p.watch(stderr)
	return newTransport(p, notes), nil
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

// watch waits for the end of the leader, kills what it left in its group, and
// reaps it. The order matters: until the leader is reaped its id cannot be
// given to another process, so the kill can only hit this group.
func (p *Process) watch(stderr io.ReadCloser) {
	defer contain.Recover("waiting for the end of a server", func(error) { p.abandon(stderr) })
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		defer contain.Recover("reading what a server logs", func(error) {
			_, _ = io.Copy(io.Discard, stderr) // a full pipe would stop the server
		})
		p.output.readFrom(stderr)
	}()
	awaitExit(p.cmd.Process.Pid)
	p.signalGroup(unix.SIGKILL)
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	p.guard.forget(p.cmd.Process.Pid)
	close(p.exited)
	p.markDown()
	late := time.NewTimer(drainGrace)
	defer late.Stop()
	for _, ended := range []chan struct{}{logged, p.read} {
		select {
		case <-ended:
		case <-late.C:
			late.Reset(0)
		}
	}
	_ = p.cmd.Wait() // it closes the pipes; a bad exit status is in ProcessState
	p.state = p.cmd.ProcessState
	<-logged
	close(p.done)
}

// abandon kills a process that nothing watches any more, and wakes those that wait for its
// end.
func (p *Process) abandon(stderr io.Closer) {
	p.signalGroup(unix.SIGKILL)
	p.markDown()
	for _, f := range []io.Closer{stderr, p.stdout, p.stdin} {
		f.Close()
	}
	for _, ended := range []chan struct{}{p.exited, p.done} {
		select {
		case <-ended:
		default:
			close(ended)
		}
	}
}

func (p *Process) markDown() { p.once.Do(func() { close(p.isDown) }) }

// Down implements the link of package transport.
func (p *Process) Down() <-chan struct{} { return p.isDown }

// Expired implements the link of package transport: a process that ends by itself is at fault.
func (p *Process) Expired() bool { return false }

// awaitExit blocks until the child ended, and leaves it to be reaped.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func (p *Process) signalGroup(sig unix.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		_ = unix.Kill(-p.cmd.Process.Pid, sig)
	}
}

// Stop ends the process: end of stdin first, as the MCP specification asks,
// then SIGTERM and SIGKILL to the whole group. It returns when all is gone, and
// may be called at any time and more than once.
func (p *Process) Stop() {
	p.stdin.Close()
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		select {
		case <-p.exited:
		case <-time.After(stopGrace):
			p.mu.Lock()
			p.signaled = p.signaled || !p.gone
			p.mu.Unlock()
			p.signalGroup(sig)
		}
	}
	<-p.done
}

// writeNow writes as much of a line as the server takes at once, and returns how much that
// was. Nearly always it is all, which saves a goroutine (BenchmarkCallThroughProxy: 38 µs
// with it, 44 without).
func (p *Process) writeNow(line []byte) (n int, err error) {
	conn, err := p.stdin.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = conn.Write(func(fd uintptr) bool {
		n, failed = unix.Write(int(fd), line)
		return true
	})
	switch {
	case err != nil: // an error of package poll, which is not exported
		return 0, os.ErrClosed
	case failed == nil:
		return n, nil
	case errors.Is(failed, unix.EAGAIN) || errors.Is(failed, unix.EINTR):
		return 0, nil
	}
	return 0, os.NewSyscallError("write", failed)
}

// tookInput reports whether the server has read everything written to it so
// far. A slow starter (npx, uvx, an image pull) has not; a server that hangs on
// a request has.
func (p *Process) tookInput() bool {
	conn, err := p.stdin.SyscallConn()
	if err != nil {
		return false
	}
	unread := -1
	_ = conn.Control(func(fd uintptr) {
		if n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ); err == nil {
			unread = n
		}
	})
	return unread == 0
}

// WaitClosed implements the link of package transport.
func (p *Process) WaitClosed() { <-p.done }

// Ended waits for the end of the process and describes it, with the last output.
func (p *Process) Ended() error {
	<-p.done
	p.mu.Lock()
	signaled := p.signaled
	p.mu.Unlock()
	if signaled { // the signal in its state is ours
		return p.output.appendTo(errors.New("closed its output and did not exit; it was ended"))
	}
	if p.state == nil { // abandoned
		return p.output.appendTo(errors.New("was ended after an internal error"))
	}
	return p.output.appendTo(errors.New("exited: " + p.state.String()))
}
