package mcpproxy

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
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
