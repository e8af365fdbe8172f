package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/doctor"
)

func TestMain(m *testing.M) { bridgetest.Main(m) }

// fakeUpstreams are servers whose tools are Go functions.
type fakeUpstreams = bridgetest.Servers

// newServer makes a server on the host's python3.
func newServer(t *testing.T, up fakeUpstreams, change func(*Options)) *Runs {
	t.Helper()
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		t.Skip("no /usr/bin/python3: apt-get install python3")
	}
	o := Options{
		Rootfs: func(context.Context, func(int64, int64, string)) (Image, error) {
			return Image{Python: python}, nil
		},
		Sandboxes: hostSandboxes{bridgetest.HostSandboxes{Dir: t.TempDir()}}, RunnerDir: bridgetest.RunnerDir(t, runner.Write), ToolsDir: filepath.Join(t.TempDir(), "tools"),
		Policy: policy.None(),
	}
	if change != nil {
		change(&o)
	}
	if o.Upstreams == nil {
		o.Upstreams = up.Proxy(t, bridgetest.Options{})
	}
	s := New(o)
	t.Cleanup(s.Close)
	return s
}

// runCode runs code with the longest timeout there is: the machine may be busy.
func runCode(t *testing.T, s *Runs, code string, servers ...string) *Result {
	t.Helper()
	return s.Do(t.Context(), Request{Code: code, Servers: servers, Timeout: 2 * time.Minute})
}

func TestRunStatuses(t *testing.T) {
	s := newServer(t, nil, nil)
	for name, tt := range map[string]struct {
		code, status, out, err string
		exit                   int
	}{
		"success":            {"print('hi')", StatusSuccess, "hi", "", 0},
		"exception":          {"print('so far'); 1/0", StatusError, "so far", "ZeroDivisionError: division by zero", 1},
		"syntax error":       {"def f(:", StatusError, "", "SyntaxError", 1},
		"exit":               {"import sys; sys.exit(7)", StatusError, "", "exit code 7", 7},
		"exit 0":             {"import sys; print(1); sys.exit()", StatusSuccess, "1", "", 0},
		"hard exit":          {"import os; os._exit(5)", StatusError, "", "exit code 5", 5},
		"hard exit 0":        {"import os; os._exit(0)", StatusSuccess, "", "", 0},
		"killed":             {"import os; os.kill(os.getpid(), 9)", StatusError, "", "signal 9", 137},
		"segfault":           {"import ctypes; ctypes.string_at(0)", StatusError, "", "signal 11", 139},
		"closes the socket":  {"import os; os.close(3); print('on')", StatusSuccess, "on", "", 0},
		"forks and exits":    {"import os\nif os.fork() == 0: os._exit(3)\nprint('parent')", StatusSuccess, "parent", "", 0},
		"input":              {"input()", StatusError, "", "EOFError", 1},
		"surrogates":         {`print("\ud800")`, StatusSuccess, `\ud800`, "", 0},
		"NUL in output":      {`print("a\0b")`, StatusSuccess, "a\x00b", "", 0},
		"bytes in output":    {`import os; os.write(1, b"\xff\xfe")`, StatusSuccess, "\uFFFD", "", 0},
		"looks like a frame": {`print('{"type":"done","exitCode":3}')`, StatusSuccess, `{"type":"done","exitCode":3}`, "", 0},
		"empty":              {" \n", StatusValidation, "", "code is empty", -1},
		"NUL in code":        {"print(1)\x00", StatusValidation, "", "NUL byte at offset 8", -1},
	} {
		t.Run(name, func(t *testing.T) {
			r := runCode(t, s, tt.code)
			if r.Status != tt.status || !strings.Contains(r.Error, tt.err) || strings.Join(r.Stdout, "\n") != tt.out {
				t.Errorf("got %+v, want status %q, error %q, output %q", r, tt.status, tt.err, tt.out)
			}
			if exit := -1; r.ExitCode != nil {
				if exit = *r.ExitCode; exit != tt.exit {
					t.Errorf("exit code %d, want %d", exit, tt.exit)
				}
			} else if tt.exit != exit {
				t.Errorf("no exit code, want %d", tt.exit)
			}
		})
	}
}

func TestTimeoutKeepsOutputSoFar(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	t.Parallel()
	s := newServer(t, nil, nil)
	r := s.Do(t.Context(), Request{Code: "print('a', end='')\nwhile True: pass", Timeout: 3 * time.Second})
	if r.Status != StatusTimeout || len(r.Stdout) != 1 || r.Stdout[0] != "a" || r.TimeoutSeconds != 3 {
		t.Errorf("got %+v", r)
	}
}

func TestTimeoutAboveMaximumIsLoweredAndSaid(t *testing.T) {
	s := newServer(t, nil, nil)
	r := s.Do(t.Context(), Request{Code: "1", Timeout: 24 * time.Hour})
	if r.IsError() || r.TimeoutSeconds != 120 || !strings.Contains(strings.Join(r.Notes, ""), "lowered to the maximum of 120 s") {
		t.Errorf("got %+v", r)
	}
}

func TestCancelEndsTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	up := fakeUpstreams{"up": {"now": func(context.Context, json.RawMessage) (string, error) {
		cancel()
		return "1", nil
	}}}
	s := newServer(t, up, nil)
	r := s.Do(ctx, Request{Code: "print('a')\nawait mcp_up.now()\nimport time; time.sleep(60)", Servers: []string{"up"}})
	if r.Status != StatusCancelled || strings.Join(r.Stdout, "") != "a" {
		t.Errorf("got %+v", r)
	}
}

func TestCloseEndsRuns(t *testing.T) {
	s := newServer(t, nil, nil)
	out := make(chan *Result)
	started := newSignal()
	go func() {
		out <- s.Do(context.Background(), Request{Code: "print('up'); import time; time.sleep(60)", Stdout: started})
	}()
	<-started.c
	s.Close()
	if r := <-out; r.Status != StatusCancelled {
		t.Errorf("got %+v", r)
	}
}

// A signal is a writer that tells of its first write.
type signal struct {
	once sync.Once
	c    chan struct{}
}

func newSignal() *signal { return &signal{c: make(chan struct{})} }

func (s *signal) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.c) })
	return len(p), nil
}

func TestOnlyGrantedServersCanBeCalled(t *testing.T) {
	tool := func(context.Context, json.RawMessage) (string, error) { return "42", nil }
	s := newServer(t, fakeUpstreams{"yes": {"f": tool}, "no": {"f": tool}}, nil)
	const call = "print(await mcp_yes.f())\ntry:\n  await mcp_no.f()\nexcept Exception as e: print(type(e).__name__, e, e.server, e.tool)"
	r := runCode(t, s, call, "yes")
	want := "42\nMCPError server \"no\" is not granted to this run: call run_python with \"no\" in its servers argument no f"
	if got := strings.Join(r.Stdout, "\n"); got != want {
		t.Errorf("got %s\n%v\nwant %s", got, r.Stderr, want)
	}
	if r := runCode(t, s, "print(await mcp_no.f())", "*"); r.IsError() || r.Stdout[0] != "42" {
		t.Errorf("with *: %+v", r)
	}
	r = runCode(t, s, "1", "unheard-of")
	if r.Status != StatusValidation || !strings.Contains(r.Error, "unheard-of") {
		t.Errorf("unknown server: %+v", r)
	}
	r = runCode(t, s, "from mcp import runtime; print(runtime.query_tool_docs_sync('no')[0].tool, runtime.describe_server('no')['cwd'])")
	if strings.Join(r.Stdout, "") != "f /srv" {
		t.Errorf("documentation of a server that was not granted: %+v", r)
	}
}

func TestCallsRunInParallel(t *testing.T) {
	var now, most atomic.Int32
	all := make(chan struct{})
	s := newServer(t, fakeUpstreams{"up": {"slow": func(ctx context.Context, _ json.RawMessage) (string, error) {
		if n := now.Add(1); n == 10 {
			most.Store(n)
			close(all)
		}
		select {
		case <-all:
		case <-ctx.Done():
		}
		return "1", nil
	}}}, nil)
	r := runCode(t, s, "import asyncio\nprint(sum(map(int, await asyncio.gather(*[mcp_up.slow() for _ in range(10)]))))", "up")
	if most.Load() != 10 || strings.Join(r.Stdout, "") != "10" {
		t.Errorf("%d at once; %+v", most.Load(), r)
	}
}

//test:alone
func TestLargeResultsAndArgumentsPassWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, size := range []int{64 << 10, 1 << 20, 16 << 20} {
		var got int
		s := newServer(t, fakeUpstreams{"up": {"echo": func(_ context.Context, args json.RawMessage) (string, error) {
			var a struct{ Text string }
			err := json.Unmarshal(args, &a)
			got = len(a.Text)
			return a.Text, err
		}}}, nil)
		code := fmt.Sprintf("t = await mcp_up.echo(text='x\\n' * %d)\nprint(len(t))", size/2)
		if r := runCode(t, s, code, "up"); got != size || strings.Join(r.Stdout, "") != fmt.Sprint(size) {
			t.Errorf("%d bytes: upstream got %d, code got %v (%s)", size, got, r.Stdout, r.Error)
		}
	}
}

func TestToolErrorCanBeCaught(t *testing.T) {
	s := newServer(t, fakeUpstreams{"up": {"bad": func(context.Context, json.RawMessage) (string, error) {
		return "", errors.New("no such issue")
	}}}, nil)
	r := runCode(t, s, "from mcp.runtime import MCPError\ntry:\n  await mcp_up.bad()\nexcept MCPError as e: print('caught', e)\nprint('on')", "up")
	if strings.Join(r.Stdout, "|") != "caught no such issue|on" {
		t.Errorf("got %+v", r)
	}
}

func TestSavedToolIsThereInTheNextRun(t *testing.T) {
	s := newServer(t, nil, nil)
	r := runCode(t, s, "from mcp import runtime\ndef double(x):\n    '''Twice x.'''\n    return 2 * x\nruntime.save_tool(double)")
	if r.IsError() {
		t.Fatalf("saving: %+v", r)
	}
	if r := runCode(t, s, "print(double(21))"); strings.Join(r.Stdout, "") != "42" {
		t.Errorf("by name: %+v", r)
	}
	if r := runCode(t, s, "from user_tools import double\nprint(double(4))"); strings.Join(r.Stdout, "") != "8" {
		t.Errorf("by import: %+v", r)
	}
}

// TestHostileFrames sends what no runner sends. Each run must end at once with
// an error, and the next must work.
func TestHostileFrames(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many Pythons")
	}
	t.Parallel()
	for name, frame := range map[string]string{
		"too long":       "\xff\xff\xff\xff",
		"not JSON":       "\x00\x00\x00\x03abc",
		"not an object":  "\x00\x00\x00\x02[]",
		"unknown type":   "\x00\x00\x00\x0e{\"type\":\"moo\"}",
		"ready again":    "\x00\x00\x00\x10{\"type\":\"ready\"}",
		"empty":          "\x00\x00\x00\x00",
		"wrong types":    "\x00\x00\x00\x0b{\"id\":\"one\"}",
		"done twice":     strings.Repeat("\x00\x00\x00\x0f{\"type\":\"done\"}", 2),
		"a reply to us":  "\x00\x00\x00\x10{\"type\":\"reply\"}",
		"start from you": "\x00\x00\x00\x10{\"type\":\"start\"}",
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, nil, nil)
			r := runCode(t, s, fmt.Sprintf("import os, time\nos.write(3, bytes(%v))\ntime.sleep(600)", pyBytes(frame)))
			if name != "done twice" && (r.Status != StatusError || !strings.Contains(r.Error, "broke the connection")) {
				t.Errorf("got %+v", r)
			}
			if r.Status == StatusTimeout {
				t.Error("the run was not ended")
			}
			if r := runCode(t, s, "print('next')"); r.IsError() {
				t.Errorf("the next run: %+v", r)
			}
		})
	}
}

func pyBytes(s string) string {
	var nums []string
	for _, b := range []byte(s) {
		nums = append(nums, fmt.Sprint(b))
	}
	return "[" + strings.Join(nums, ",") + "]"
}

func TestForgedCallsGetNothing(t *testing.T) {
	called := false
	s := newServer(t, fakeUpstreams{"no": {"f": func(context.Context, json.RawMessage) (string, error) {
		called = true
		return "", nil
	}}}, nil)
	runCode(t, s, `import os, json
def send(m):
    b = json.dumps(m).encode(); os.write(3, len(b).to_bytes(4, "big") + b)
for i, p in enumerate([
    {"method": "call_tool", "params": {"server": "no", "tool": "f"}},
    {"method": "call_tool", "params": {"server": "no", "tool": "f", "granted": True}},
    {"method": "../../x", "params": {}}, {"method": "save_tool", "params": {"name": "../x", "source": "1"}},
    {"method": "call_tool", "params": [1]}, {"method": "list_tools", "params": {"server": 5}}]):
    send({"type": "call", "id": i + 1000, **p})
import time; time.sleep(0.3)`)
	if called {
		t.Error("a forged frame called a tool that was not granted")
	}
}

func TestSandboxThatDoesNotStart(t *testing.T) {
	fail := func(err error) func(*Options) {
		return func(o *Options) {
			o.Sandboxes = startFunc(func(_ context.Context, p oci.Process) (Sandbox, error) {
				return nil, errors.Join(p.Stdout.Close(), p.Stderr.Close(), err)
			})
		}
	}
	r := runCode(t, newServer(t, nil, fail(&doctor.HintError{Err: errors.New("no user namespace"), Hint: "sudo sysctl"})), "1")
	if r.Status != StatusSandbox || r.Error != "no user namespace" || r.Hint != "sudo sysctl" {
		t.Errorf("got %+v", r)
	}
	r = runCode(t, newServer(t, nil, func(o *Options) {
		o.Sandboxes = exitsAfter(func(p oci.Process) oci.Exit {
			fmt.Fprintln(p.Stderr, "exec: no such file")
			return oci.Exit{Code: 127}
		})
	}), "1")
	if r.Status != StatusSandbox || !strings.Contains(r.Error, "no such file") {
		t.Errorf("got %+v", r)
	}
}

// TestResultOutlivesFailedCleanUp: a sandbox that cannot be removed must not
// cost the caller what the code has printed.
func TestResultOutlivesFailedCleanUp(t *testing.T) {
	s := newServer(t, nil, func(o *Options) {
		o.Sandboxes = withExit(o.Sandboxes, func(exit oci.Exit, err error) (oci.Exit, error) {
			return exit, errors.Join(err, errors.New("removing the sandbox: busy"))
		})
	})
	if r := runCode(t, s, "print('kept')"); r.Status != StatusSuccess || strings.Join(r.Stdout, "") != "kept" {
		t.Errorf("got %+v", r)
	}
}

func TestMemoryLimitIsNamed(t *testing.T) {
	r := runCode(t, newServer(t, nil, func(o *Options) {
		o.Limits.Memory = 64 << 20
		o.Sandboxes = exitsAfter(func(oci.Process) oci.Exit { return oci.Exit{Code: 137, OOM: true} })
	}), "1")
	if r.Status != StatusMemory || !strings.Contains(r.Error, "64 MiB") {
		t.Errorf("got %+v", r)
	}
}

func TestImageThatCannotBeHad(t *testing.T) {
	r := runCode(t, newServer(t, nil, func(o *Options) {
		o.Rootfs = func(context.Context, func(int64, int64, string)) (Image, error) {
			return Image{}, errors.New("no such image")
		}
	}), "1")
	if r.Status != StatusSandbox || r.Error != "no such image" {
		t.Errorf("got %+v", r)
	}
}

// TestVariablesOfTheImage: the last one of a name counts, and none disturbs the run.
func TestVariablesOfTheImage(t *testing.T) {
	s := newServer(t, nil, func(o *Options) {
		rootfs := o.Rootfs
		o.Rootfs = func(ctx context.Context, progress func(int64, int64, string)) (Image, error) {
			image, err := rootfs(ctx, progress)
			image.Env = []string{"KEPT=first", "PYTHONINSPECT=1", "PYTHONVERBOSE=1", "PYTHONPROFILEIMPORTTIME=1", "PYTHONHASHSEED=7", "KEPT=last", "odd"}
			return image, err
		}
	})
	r := runCode(t, s, "import os, sys; print(os.environ['KEPT'], os.environ['PYTHONHASHSEED'], sys.flags.inspect)")
	if r.Status != StatusSuccess || strings.Join(r.Stdout, "|") != "last 7 0" || len(r.Stderr) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestManyRunsAtOnceAreQueued(t *testing.T) {
	var now, most atomic.Int32
	s := newServer(t, nil, func(o *Options) {
		o.MaxParallel = 3
		o.Sandboxes = exitsAfter(func(oci.Process) oci.Exit {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Millisecond)
			return oci.Exit{Code: 1}
		})
	})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			runCode(t, s, "1")
		})
	}
	all.Wait()
	if most.Load() > 3 {
		t.Errorf("%d ran at once, want at most 3", most.Load())
	}
}
