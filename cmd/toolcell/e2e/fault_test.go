package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// markers tell the processes of one test from all others in the host's process
// table: a sleep of a length that no other process uses.
var markers atomic.Int64

func marker() string {
	return fmt.Sprintf("3%06d.%d", markers.Add(1), os.Getpid())
}

// sleeper is code that leaves a process in the sandbox which only force ends.
func sleeper(mark string) string {
	return "import subprocess, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('so far')\n" +
		"subprocess.Popen(['sleep', '" + mark + "'], start_new_session=True)\nsubprocess.run(['sleep', '" + mark + "'])"
}

func gone(t *testing.T, mark string) {
	t.Helper()
	waitFor(t, "the sandbox's processes to be gone", func() bool { return !alive(mark) })
}

//test:mainjob
func TestTimeoutEndsTheProcesses(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		c, mark := h.serve(t, env{"TOOLCELL_IMAGE": "host"}), marker()
		limit := seconds(5)
		r := c.call(t, map[string]any{"code": sleeper(mark), "timeout": limit})
		if r.status() != "timeout" || !strings.Contains(r.text, "so far") || !strings.Contains(r.text, fmt.Sprint(limit, " s")) {
			t.Errorf("got %s", r.text)
		}
		gone(t, mark)
		c.python(t, "print('next')").want(t, "next")
	})
}

//test:mainjob
func TestCancelEndsTheProcesses(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		c, mark := h.serve(t, env{"TOOLCELL_IMAGE": "host"}), marker()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": sleeper(mark)}})
			ended <- err
		}()
		waitFor(t, "the code to start", func() bool { return alive(mark) })
		cancel() // the SDK sends notifications/cancelled
		<-ended
		gone(t, mark)
		c.python(t, "print('next')").want(t, "next")
	})
}

// A lineReader reads lines from a pipe that can be closed.
type lineReader struct {
	*bufio.Reader
	close func()
}

// rawClient writes JSON-RPC by hand, for what no SDK does.
type rawClient struct {
	in   io.WriteCloser
	out  lineReader
	stop func() error // waits for the process
	pid  int
	sent int
}

// serveRaw starts `toolcell serve` and shakes hands with it.
func (h *host) serveRaw(t *testing.T, e env) *rawClient {
	t.Helper()
	c := h.startRaw(t, e)
	c.send(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	c.receive(t)
	c.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// startRaw starts `toolcell serve`.
func (h *host) startRaw(t *testing.T, e env) *rawClient {
	t.Helper()
	cmd := h.command(t, e, "serve")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &rawClient{in: in, out: lineReader{bufio.NewReader(out), func() { out.Close() }}, stop: cmd.Wait, pid: cmd.Process.Pid}
}

func (c *rawClient) send(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (c *rawClient) receive(t *testing.T) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// ends waits until toolcell has ended by itself, without an error.
func (c *rawClient) ends(t *testing.T) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- c.stop() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("toolcell ended with %v", err)
		}
	case <-time.After(slow(patience)):
		t.Fatal("toolcell did not end")
	}
}

func (c *rawClient) sendCode(t *testing.T, code string, servers ...string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"code": code, "servers": append([]string{}, servers...)})
	if err != nil {
		t.Fatal(err)
	}
	c.sent++
	c.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_python","arguments":%s}}`, c.sent, body))
}

//test:mainjob
func TestClosedStdinEndsEverything(t *testing.T) {
	config := fakeConfig(t, nil)
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		c, mark := h.serveRaw(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": config}), marker()
		c.sendCode(t, "print(await mcp_odd.pid())", "odd")
		upstream := upstreamPID(t, c.receive(t))
		c.sendCode(t, sleeper(mark))
		waitFor(t, "the code to start", func() bool { return alive(mark) })
		c.in.Close()
		c.ends(t)
		gone(t, mark)
		if err := syscall.Kill(upstream, 0); err == nil {
			t.Errorf("the upstream %d is still there", upstream)
		}
		if left, _ := filepath.Glob(filepath.Join(h.home, "state", "run", "instance-*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// upstreamPID reads the number that a run printed out of a raw answer.
func upstreamPID(t *testing.T, answer string) int {
	t.Helper()
	var a struct {
		Result struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil || len(a.Result.Content) == 0 {
		t.Fatalf("answer %s: %v", answer, err)
	}
	text, _, _ := strings.Cut(a.Result.Content[0].Text, "\n")
	pid, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("answer %s: %v", answer, err)
	}
	return pid
}

func TestSignalEndsEverything(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
			c, mark := h.serveRaw(t, env{"TOOLCELL_IMAGE": "host"}), marker()
			c.sendCode(t, sleeper(mark))
			waitFor(t, "the code to start", func() bool { return alive(mark) })
			if err := syscall.Kill(c.pid, sig); err != nil {
				t.Fatal(err)
			}
			_ = c.stop()
			gone(t, mark)
		}
	})
}

func TestBadInputIsAnsweredAndTheNextCallWorks(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host"})
		for name, tt := range map[string]struct {
			args         map[string]any
			status, want string
		}{
			"empty code":       {map[string]any{"code": ""}, "validation_error", "empty"},
			"code not text":    {map[string]any{"code": []int{1}}, "validation_error", "string"},
			"no code":          {map[string]any{}, "validation_error", "missing"},
			"syntax error":     {map[string]any{"code": "if"}, "error", "SyntaxError"},
			"unknown server":   {map[string]any{"code": "1", "servers": []string{"zzz"}}, "validation_error", "zzz"},
			"negative timeout": {map[string]any{"code": "1", "timeout": -1}, "validation_error", "more than 0"},
			"huge timeout":     {map[string]any{"code": "print(1)", "timeout": 1 << 60}, "success", "lowered"},
			"binary code":      {map[string]any{"code": "\x7fELF\x02\x01\x01\x00"}, "validation_error", "NUL"},
			"binary, no NUL":   {map[string]any{"code": "\x7fELF\x02\x01\x01"}, "error", "SyntaxError"},
			"lone surrogate":   {map[string]any{"code": `print('\ud800')`}, "success", `\ud800`},
			"kills itself":     {map[string]any{"code": "import os; os.kill(os.getpid(), 9)"}, "error", "signal 9"},
			"kills all":        {map[string]any{"code": "import os, subprocess\nsubprocess.Popen(['sleep', '60'])\nos.kill(-1, 9); print('on')"}, "success", "on"},
			"kills pid 1":      {map[string]any{"code": "import os\ntry: os.kill(1, 9)\nexcept PermissionError: pass\nprint('on')"}, "success", "on"},
			"closes fd 3":      {map[string]any{"code": "import os; os.close(3); print('on')"}, "success", "on"},
			"closes all":       {map[string]any{"code": "import os; print('on'); os.closerange(0, 100)"}, "success", "on"},
			"forks and exits":  {map[string]any{"code": "import os\nif os.fork(): os._exit(0)\nimport time; time.sleep(9)"}, "success", "no output"},
			"garbage on fd 3":  {map[string]any{"code": "import os, time; os.write(3, b'\\xff' * 64); time.sleep(20)"}, "error", "connection"},
			"recursion":        {map[string]any{"code": "def f(): f()\nf()"}, "error", "RecursionError"},
			"2 GB of output": { // and less where that takes minutes
				map[string]any{"code": fmt.Sprintf("import os\nfor _ in range(%d): os.write(1, b'x' * 1_000_000)\nprint('end')", 2000/slow(1)), "timeout": seconds(60)}, "success", "left out",
			},
		} {
			t.Run(name, func(t *testing.T) {
				r := c.call(t, tt.args)
				if r.status() != tt.status || !strings.Contains(r.text, tt.want) {
					t.Errorf("got %.2000s\nwant %s and %q", r.text, tt.status, tt.want)
				}
				if r.isError != (tt.status != "success") {
					t.Errorf("isError = %v with status %q", r.isError, tt.status)
				}
				c.python(t, "print('next')").want(t, "next")
			})
		}
	})
}

// TestForbiddenUserNamespaces: nothing runs, and everyone who asks gets the
// cure. It runs in a user namespace of its own, where an ordinary user can set
// the sysctl that forbids further ones, unless the host forbids them itself.
func TestForbiddenUserNamespaces(t *testing.T) {
	command, cure := (*host).command, os.Getenv("TOOLCELL_TEST_CURE")
	if cure == "" {
		unshare, err := exec.LookPath("unshare")
		if err != nil {
			t.Skip("needs unshare: apt-get install util-linux")
		}
		cure = "sysctl -w user.max_user_namespaces=15000" // as root, which it is in there
		command = func(h *host, t *testing.T, e env, args ...string) *exec.Cmd {
			c := h.command(t, e, args...)
			script := `echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"`
			c.Path, c.Args = unshare, append([]string{"unshare", "-Ur", "/bin/sh", "-c", script, "sh"}, c.Args...)
			return c
		}
	}
	onOrdinaryHosts(t, func(t *testing.T, h *host) {
		for _, args := range [][]string{{"doctor"}, {"doctor", "--json"}, {"exec", "--image", "host", "-c", "1"}} {
			out, err := command(h, t, nil, args...).CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != exitHost {
				t.Errorf("%s: %v, want exit code %d\n%s", args, err, exitHost, out)
			}
			if !strings.Contains(string(out), cure) {
				t.Errorf("%s: no %q in\n%s", args, cure, out)
			}
		}
		// A server that is gone could tell the client nothing.
		c := connect(t, command(h, t, env{"TOOLCELL_IMAGE": "host"}, "serve"))
		if r := c.python(t, "print(1)"); r.status() != "sandbox_error" || !strings.Contains(r.text, cure) {
			t.Errorf("serve: %s", r.text)
		}
	})
}

// TestCoveredProc runs where no /proc can be mounted, as in most containers:
// the sandbox has none then, and never the one of the host.
func TestCoveredProc(t *testing.T) {
	if _, err := os.Stat(coverProc[0]); err != nil {
		t.Skip("needs unshare: apt-get install util-linux")
	}
	onOrdinaryHosts(t, func(t *testing.T, h *host) {
		covered := *h
		covered.wrap = coverProc
		for code, want := range map[string]string{
			"import os; print(os.getuid(), os.listdir('/proc'))":                                    "65534 []\n",
			"import ctypes, os; ctypes.CDLL(None).umount2(b'/proc', 2); print(os.listdir('/proc'))": "[]\n",
		} {
			out, errs, exit := covered.run(t, nil, "exec", "-v", "--image", "host", "-c", code)
			if out != want || exit != 0 || !strings.Contains(errs, "no /proc") {
				t.Errorf("%s: exit %d, %q, want %q and a word of it\n%s", code, exit, out, want, errs)
			}
		}
	})
}
