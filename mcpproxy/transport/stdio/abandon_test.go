package stdio

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
)

// pipedCommand returns a command in a process group, 0 for one of its own, with its pipes.
func pipedCommand(t *testing.T, group int, name string, args ...string) (cmd *exec.Cmd, stdin io.WriteCloser, stdout, stderr io.ReadCloser) {
	t.Helper()
	cmd = exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: group}
	var errs [3]error
	stdin, errs[0] = cmd.StdinPipe()
	stdout, errs[1] = cmd.StdoutPipe()
	stderr, errs[2] = cmd.StderrPipe()
	if err := errors.Join(append(errs[:], cmd.Start())...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, stdin, stdout, stderr
}

// TestAbandonedServerIsKilled, and nobody waits for it or keeps its pipes.
func TestAbandonedServerIsKilled(t *testing.T) {
	t.Parallel()
	cmd, stdin, stdout, stderr := pipedCommand(t, 0, "sleep", "600")
	p := &Process{
		child: &group{cmd: cmd}, stdin: stdin.(*os.File), stdout: stdout, stderr: stderr, output: newOutputTail("x", redact.New(config.Server{}), slog.New(slog.DiscardHandler)),
		isDown: make(chan struct{}), exited: make(chan struct{}), done: make(chan struct{}),
	}
	for range 2 {
		p.abandon()
	}
	if !isClosed(p.Down()) || !isClosed(p.exited) || !isClosed(p.done) {
		t.Error("someone waits for ever")
	}
	for name, f := range map[string]io.Closer{"stdin": stdin, "stdout": stdout, "stderr": stderr} {
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("its %s was open: %v", name, err)
		}
	}
	p.Stop()
	if err := p.Ended(); err.Error() != "was ended after an internal error" {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Error(err)
	}
}

// brokenInput is the input of a guard that fails when a server is taken back.
type brokenInput struct {
	io.WriteCloser
	ended, fail chan struct{}
}

func (b brokenInput) Write(line []byte) (int, error) {
	if strings.HasPrefix(string(line), "- ") {
		close(b.ended)
		<-b.fail
		panic("the guard fails")
	}
	return len(line), nil
}

// TestFailureAfterTheEndHitsNobodyElse: nobody waits for ever, and no signal is sent any
// more, since the id of the group may be another's.
func TestFailureAfterTheEndHitsNobodyElse(t *testing.T) {
	t.Parallel()
	input := brokenInput{ended: make(chan struct{}), fail: make(chan struct{})}
	fail := sync.OnceFunc(func() { close(input.fail) })
	defer fail()
	w := serve(t, shell("cat", "sh"), &Guard{started: true, input: input}, slog.DiscardHandler)
	_ = w.Close()
	<-input.ended
	_, other, says, _ := pipedCommand(t, pidOf(w), "cat")
	fail()
	<-w.Down()
	w.WaitClosed()
	w.Stop()
	if _, err := io.WriteString(other, "here\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(says).ReadString('\n'); line != "here\n" {
		t.Errorf("another process of the group was ended: %q, %v", line, err)
	}
}
