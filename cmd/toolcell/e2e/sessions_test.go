package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// in calls run_python in a session.
func (c *client) in(t *testing.T, session, code string) reply {
	t.Helper()
	return c.call(t, map[string]any{"code": code, "session": session})
}

// noted fails the test unless the result says this in a note.
func (r reply) noted(t *testing.T, want string) {
	t.Helper()
	if !strings.Contains(r.text, "\nnote: "+want) {
		t.Errorf("got %s\nwant a note %q", r.text, want)
	}
}

// TestSessionKeepsTheSandbox through many calls, and says when it is gone.
//
//test:mainjob
func TestSessionKeepsTheSandbox(t *testing.T) {
	t.Parallel()
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_MEMORY": "160m", "TOOLCELL_SESSIONS": "2"})
		c.wantStart(t, h)
		c.in(t, "a", "import math\nx = [1]\nopen('f', 'w').write('kept')\ndef f(): return 1 / 0\nprint('made')").want(t, "made")
		c.in(t, "a", "x.append(2); print(x, math.floor(2.5), open('f').read())").want(t, "[1, 2] 2 kept")
		if r := c.in(t, "a", "f()"); !strings.Contains(r.text, "def f(): return 1 / 0") || r.fields["session"] != "continued" {
			t.Errorf("a traceback through two runs: %s", r.text)
		}
		c.in(t, "b", "print('x' in globals(), __import__('os').path.exists('f'))").want(t, "False False")
		c.python(t, "print('x' in globals())").want(t, "False")
		c.in(t, "a", "import asyncio; q = asyncio.Queue(); await q.put(5)").want(t, "Success (no output)")
		c.in(t, "a", "print(await q.get())").want(t, "5")
		// Background threads and processes of the code go on with the next run.
		c.in(t, "a", "import subprocess, sys; p = subprocess.Popen(['/bin/sh', '-c', 'while :; do echo y; done'], stdout=subprocess.DEVNULL)\n"+
			"import threading; n = 0\ndef count():\n  global n\n  while n < 10**9: n += 1\nthreading.Thread(target=count, daemon=True).start()").want(t, "Success (no output)")
		c.in(t, "a", "print(p.poll(), n > 0); p.kill(); p.wait(); n = 10**9").want(t, "None True")

		ended := `this ended session "a": its variables and files are gone`
		for _, tt := range []struct {
			code    string
			timeout time.Duration
			status  string
			why     string
		}{
			{"while True: pass", time.Second, "timeout", "a run was stopped after 1 s"},
			{"b = bytearray(400 << 20)", time.Minute, "memory_limit", "a run needed more than the limit of 160 MiB of memory"},
			{"import os; os._exit(7)", time.Minute, "error", "the process ended with exit code 7"},
		} {
			c.in(t, "a", "x = 1")
			r := c.call(t, map[string]any{"code": tt.code, "session": "a", "timeout": int(slow(tt.timeout).Seconds())})
			if r.status() != tt.status || r.fields["session"] != "ended" {
				t.Errorf("%s: got %s", tt.code, r.text)
			}
			r.noted(t, ended)
			r = c.in(t, "a", "print('x' in globals())")
			r.want(t, "False")
			if slow(1) == 1 {
				r.noted(t, `session "a" was ended: `+tt.why)
			}
		}
		c.in(t, "a", "from mcp import runtime; runtime.end_session(); print('last')").want(t, "last")
		r := c.in(t, "a", "import sys; y = 1; sys.exit()")
		r.noted(t, `session "a" was ended: the code ended it`)
		c.in(t, "a", "print(y)").want(t, "1")
		// There is room for two: b is the one that waits for longest.
		c.in(t, "c", "print(3)").want(t, "3")
		r = c.in(t, "b", "print(4)")
		r.want(t, "4")
		r.noted(t, `session "b" was ended: another one needed its place`)
	})
}

// TestSessionReadsWhatWasLeftOut of the result of its last run.
func TestSessionReadsWhatWasLeftOut(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host"})
		r := c.in(t, "a", "import sys\nfor i in range(300_000): print(i)\nfor i in range(9_000): print('é', i, file=sys.stderr)")
		uri, _ := r.files()["stdout.txt"]["uri"].(string)
		for _, path := range []string{"/tmp/toolcell/stdout.txt", "/tmp/toolcell/stderr.txt"} {
			if want := ", and in the next run of this session " + path + "\n"; !strings.Contains(r.text, want) {
				t.Errorf("the text does not have %q", want)
			}
		}
		if !strings.Contains(r.text, "left out; all of it: "+uri+", and") {
			t.Error("the text does not have the URI")
		}
		c.in(t, "a", "a, b = (open('/tmp/toolcell/std' + x).read().splitlines() for x in ('out.txt', 'err.txt'))\n"+
			"print(a == [str(i) for i in range(300_000)], b == [f'é {i}' for i in range(9_000)])").want(t, "True True")
		c.in(t, "a", "print(open('/tmp/toolcell/stdout.txt').read(3))").want(t, "0\n1")
		// What would fill /tmp is only kept outside.
		r = c.in(t, "a", "for i in range(33): print('x' * (1 << 20))")
		if strings.Contains(r.text, "/tmp/toolcell") || r.files()["stdout.txt"] == nil {
			t.Errorf("a long stream: %.200s", r.text)
		}
		// /tmp is the code's own, and a run does not depend on it.
		r = c.in(t, "a", "import os; os.makedirs('/tmp/toolcell', exist_ok=True); os.chdir('/tmp/toolcell')\n"+
			"for n in os.listdir(): os.unlink(n)\nos.mkdir('stdout.txt'); print('x' * 100_000)")
		r = c.in(t, "a", "print(1)")
		if r.status() != "success" || !strings.Contains(r.text, "/tmp/toolcell/stdout.txt could not be written: [Errno 21] Is a directory") {
			t.Errorf("a folder is in the way: %s", r.text)
		}
		// Nothing else that is in the way is opened, or waited for.
		for _, put := range []string{"os.mkfifo('stdout.txt')", "os.symlink('/dev/full', 'stdout.txt')", "os.chdir('..'); os.rename('toolcell', 'old'); os.mkfifo('toolcell')"} {
			c.in(t, "a", "import os, shutil; shutil.rmtree('/tmp/toolcell'); os.mkdir('/tmp/toolcell'); os.chdir('/tmp/toolcell'); "+put+"; print('x' * 100_000)")
			c.in(t, "a", "print(len(open('/tmp/toolcell/stdout.txt').read()))").want(t, "100001")
		}
		// Without a session, or at the end of one, there is no next run.
		for _, r := range []reply{c.python(t, "print('x' * 100_000)"), c.in(t, "a", "print('x' * 100_000)\nexit()")} {
			if !strings.Contains(r.text, "left out; all of it: toolcell://") || strings.Contains(r.text, "in the next run") {
				t.Errorf("no run can follow: %.200s", r.text)
			}
		}
	})
}

// TestIdleSessionsTakeNoPlace: as many runs go on beside them as without, and
// sandboxes are made ready as before.
func TestIdleSessionsTakeNoPlace(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SESSIONS": "8"})
		for i := range 8 {
			c.in(t, fmt.Sprint("s", i), fmt.Sprintf("x = %d", i)).want(t, "Success (no output)")
		}
		var all sync.WaitGroup
		for i := range 24 {
			all.Go(func() { c.python(t, fmt.Sprintf("print(%d)", i)).want(t, fmt.Sprint(i)) })
		}
		for i := range 8 {
			all.Go(func() { c.in(t, fmt.Sprint("s", i), "print(x)").want(t, fmt.Sprint(i)) })
		}
		all.Wait()
	})
}

// leaves starts a process that keeps running, with a mark. It waits for a line of it: one
// that is frozen within execve(2) has no command line, and so no mark.
const leaves = "import subprocess; p = subprocess.Popen(['/bin/sh', '-c', 'echo; while :; do sleep 1; done; : %s'], stdout=subprocess.PIPE); _ = p.stdout.readline()"

// spins leaves processes that never rest, with a mark.
const spins = "import subprocess, time\nleft = [subprocess.Popen(['/bin/sh', '-c', 'while :; do :; done; : %s'], start_new_session=True) for _ in range(8)]"

// processorTime returns what the marked processes of a server's sandboxes have used,
// in ticks.
func processorTime(server int, mark string) (ticks int) {
	for _, pid := range children(server) {
		at := filepath.Join("/proc", strconv.Itoa(pid))
		command, _ := os.ReadFile(filepath.Join(at, "cmdline"))
		stat, _ := os.ReadFile(filepath.Join(at, "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 12 && bytes.Contains(command, []byte(mark)) {
			user, _ := strconv.Atoi(f[11])
			system, _ := strconv.Atoi(f[12])
			ticks += user + system
		}
	}
	return ticks
}

// TestSessionStandsStillBetweenRuns: what earlier runs have left takes nothing from
// the host until the next run, in which it goes on.
func TestSessionStandsStillBetweenRuns(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host"})
		c.wantStart(t, h)
		mark := marker()
		used := func() int { return processorTime(c.cmd.Process.Pid, mark) }
		c.in(t, "a", fmt.Sprintf(spins, mark)).want(t, "Success (no output)")
		for range 2 {
			waitFor(t, "the session to stand still", func() bool {
				before := used()
				time.Sleep(time.Second)
				return used() == before
			})
			before := used()
			c.in(t, "a", "time.sleep(1); print([p.poll() for p in left])").want(t, "["+strings.Repeat("None, ", 7)+"None]")
			if used() == before {
				t.Error("nothing went on in the next run")
			}
		}
		c.in(t, "a", "for p in left: p.kill(); p.wait()").want(t, "Success (no output)")
	})
}

// TestFrozenSessionEndsWithItsServer, though nothing in it can notice that.
func TestFrozenSessionEndsWithItsServer(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host"})
		mark := marker()
		c.in(t, "a", fmt.Sprintf(spins, mark)).want(t, "Success (no output)")
		time.Sleep(100 * time.Millisecond) // it is frozen after the answer
		if !alive(mark) {
			t.Fatal("the run has left nothing")
		}
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		gone(t, mark)
	})
}

// TestSessionsEndWithTheServer, in whatever way that ends, with what their code
// left running.
func TestSessionsEndWithTheServer(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		image, seen := env{"TOOLCELL_IMAGE": "host"}, h.seeSandboxes(t)
		begin := func(mark string) *client {
			c := h.serve(t, image)
			for _, name := range []string{"a", "b"} {
				code := fmt.Sprintf(leaves, mark)
				c.in(t, name, code).want(t, "Success (no output)")
			}
			waitFor(t, "what the code started", func() bool { return alive(mark) })
			return c
		}
		mark := marker()
		c := begin(mark)
		if err := c.Close(); err != nil {
			t.Errorf("closing the server: %v", err)
		}
		if alive(mark) {
			t.Error("a closed server has left a process")
		}
		mark = marker()
		c = begin(mark)
		killed := h.instances()
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the end of what a killed server's sessions run", func() bool { return !alive(mark) })
		_ = c.Close() // waits for the end of the server itself, which holds its lock until then
		c = h.serve(t, image)
		r := c.in(t, "a", "print(1)")
		r.want(t, "1")
		r.noted(t, `session "a" was ended: the server that kept it has ended`)
		if err := c.Close(); err != nil {
			t.Errorf("closing the server: %v", err)
		}
		// A start that finds processes still ending leaves their folder to the next one.
		waitFor(t, "the killed server's folder to be removed", func() bool {
			there := func(folder string) bool { return slices.Contains(h.instances(), folder) }
			if slices.ContainsFunc(killed, there) {
				h.must(t, image, "exec", "-c", "1")
			}
			return !slices.ContainsFunc(killed, there)
		})
		ids := seen()
		var left []string
		defer func() {
			if len(left) > 0 {
				t.Errorf("left are %q", left)
			}
		}()
		waitFor(t, "nothing to be left", func() bool {
			left = h.traces(t, ids)
			return len(left) == 0
		})
	})
}

// TestIdleSessionEndsByItself and its processes with it.
func TestIdleSessionEndsByItself(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SESSION_IDLE_TIMEOUT": "2s"})
		mark := marker()
		c.in(t, "a", fmt.Sprintf(leaves, mark))
		waitFor(t, "what the code started", func() bool { return alive(mark) })
		waitFor(t, "the end of the session", func() bool { return !alive(mark) })
		c.in(t, "a", "1").noted(t, `session "a" was ended: no call came for 2s`)
	})
}

func TestSessionArgumentIsChecked(t *testing.T) {
	h := firstHost(t)
	c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SESSIONS": "0"})
	for _, session := range []any{7, []string{"a"}, strings.Repeat("x", 65), "a\x00b"} {
		if r := c.call(t, map[string]any{"code": "1", "session": session}); r.status() != "validation_error" || !strings.Contains(r.text, "session") {
			t.Errorf("session %v: %s", session, r.text)
		}
	}
	if r := c.in(t, "a", "1"); r.status() != "validation_error" || !strings.Contains(r.text, "switched off") {
		t.Errorf("got %s", r.text)
	}
	for _, session := range []any{nil, ""} {
		c.call(t, map[string]any{"code": "print(1)", "session": session}).want(t, "1")
	}
	tools, err := c.ListTools(t.Context(), &mcp.ListToolsParams{})
	if err != nil || !strings.Contains(fmt.Sprint(tools.Tools[0].InputSchema), "session") {
		t.Errorf("the schema: %v, %v", tools, err)
	}
	for _, bad := range []string{"-1", "many", "65", "1.5"} {
		if _, errs, code := h.run(t, env{"TOOLCELL_SESSIONS": bad}, "exec", "-c", "1"); code != exitUsage || !strings.Contains(errs, "TOOLCELL_SESSIONS") {
			t.Errorf("%s: exit code %d, %s", bad, code, errs)
		}
	}
}
