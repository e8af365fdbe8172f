package stdio

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// running reports whether a process runs; a zombie does not.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return err == nil && !bytes.HasPrefix(rest, []byte("Z")) && !bytes.HasPrefix(rest, []byte("X"))
}

func TestGuardForgetsGroupsThatEnded(t *testing.T) {
	// One group is taken back, two stay under guard; the guard's end kills
	// these alone.
	start := func() *exec.Cmd {
		cmd := exec.Command("sleep", "600")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
	free, one, two := start().Process.Pid, start().Process.Pid, start().Process.Pid
	g := &Guard{}
	g.start()
	for _, pid := range []int{one, free, two} {
		g.watch(pid)
	}
	g.forget(free)
	g.forget(1 << 30) // was never there
	g.Close()
	if !running(free) {
		t.Error("a group that was taken back was killed")
	}
	for deadline := time.Now().Add(2 * time.Minute); running(one) || running(two); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the guarded groups still run")
		}
	}
}
