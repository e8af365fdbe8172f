package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/terminaltest"
)

// elsewhereEnv makes this test binary a process that runs a command in a terminal which
// has nothing to do with the test: no process above the command is one of the test's.
const elsewhereEnv = "TOOLCELL_TEST_ELSEWHERE"

// inOtherTerminal runs a command as a user in another terminal does. Its exit code is
// written to the terminal as "exit N.".
func inOtherTerminal(t *testing.T, cmd *exec.Cmd) *person {
	t.Helper()
	ours, theirs := terminaltest.Open(t, 100)
	defer theirs.Close()
	exe, err := fakeBinary()
	if err != nil {
		t.Fatal(err)
	}
	starter := exec.Command(exe, cmd.Args...)
	starter.Dir, starter.SysProcAttr = cmd.Dir, cmd.SysProcAttr
	starter.Env = append(slices.Clone(cmd.Env), elsewhereEnv+"=start")
	starter.ExtraFiles = []*os.File{theirs}
	p := &person{t: t, cmd: starter, ours: ours, screen: &syncBuffer{}, ended: make(chan struct{})}
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := ours.Read(b)
			_, _ = p.screen.Write(b[:n])
			if err != nil {
				return
			}
		}
	}()
	if err := starter.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the other screen:\n%s", p.screen)
		}
	})
	return p
}

// exits waits for the end of the command, and returns its exit code.
func (p *person) exits() int {
	p.t.Helper()
	p.sees("exit ")
	code, err := strconv.Atoi(strings.TrimSpace(p.sees(".")))
	if err != nil {
		p.t.Fatal(err)
	}
	return code
}

// elsewhere is what the helper processes do: the first starts the second in a session of
// its own and ends, and the second waits for that and runs the command.
func elsewhere(stage string) {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), elsewhereEnv+"=")
	if stage == "start" {
		terminal := os.NewFile(3, "terminal")
		cmd.Path, cmd.Args = "/proc/self/exe", os.Args
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", elsewhereEnv, os.Getpid()))
		cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	for strconv.Itoa(os.Getppid()) == stage {
		time.Sleep(time.Millisecond)
	}
	var failed *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &failed) {
		fmt.Println(err)
	}
	fmt.Printf("exit %d.\n", cmd.ProcessState.ExitCode())
}
