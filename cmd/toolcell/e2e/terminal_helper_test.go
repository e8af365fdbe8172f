package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/terminaltest"
)

// A person is a user at a real terminal in which a command runs.
type person struct {
	t      *testing.T
	cmd    *exec.Cmd
	ours   *os.File // our end of the terminal
	screen *syncBuffer
	seen   int // of the screen, by sees
	ended  chan struct{}
	shown  chan struct{} // closed when nobody has the terminal any more, and all is on the screen
}

// atTerminal starts a command in a terminal of its own. Streams that it has
// already stay as they are.
func atTerminal(t *testing.T, cmd *exec.Cmd, width uint16) *person {
	t.Helper()
	ours, theirs := terminaltest.Open(t, width)
	defer theirs.Close()
	return startAt(t, cmd, ours, theirs)
}

func startAt(t *testing.T, cmd *exec.Cmd, ours, theirs *os.File) *person {
	t.Helper()
	p := &person{t: t, cmd: cmd, ours: ours, screen: &syncBuffer{}, ended: make(chan struct{}), shown: make(chan struct{})}
	if cmd.Stdin == nil {
		cmd.Stdin = theirs
	}
	if cmd.Stdout == nil {
		cmd.Stdout = theirs
	}
	if cmd.Stderr == nil {
		cmd.Stderr = theirs
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// The terminal is there as a fourth descriptor too, whatever the others are.
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, true, 3
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.shown)
		b := make([]byte, 4096)
		for {
			n, err := ours.Read(b)
			_, _ = p.screen.Write(b[:n])
			if err != nil {
				return
			}
		}
	}()
	go func() {
		defer close(p.ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("the screen:\n%s", p.screen)
		}
	})
	return p
}

// types sends keys.
func (p *person) types(keys string) {
	p.t.Helper()
	if _, err := p.ours.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// sees waits until a text is on the screen, after what was seen last, and gives
// what stands before it. A message may be broken between words.
func (p *person) sees(text string) (before string) {
	p.t.Helper()
	wanted := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(text), " ", `(?: |\r?\n  )`))
	waitFor(p.t, fmt.Sprintf("%q on the screen", text), func() bool {
		return wanted.MatchString(p.screen.String()[p.seen:])
	})
	all := p.screen.String()[p.seen:]
	at := wanted.FindStringIndex(all)
	p.seen += at[1]
	return all[:at[0]]
}

// enters types keys and waits until a text is on the screen, as sees does.
func (p *person) enters(keys, text string) {
	p.t.Helper()
	p.types(keys)
	p.sees(text)
}

// answers waits for a question and types the answer.
func (p *person) answers(question, answer string) {
	p.t.Helper()
	p.sees(question)
	p.types(answer + "\n")
}

// end waits as leaves does, and gives all that was on the screen.
func (p *person) end() string {
	p.t.Helper()
	p.leaves()
	return p.screen.String()
}

// leaves waits for the end of the command, and for all that it has written, and gives
// its exit code.
func (p *person) leaves() int {
	p.t.Helper()
	p.await("the command", p.ended)
	p.await("a process at its terminal", p.shown)
	return p.cmd.ProcessState.ExitCode()
}

// leavesWith waits as leaves does, and fails the test if the exit code is another one.
func (p *person) leavesWith(code int) {
	p.t.Helper()
	if got := p.leaves(); got != code {
		p.t.Errorf("exit code %d, want %d", got, code)
	}
}

func (p *person) await(what string, end <-chan struct{}) {
	p.t.Helper()
	select {
	case <-end:
	case <-time.After(slow(patience)):
		p.t.Fatalf("%s is still there after %s", what, slow(patience))
	}
}
