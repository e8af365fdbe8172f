package stdio

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
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

// Process is one server's Child with its pipes, whatever kind it is.
type Process struct {
	child   Child
	stdin   *os.File
	stdout  io.ReadCloser
	stderr  io.ReadCloser
	explain func(since time.Time) string // may be nil
	began   time.Time                    // to be launched
	output  *outputTail
	isDown  chan struct{} // exited or read is closed, whichever came first
	once    sync.Once
	exited  chan struct{} // the child has ended
	done    chan struct{} // and its stderr was read, its pipes closed
	read    chan struct{} // closed by the reader of stdout when it is at the end
	how     string        // Reap's

	mu       sync.Mutex // held while signaling
	gone     bool       // it has ended: signal no more
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

// Start has launch start s, and takes its messages. ctx is the launcher's alone: what has
// started outlives it. The caller calls Stop in the end.
func Start(ctx context.Context, s config.Server, launch Launcher, hidden *redact.Redactor, log *slog.Logger, notes *message.Notifications) (*Transport, error) {
	began := time.Now()
	l, err := launch(ctx, s)
	if err != nil {
		return nil, err
	}
	p := &Process{
		child: l.Child, stdin: l.Stdin, stdout: l.Stdout, stderr: l.Stderr, explain: l.Explain, began: began, output: newOutputTail(s.Name, hidden, log),
		exited: make(chan struct{}), done: make(chan struct{}), read: make(chan struct{}), isDown: make(chan struct{}),
	}
	go p.watch()
	return newTransport(p, notes), nil
}

// watch waits for the end of the child, and ends what it left.
func (p *Process) watch() {
	defer contain.Recover("waiting for the end of a server", func(error) { p.abandon() })
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		defer contain.Recover("reading what a server logs", func(error) {
			_, _ = io.Copy(io.Discard, p.stderr) // a full pipe would stop the server
		})
		p.output.readFrom(p.stderr)
	}()
	p.child.Await()
	p.signal(unix.SIGKILL)
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	p.how = p.child.Reap()
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
	p.closePipes()
	<-logged
	close(p.done)
}

func (p *Process) closePipes() {
	for _, f := range []io.Closer{p.stderr, p.stdout, p.stdin} {
		f.Close()
	}
}

// abandon kills a child that nothing watches any more, and wakes those that wait for its
// end.
func (p *Process) abandon() {
	contain.Func("ending a server", func() { // it may be the child that fails
		defer p.closePipes()
		p.signal(unix.SIGKILL)
	})()
	p.markDown()
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

// signal signals a child that has not ended.
func (p *Process) signal(sig unix.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		p.child.Signal(sig)
	}
}

// Stop ends the process: end of stdin first, as the MCP specification asks,
// then SIGTERM and SIGKILL to the child. It returns when all is gone, and
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
			p.signal(sig)
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
	if p.how == "" { // abandoned
		return p.output.appendTo(errors.New("was ended after an internal error"))
	}
	return p.output.appendTo(errors.New(endInWords(p.how)))
}

// endInWords adds a verb to the words of an os.ProcessState. Those of a sandbox have one.
func endInWords(how string) string {
	if strings.HasPrefix(how, "exit status ") || strings.HasPrefix(how, "signal: ") {
		return "exited: " + how
	}
	return how
}
