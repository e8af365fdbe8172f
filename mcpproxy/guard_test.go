package mcpproxy

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hostProgram is a program that uses a Proxy with a server that ignores the end
// of its stdin and has a child. It prints their ids and waits to be killed.
func hostProgram() {
	exe, _ := os.Executable()
	s := config.Server{Name: "fake", Alias: "fake", Command: exe, Env: map[string]string{"FAKE_SERVER": "raw", "FAKE_STAY": "1"}}
	p := New(config.Config{Servers: []config.Server{s}}, Options{})
	for _, tool := range []string{"get-pid", "spawn"} {
		answer, err := p.Call(context.Background(), CallRequest{Server: "fake", Tool: tool})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		var res struct{ StructuredContent struct{ PID int } }
		_ = json.Unmarshal(answer.JSON, &res)
		fmt.Println(res.StructuredContent.PID)
	}
	time.Sleep(time.Hour)
}

func TestKilledProgramLeavesNoServerThatIgnoresIt(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "FAKE_SERVER=host")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var pids []int
	in := bufio.NewScanner(out)
	for len(pids) < 2 && in.Scan() {
		var pid int
		if _, err := fmt.Sscan(in.Text(), &pid); err != nil {
			t.Fatal(in.Text())
		}
		pids = append(pids, pid)
	}
	if len(pids) != 2 || slices.ContainsFunc(pids, func(pid int) bool { return !alive(pid) }) {
		t.Fatalf("pids = %v", pids)
	}
	// Its whole process group, as some clients do it.
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "end of the server and its child", func() bool { return !slices.ContainsFunc(pids, alive) })
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
	g := &guard{}
	for _, pid := range []int{one, free, two} {
		g.watch(pid)
	}
	g.forget(free)
	g.forget(1 << 30) // was never there
	g.close()
	if !alive(free) {
		t.Error("a group that was taken back was killed")
	}
	eventually(t, "end of the guarded", func() bool { return !alive(one) && !alive(two) })
}

func TestProxyWithoutProcessesStartsNoGuard(t *testing.T) {
	p := proxyFor(t, Options{}, web(t, config.HTTP, answers(nil)))
	mustCall(t, p, "echo", `{}`)
	if p.guard.cmd != nil {
		t.Errorf("it runs %s", strings.Join(p.guard.cmd.Args, " "))
	}
}
