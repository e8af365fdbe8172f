package consent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTheTerminalOfAnAnswer: that of the process that the answer came through, unless it
// is a form, which is shown elsewhere.
func TestTheTerminalOfAnAnswer(t *testing.T) {
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err := errors.Join(err, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("pts/%d", number)
	theirs, err := os.OpenFile("/dev/"+name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	start := func(terminal bool) (pid int) {
		cmd := exec.Command("cat")
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		cmd.ExtraFiles = []*os.File{theirs}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: terminal, Ctty: 3}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		return cmd.Process.Pid
	}
	at, without := start(true), start(false)
	for name, tt := range map[string]struct {
		by   string
		pid  int
		want string
	}{
		"typed":        {"terminal", at, name},
		"approvals":    {"toolcell approvals", at, name},
		"a form":       {"form", at, ""},
		"no terminal":  {"toolcell approvals", without, ""},
		"it has ended": {"toolcell approvals", 1 << 30, ""}, // no process has such a number
	} {
		q := Question{Answer: Answer{By: tt.by, PID: tt.pid}}
		if pid, terminal := q.From(); pid != tt.pid || terminal != tt.want {
			t.Errorf("%s: got process %d at %q, want the terminal %q", name, pid, terminal, tt.want)
		}
	}
}
