package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A proc is a process that cannot be taken for a later one with its id.
type proc struct {
	pid   int
	start string
}

// procOf gives the process that has an id now.
func procOf(pid int) proc {
	b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, rest, _ := strings.Cut(string(b), ") ")
	if f := strings.Fields(rest); len(f) > 19 && f[0] != "Z" {
		return proc{pid, f[19]} // starttime is field 22 (proc(5))
	}
	return proc{pid, ""}
}

func (p proc) alive() bool { return p.start != "" && procOf(p.pid) == p }

// sandboxIDs gives the sandboxes that a state folder knows of.
func sandboxIDs(h *host) (ids []string) {
	dirs, _ := filepath.Glob(filepath.Join(h.home, "state", "run", "instance-*", "*"))
	for _, dir := range dirs {
		if id := filepath.Base(dir); id != "lock" {
			ids = append(ids, id)
		}
	}
	return ids
}

// kill9 ends a server as nothing can be caught, and gives what it had started.
func (c *rawClient) kill9(t *testing.T) []proc {
	t.Helper()
	// Stopped first, so that it starts nothing after we have looked.
	if err := syscall.Kill(c.pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var all []proc
	for _, pid := range children(c.pid) {
		all = append(all, procOf(pid))
	}
	if err := syscall.Kill(c.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	return all
}

// wantSwept starts the program once more and looks whether anything is left of
// sandboxes of the past.
func wantSwept(t *testing.T, h *host, ids []string) {
	t.Helper()
	if out, errs, code := h.run(t, env{"TOOLCELL_IMAGE": "host"}, "exec", "-c", "print('next')"); code != 0 || out != "next\n" {
		t.Errorf("the next start: %q, %s", out, errs)
	}
	if left, _ := filepath.Glob(filepath.Join(h.home, "state", "run", "instance-*")); len(left) > 0 {
		t.Errorf("not swept: %v", left)
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains(ids, d.Name()) {
			t.Errorf("a cgroup is left: %s", path)
		}
		return nil
	})
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || bytes.Contains(mounts, []byte(h.home)) || bytes.Contains(mounts, []byte("/run/toolcell")) {
		t.Errorf("mounts are left: %v\n%s", err, mounts)
	}
	left, _ := os.ReadDir("/run/toolcell")
	left = slices.DeleteFunc(left, func(e fs.DirEntry) bool { // what all servers share
		return e.Name() == "uids" || strings.HasPrefix(e.Name(), "proc-")
	})
	if len(left) > 0 {
		t.Errorf("left in /run/toolcell: %v", left)
	}
}

func TestKilledServerLeavesNoSandbox(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serveRaw(t, env{"TOOLCELL_IMAGE": "host"})
		var marks []string
		for range 5 {
			marks = append(marks, marker())
			c.sendCode(t, sleeper(marks[len(marks)-1]))
		}
		waitFor(t, "the code to start", func() bool { return !slices.ContainsFunc(marks, func(m string) bool { return !alive(m) }) })
		ids := sandboxIDs(h)
		if len(ids) == 0 {
			t.Error("the state folder has none")
		}
		started := c.kill9(t)
		waitFor(t, "the sandboxes to be gone", func() bool { return !slices.ContainsFunc(started, proc.alive) })
		for _, mark := range marks {
			gone(t, mark) // also those that are no children of the server
		}
		_ = c.stop()
		wantSwept(t, h, ids)
	})
}

// TestServerKilledWhileItStartsASandbox kills at moments at which libcontainer
// has made this much of a sandbox or that.
func TestServerKilledWhileItStartsASandbox(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		var ids []string
		var started []proc
		for range 20 {
			c := h.serveRaw(t, env{"TOOLCELL_IMAGE": "host"})
			c.sendCode(t, "import time; time.sleep(60)")
			time.Sleep(rand.N(150 * time.Millisecond))
			started = append(started, c.kill9(t)...)
			ids = append(append(ids, sandboxIDs(h)...), fmt.Sprintf("probe-%d", c.pid))
			_ = c.stop()
		}
		waitFor(t, "the sandboxes to be gone", func() bool { return !slices.ContainsFunc(started, proc.alive) })
		wantSwept(t, h, ids)
		t.Logf("%d sandboxes and %d processes were begun", len(ids)-20, len(started))
	})
}

func TestTwoServersShareAStateFolder(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		e := env{"TOOLCELL_IMAGE": "host"}
		a, b := h.serveRaw(t, e), h.serve(t, e)
		a.sendCode(t, sleeper(marker()))
		mark, ended := marker(), make(chan reply, 1)
		go func() {
			ended <- b.python(t, "import subprocess, time\np = subprocess.Popen(['sleep', '"+mark+"'])\ntime.sleep(1)\nprint(p.poll())")
		}()
		waitFor(t, "the code to start", func() bool { return alive(mark) && len(sandboxIDs(h)) >= 2 })
		a.kill9(t)
		_ = a.stop()
		h.serve(t, e).python(t, "print('a third sweeps')").want(t, "a third sweeps")
		(<-ended).want(t, "None")
		b.python(t, "print('still')").want(t, "still")
	})
}

func TestKilledUpstream(t *testing.T) {
	c := firstHost(t).serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": fakeConfig(t, nil)})
	r := c.python(t, "from mcp.runtime import MCPError\na = await mcp_odd.pid()\n"+
		"try: await mcp_odd.die()\nexcept MCPError as e: print(e.server, e.tool, e)\nprint(a != await mcp_odd.pid())", "odd")
	for _, want := range []string{"odd die ", `server "odd"`, "signal: killed", "may have taken effect", "\nTrue"} {
		if r.isError || !strings.Contains(r.text, want) {
			t.Errorf("no %q in %s", want, r.text)
		}
	}
	r = c.python(t, "await mcp_odd.die()", "odd")
	if r.status() != "error" || !strings.Contains(r.text, "MCPError") {
		t.Errorf("uncaught: %s", r.text)
	}
	c.python(t, "print(int(await mcp_odd.pid()) > 0)", "odd").want(t, "True")
}

// sandboxProcesses gives the first process of a sandbox and the one that runs
// the code, which has started a process that is marked.
func sandboxProcesses(server int, mark string) (first, code int) {
	for _, pid := range children(server) {
		at := filepath.Join("/proc", strconv.Itoa(pid))
		if command, _ := os.ReadFile(at + "/cmdline"); !bytes.Contains(command, []byte(mark)) {
			continue
		}
		status, _ := os.ReadFile(at + "/status")
		code = statusNumber(status, "PPid")
		status, _ = os.ReadFile(filepath.Join("/proc", strconv.Itoa(code), "status"))
		first = statusNumber(status, "PPid")
		status, _ = os.ReadFile(filepath.Join("/proc", strconv.Itoa(first), "status"))
		if !regexp.MustCompile(`(?m)^NSpid:.*\t1$`).Match(status) {
			return 0, 0
		}
	}
	return first, code
}

func TestSandboxKilledFromOutside(t *testing.T) {
	t.Parallel()
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host"})
		seconds := int(slow(8*time.Second) / time.Second) // for one that is stopped; others end before
		for name, tt := range map[string]struct {
			sig          syscall.Signal
			first        bool
			status, want string
		}{
			"the code's process killed":  {syscall.SIGKILL, false, "error", "signal 9"},
			"the first process killed":   {syscall.SIGKILL, true, "error", "signal 9"},
			"the code's process stopped": {syscall.SIGSTOP, false, "timeout", fmt.Sprint(seconds, " s")},
			"the first process stopped":  {syscall.SIGSTOP, true, "timeout", fmt.Sprint(seconds, " s")},
		} {
			if tt.sig == syscall.SIGSTOP && h.name == "user-one-id" {
				continue // nothing of it depends on the ids, and it takes its time
			}
			limit := seconds
			if tt.sig == syscall.SIGKILL {
				limit = int(slow(patience) / time.Second)
			}
			mark, ended := marker(), make(chan reply, 1)
			go func() { ended <- c.call(t, map[string]any{"code": sleeper(mark), "timeout": limit}) }()
			waitFor(t, "the code to start", func() bool { return alive(mark) })
			first, code := sandboxProcesses(c.cmd.Process.Pid, mark)
			if first == 0 || code == 0 {
				t.Fatalf("first process %d, code's process %d", first, code)
			}
			victim := code
			if tt.first {
				victim = first
			}
			if err := syscall.Kill(victim, tt.sig); err != nil {
				t.Fatal(err)
			}
			if r := <-ended; r.status() != tt.status || !strings.Contains(r.text, tt.want) || !strings.Contains(r.text, "so far") {
				t.Errorf("%s: %s", name, r.text)
			}
			gone(t, mark)
			c.python(t, "print('next')").want(t, "next")
		}
	})
}

// TestKilledServerWithoutItsStateLeavesNoCgroups, as a CI job leaves it that removes its
// folders: the next server, with another state folder, removes them.
func TestKilledServerWithoutItsStateLeavesNoCgroups(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		state := filepath.Join(h.home, "gone-"+marker())
		c := h.serveRaw(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_STATE_DIR": state})
		mark := marker()
		c.sendCode(t, sleeper(mark))
		waitFor(t, "the code to run", func() bool { return alive(mark) })
		var ids []string
		dirs, _ := filepath.Glob(filepath.Join(state, "run", "instance-*", "*", "state.json"))
		for _, dir := range dirs {
			ids = append(ids, filepath.Base(filepath.Dir(dir)))
		}
		started := c.kill9(t)
		if err := os.RemoveAll(state); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the end of all processes", func() bool { return !slices.ContainsFunc(started, proc.alive) })
		gone(t, mark)
		_ = c.stop()
		wantSwept(t, h, ids)
	})
}
