package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/rootfs/rootfstest"
)

// The end-to-end tests start the real, static binary and talk to it as an MCP
// client or a shell would, on every kind of host that can be had here
// (hosts_helper_test.go).
//
// They can be told more by the environment:
//
//	TOOLCELL_TEST_BINARY   the binary to test, where any user can start it, instead of building one
//	TOOLCELL_TEST_SLOW     how many times slower than usual this machine is, such as 10 under an emulator
//	TOOLCELL_TEST_HOSTS    the kinds of host to test on, all that can be had unless set
//	TOOLCELL_TEST_LACKS    what this machine cannot give, as "HOST:IDS HOST:CGROUP", or "nothing"
//	TOOLCELL_TEST_PYTHONS  the versions of Python to test on, as .ci/images.sh knows them
//	TOOLCELL_TEST_INSTEAD  the image to test on where a test would take the host's own Python
//	TOOLCELL_TEST_STARTS   the ways to start sandboxes to test, "container fork" unless set
//	TOOLCELL_TEST_CURE     that the host forbids sandboxes, and the command that allows them

// bin is the binary under test, shared the folder that holds whatever any user
// must be able to reach.
var bin, shared string

// The exit codes that docs/shell.md promises.
const (
	exitOK    = 0
	exitFail  = 1
	exitUsage = 2
	exitHost  = 3
)

// slow stretches the time that something may take on a slow machine.
func slow(d time.Duration) time.Duration {
	if n, err := strconv.Atoi(os.Getenv("TOOLCELL_TEST_SLOW")); err == nil && n > 1 {
		return d * time.Duration(n)
	}
	return d
}

// seconds gives a time limit for a run in which Python has to start first.
func seconds(n int) int { return int(slow(time.Duration(n)*time.Second) / time.Second) }

func TestMain(m *testing.M) {
	if name := os.Getenv(fakeServerEnv); name != "" {
		fakeServer(name)
		return
	}
	if stage := os.Getenv(elsewhereEnv); stage != "" {
		elsewhere(stage)
		return
	}
	code, err := func() (int, error) {
		dir, err := os.MkdirTemp("", "toolcell-e2e-")
		if err != nil {
			return 1, err
		}
		defer os.RemoveAll(dir)
		if err := os.Chmod(dir, 0o755); err != nil {
			return 1, err
		}
		shared, bin = dir, os.Getenv("TOOLCELL_TEST_BINARY")
		if bin != "" {
			return m.Run(), nil
		}
		bin = filepath.Join(dir, "toolcell")
		build := exec.Command("go", "build", "-tags", buildTags(), "-ldflags", "-s -w -extldflags -static", "-o", bin, "..")
		build.Env = append(os.Environ(), "CGO_ENABLED=1")
		if out, err := build.CombinedOutput(); err != nil {
			return 1, fmt.Errorf("building toolcell: %w\n%s", err, out)
		}
		return m.Run(), nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// An env is a set of variables for one process.
type env map[string]string

// command prepares the binary to be started on the host, with the few
// variables that MCP clients pass on.
func (h *host) command(t *testing.T, e env, args ...string) *exec.Cmd {
	t.Helper()
	args = append(slices.Clone(h.wrap), append([]string{bin}, args...)...)
	c := exec.Command(args[0], args[1:]...)
	c.Dir = h.home
	c.Env = []string{"HOME=" + h.home, "PATH=" + h.path, "TOOLCELL_STATE_DIR=" + filepath.Join(h.home, "state"), "LANG=C.UTF-8"}
	if slow(1) > 1 { // room for code that is to come to its end
		c.Env = append(c.Env, "TOOLCELL_TIMEOUT="+slow(30*time.Second).String(), "TOOLCELL_MAX_TIMEOUT="+slow(2*time.Minute).String())
	}
	if h.start != "" {
		c.Env = append(c.Env, "TOOLCELL_START="+h.start)
	}
	for k, v := range e {
		if image := os.Getenv("TOOLCELL_TEST_INSTEAD"); k == "TOOLCELL_IMAGE" && v == "host" && image != "" {
			v = image
		}
		c.Env = append(c.Env, k+"="+v)
	}
	if h.cred != nil {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: h.cred}
	}
	return c
}

// shell prepares a shell script to be run on the host, in which "$@" is the
// binary with its arguments.
func (h *host) shell(t *testing.T, e env, script string, args ...string) *exec.Cmd {
	t.Helper()
	c := h.command(t, e)
	c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", script, "sh", bin}, args...)
	return c
}

// run runs the binary to its end and gives what it wrote and its exit code.
func (h *host) run(t *testing.T, e env, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	c := h.command(t, e, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	ctx, cancel := context.WithTimeout(t.Context(), slow(2*time.Minute))
	defer cancel()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Process.Kill() })
	err := c.Wait()
	stop()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// A client is an MCP client of a served binary.
type client struct {
	*mcp.ClientSession
	cmd    *exec.Cmd
	stderr *syncBuffer
}

// serve starts `toolcell serve` and connects to it.
func (h *host) serve(t *testing.T, e env) *client {
	t.Helper()
	return connect(t, h.command(t, e, "serve"))
}

// connect starts a command that serves, and connects to it.
func connect(t *testing.T, cmd *exec.Cmd) *client {
	t.Helper()
	return connectAs(t, cmd, nil, nil)
}

// connectAs is connect for a client that can do more, or speaks an older protocol.
func connectAs(t *testing.T, cmd *exec.Cmd, o *mcp.ClientOptions, s *mcp.ClientSessionOptions) *client {
	t.Helper()
	c := &client{cmd: cmd, stderr: &syncBuffer{}}
	c.cmd.Stderr = c.stderr
	var err error
	c.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "e2e"}, o).
		Connect(t.Context(), &mcp.CommandTransport{Command: c.cmd}, s)
	if err != nil {
		t.Fatalf("connecting: %v\n%s", err, c.stderr)
	}
	t.Cleanup(func() {
		c.Close()
		if t.Failed() {
			t.Logf("stderr of toolcell:\n%s", c.stderr)
		}
	})
	return c
}

// A reply is a result of run_python as a client sees it.
type reply struct {
	text    string
	fields  map[string]any
	isError bool
}

func (r reply) status() string { s, _ := r.fields["status"].(string); return s }

// python calls run_python.
func (c *client) python(t *testing.T, code string, servers ...string) reply {
	t.Helper()
	args := map[string]any{"code": code}
	if servers != nil {
		args["servers"] = servers
	}
	return c.call(t, args)
}

func (c *client) call(t *testing.T, args map[string]any) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), slow(3*time.Minute))
	defer cancel()
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: args})
	if err != nil {
		t.Fatalf("calling run_python: %v\n%s", err, c.stderr)
	}
	fields, _ := res.StructuredContent.(map[string]any)
	return reply{res.Content[0].(*mcp.TextContent).Text, fields, res.IsError}
}

// want fails the test unless the call succeeded with just this output.
func (r reply) want(t *testing.T, text string) {
	t.Helper()
	if r.isError || strings.Split(r.text, "\nnote: ")[0] != text {
		t.Errorf("got %s\nwant %s", r.text, text)
	}
}

// A syncBuffer is a bytes.Buffer that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// patience is how long a test waits for what takes a moment on an idle machine.
// No test may fail because the machine is busy.
const patience = 2 * time.Minute

// waitFor polls until ok, and fails the test when its patience is over.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(slow(patience)); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %s in vain for %s", slow(patience), what)
		}
	}
}

// alive reports whether a process of this host has the marker in its command
// line.
func alive(marker string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(marker)) {
			return true
		}
	}
	return false
}

// registry starts a real registry that has the test images, and gives what to
// put in front of a tag such as "3.14-slim".
func registry(t *testing.T, user, password string, versions ...string) (prefix string) {
	t.Helper()
	layouts := map[string]string{}
	for _, v := range versions {
		layouts[v] = rootfstest.Layout(t, v)
	}
	addr := rootfstest.StartRegistry(t, user, password)
	for v, layout := range layouts {
		rootfstest.PushLayoutAs(t, layout, addr+"/library/python:"+v+"-slim", user, password)
	}
	return addr + "/library/python:"
}

// children gives all processes that stem from one.
func children(pid int) (all []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		b, _ := os.ReadFile(file)
		for f := range strings.FieldsSeq(string(b)) {
			if child, err := strconv.Atoi(f); err == nil {
				all = append(append(all, child), children(child)...)
			}
		}
	}
	return all
}

// statusNumber reads a number from /proc/PID/status.
func statusNumber(status []byte, name string) int {
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return -1
}

// buildTags returns the build tags of this test, which the Makefile has.
func buildTags() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-tags" {
				return s.Value
			}
		}
	}
	return ""
}
