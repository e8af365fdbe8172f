package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// installed returns the launcher as npm installs it. The program beside it is a script of
// the shell, or missing.
func installed(t *testing.T, script string) string {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("needs Node.js: apt-get install nodejs")
	}
	modules := filepath.Join(t.TempDir(), "node_modules")
	m := newPack(t).manifest("toolcell")
	m.Optional = map[string]string{"@toolcell/linux-x64": m.Version, "@toolcell/linux-arm64": m.Version}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(modules, "toolcell/bin/toolcell.js")
	files := map[string][]byte{main: launcher, filepath.Join(modules, "toolcell/package.json"): text}
	if script != "" {
		platform := filepath.Join(modules, "@toolcell/linux-"+npmCPUs[runtime.GOARCH])
		files[filepath.Join(platform, "bin/toolcell")] = []byte("#!/bin/sh\n" + script)
		files[filepath.Join(platform, "package.json")] = []byte("{}")
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return main
}

// node returns Node.js with the launcher. What is in before runs first.
func node(t *testing.T, main, before string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	preload := filepath.Join(t.TempDir(), "before.js")
	if err := os.WriteFile(preload, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("node", append([]string{"--require", preload, main}, args...)...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	return c, &out
}

// child has a Node.js without execve, where the program is a child.
const child = "process.execve = undefined;"

func TestLauncherPassesArgumentsInputAndExitCode(t *testing.T) {
	main := installed(t, `printf '%s|' "$@"; cat; exit 7`)
	for name, before := range map[string]string{"child": child, "this Node.js": ""} {
		c, out := node(t, main, before, "exec", "-c", "a b", "")
		c.Stdin = strings.NewReader("typed")
		err := c.Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 7 {
			t.Errorf("%s: %v, want exit code 7", name, err)
		}
		if out.String() != "exec|-c|a b||typed" {
			t.Errorf("%s: it prints %q", name, out)
		}
	}
}

func TestLauncherIsReplacedWhereThatIsPossible(t *testing.T) {
	main := installed(t, "echo started as a child")
	before := "process.execve = (file, args, env) => { console.log(JSON.stringify([file, args, env.HOME])); process.exit(0) };"
	c, out := node(t, main, before, "serve", "--name=x")
	c.Env = append(os.Environ(), "HOME=/home/dev")
	if err := c.Run(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	program := filepath.Join(filepath.Dir(main), "../../@toolcell/linux-"+npmCPUs[runtime.GOARCH], "bin/toolcell")
	want, err := json.Marshal([]any{program, []string{program, "serve", "--name=x"}, "/home/dev"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(out.String()); got != string(want) {
		t.Errorf("execve has %s, want %s", got, want)
	}
}

func TestLauncherPassesSignalsOn(t *testing.T) {
	main := installed(t, `
for s in HUP INT QUIT TERM USR1 USR2; do trap "echo got $s; exit 3" $s; done
echo ready
while :; do sleep 0.05; done`)
	names := map[syscall.Signal]string{
		syscall.SIGHUP: "HUP", syscall.SIGINT: "INT", syscall.SIGQUIT: "QUIT",
		syscall.SIGTERM: "TERM", syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2",
	}
	for s := range names {
		c, r := started(t, main)
		if err := c.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		out, err := r.ReadString('\n')
		if err != nil {
			t.Error(err)
		}
		if err := c.Wait(); c.ProcessState.ExitCode() != 3 || out != "got "+names[s]+"\n" {
			t.Errorf("after %v: %v, and it printed %q", s, err, out)
		}
	}
}

// started starts the launcher, with a child, and returns when that is ready for signals.
// The reader has what comes after that.
func started(t *testing.T, main string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	c, _ := node(t, main, child)
	c.Stdout, c.Stderr = nil, os.Stderr
	pipe, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(pipe)
	if line, err := r.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return c, r
}

func TestLauncherDiesOfTheSignalThatItsProgramDiedOf(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGABRT} {
		c, out := node(t, installed(t, fmt.Sprintf("kill -%d $$", s)), child)
		c.Run()
		if got := c.ProcessState.Sys().(syscall.WaitStatus); !got.Signaled() || got.Signal() != s {
			t.Errorf("it ended with %v, want %v; it printed %q", c.ProcessState, s, out)
		}
	}
}

func TestLauncherSaysWhatToDo(t *testing.T) {
	for _, tt := range []struct{ name, before, want string }{
		{
			"optional dependencies were left out", "",
			"toolcell: the package @toolcell/linux-" + npmCPUs[runtime.GOARCH] + " is missing, in which the program is; npm leaves it out with --omit=optional\n" +
				"hint: npm install -g --include=optional toolcell@0.1.0, or with npx: npx --include=optional toolcell@0.1.0\n",
		},
		{
			"another system", "Object.defineProperty(process, 'platform', {value: 'darwin'}); Object.defineProperty(process, 'arch', {value: 'arm64'});",
			"toolcell: this is darwin on arm64, and toolcell runs on Linux (arm64 and x64)\nhint: on Windows use it within WSL 2, elsewhere in a Linux virtual machine\n",
		},
		{
			"another processor", "Object.defineProperty(process, 'platform', {value: 'linux'}); Object.defineProperty(process, 'arch', {value: 'riscv64'});",
			"toolcell: this is linux on riscv64, and toolcell runs on Linux (arm64 and x64)\n",
		},
	} {
		c, out := node(t, installed(t, ""), tt.before, "version")
		c.Run()
		if c.ProcessState.ExitCode() != 1 || out.String() != tt.want {
			t.Errorf("%s: exit code %d, %q; want 1, %q", tt.name, c.ProcessState.ExitCode(), out, tt.want)
		}
	}
}

func TestLauncherSaysThatItsProgramCannotBeRun(t *testing.T) {
	main := installed(t, "exit 0")
	program := filepath.Join(filepath.Dir(main), "../../@toolcell/linux-"+npmCPUs[runtime.GOARCH], "bin/toolcell")
	if err := os.Chmod(program, 0o644); err != nil {
		t.Fatal(err)
	}
	c, out := node(t, main, child)
	c.Run()
	if c.ProcessState.ExitCode() != 1 || !strings.Contains(out.String(), program+" cannot be run: EACCES") {
		t.Errorf("exit code %d, %q", c.ProcessState.ExitCode(), out)
	}
}
