package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/oci"
)

// newSessionServer gives a server that keeps sessions.
func newSessionServer(t *testing.T, up fakeUpstreams, change func(*Options)) *Runs {
	t.Helper()
	s := newServer(t, up, func(o *Options) {
		o.Sessions = 2
		if change != nil {
			change(o)
		}
	})
	t.Cleanup(s.Close)
	return s
}

// in runs code in a session.
func (s *Runs) in(t *testing.T, session, code string) *Result {
	t.Helper()
	return s.Do(t.Context(), Request{Code: code, Session: session})
}

// says fails the test unless the run printed this and nothing else.
func (r *Result) says(t *testing.T, want string) *Result {
	t.Helper()
	if got := strings.Join(append(slices.Clone(r.Stdout), r.Stderr...), "\n"); got != want || r.IsError() {
		t.Errorf("got %s: %q %s\nwant %q", r.Status, got, r.Error, want)
	}
	return r
}

// notes fails the test unless exactly these are the result's notes.
func (r *Result) notes(t *testing.T, want ...string) *Result {
	t.Helper()
	if !slices.Equal(r.Notes, want) {
		t.Errorf("notes are %q, want %q", r.Notes, want)
	}
	return r
}

// onPython makes a server run on an interpreter of this machine.
func onPython(path string) func(*Options) {
	return func(o *Options) {
		o.Rootfs = func(context.Context, func(int64, int64, string)) (Image, error) { return Image{Python: path}, nil }
	}
}

func TestSessionKeepsWhatRunsMake(t *testing.T) {
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) { testKeeping(t, newSessionServer(t, nil, onPython(py.Path))) })
}

func testKeeping(t *testing.T, s *Runs) {
	for i, step := range []struct{ code, want string }{
		{"import math, asyncio\nx = 20\ndef f(): return x + 1\nprint('a')", "a"},
		{"x += 1; print(f(), math.pi > 3)", "22 True"},
		{"open('kept.txt', 'w').write('on disk')\nqueue = asyncio.Queue()\nawait queue.put(7)", ""},
		{"print(open('kept.txt').read(), await queue.get())", "on disk 7"},
		{"task = asyncio.ensure_future(asyncio.sleep(0, 'late'))", ""},
		{"print(await task)", "late"},
		{"async def stop(): raise SystemExit(0)\nasync def main():\n  asyncio.ensure_future(stop())\n  await asyncio.sleep(1)\n  print('went on')\nawait main()", ""},
		{"await asyncio.sleep(0); print('a new loop')", "a new loop"},
		{"import sys; n = sys.stdout.write('no newline')", "no newline"},
		{"class P: pass\nimport pickle; print(type(pickle.loads(pickle.dumps(P()))) is P, __name__)", "True __main__"},
	} {
		r := s.in(t, "a", step.code).says(t, step.want).notes(t)
		if want := map[bool]string{true: sessionNew, false: sessionContinued}[i == 0]; r.Session != want {
			t.Errorf("run %d: the session is %q, want %q", i, r.Session, want)
		}
	}
	s.in(t, "b", "print('x' in globals())").says(t, "False")
	s.in(t, "", "print('x' in globals())").says(t, "False")
}

func TestSessionRunsAreLikeFreshOnes(t *testing.T) {
	s := newSessionServer(t, nil, nil)
	if r := s.in(t, "a", "def f():\n    return 1 / zero\n[1, 2]"); r.Result != "[1, 2]" {
		t.Errorf("the value is %q", r.Result)
	}
	r := s.in(t, "a", "zero = 0\n\nf()")
	for _, want := range []string{"return 1 / zero", "line 3", "f()", "ZeroDivisionError"} {
		if !strings.Contains(strings.Join(r.Stderr, "\n"), want) {
			t.Errorf("the traceback lacks %q:\n%s", want, strings.Join(r.Stderr, "\n"))
		}
	}
	if r.Status != StatusError || *r.ExitCode != 1 || r.Session != sessionContinued {
		t.Errorf("%s, exit %d, session %s", r.Status, *r.ExitCode, r.Session)
	}
	if r := s.in(t, "a", "x ="); !strings.HasPrefix(r.Error, "SyntaxError") {
		t.Errorf("error %q", r.Error)
	}
	const warns = "import warnings\nwarnings.warn('old')"
	for range 2 {
		if r := s.in(t, "a", warns); !strings.Contains(strings.Join(r.Stderr, "\n"), "UserWarning: old") {
			t.Errorf("no warning: %q", r.Stderr)
		}
	}
	s.in(t, "a", "print(zero)").says(t, "0").notes(t)
}

// TestSysExitEndsTheRunOnly: as in a notebook, where exit() does end all.
func TestSysExitEndsTheRunOnly(t *testing.T) {
	s := newSessionServer(t, nil, nil)
	r := s.in(t, "a", "import sys; x = 1; sys.exit(3)")
	if r.Status != StatusError || *r.ExitCode != 3 {
		t.Errorf("%s: exit code %v", r.Status, r.ExitCode)
	}
	s.in(t, "a", "print(x)").says(t, "1").notes(t)
}

func TestEndOfASessionIsSaid(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many Pythons")
	}
	for name, tt := range map[string]struct {
		code   string
		status string
		now    bool // said at once, since the code did not ask for it
		why    string
	}{
		"the code ends it":       {"from mcp import runtime; runtime.end_session(); print('x')", StatusSuccess, false, "the code ended it"},
		"exit":                   {"exit()", StatusSuccess, false, "the code ended it"},
		"quit with a code":       {"quit(4)", StatusError, false, "the code ended it"},
		"os._exit":               {"import os; os._exit(5)", StatusError, true, "the process ended with exit code 5"},
		"a crash":                {"import os; os.kill(os.getpid(), 11)", StatusError, true, "the process was ended by signal 11"},
		"a timeout":              {"while True: pass", StatusTimeout, true, "a run was stopped after 4 s"},
		"a frame of no runner's": {`import os, time; os.write(3, b"\0\0\0\2{}"); time.sleep(20)`, StatusError, true, "a run broke the connection to the host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSessionServer(t, nil, nil)
			s.in(t, "a", "x = 1").notes(t)
			r := s.Do(t.Context(), Request{Code: tt.code, Session: "a", Timeout: 4 * time.Second})
			if r.Status != tt.status || r.Session != sessionEnded {
				t.Errorf("%s: %s; the session is %q", r.Status, r.Error, r.Session)
			}
			if tt.now {
				r.notes(t, `this ended session "a": its variables and files are gone`)
			} else {
				r.notes(t)
			}
			r = s.in(t, "a", "print('x' in globals())").says(t, "False")
			r.notes(t, `session "a" was ended: `+tt.why+`; this is a new one, without its variables and files`)
			s.in(t, "a", "1").notes(t)
		})
	}
}

// TestSessionKilledBetweenRuns, as by the kernel when the host is out of memory: the
// next call of its name learns of the end.
func TestSessionKilledBetweenRuns(t *testing.T) {
	s := newSessionServer(t, nil, nil)
	pid, err := strconv.Atoi(s.in(t, "a", "import os; os.getpid()").notes(t).Result)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.awaitSessions(t, 0)
	s.in(t, "a", "1").notes(t, `session "a" was ended: the process was ended by signal 9; this is a new one, without its variables and files`)
}

// TestSessionStandsStillBetweenRuns: its threads go on with the next run.
func TestSessionStandsStillBetweenRuns(t *testing.T) {
	s := newSessionServer(t, nil, nil)
	count := filepath.Join(t.TempDir(), "count")
	s.in(t, "a", fmt.Sprintf(`
import threading, time
def write():
    n = 0
    while True:
        n += 1
        with open(%q, "w") as f: f.write("x" * n)
        time.sleep(0.001)
threading.Thread(target=write, daemon=True).start()`, count)).notes(t)
	size := func() int64 {
		info, err := os.Stat(count)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	for range 2 {
		s.in(t, "a", "time.sleep(0.1)")
		for end := time.Now().Add(time.Minute); ; {
			before := size()
			time.Sleep(200 * time.Millisecond)
			if size() == before {
				break
			}
			if time.Now().After(end) {
				t.Fatal("it goes on between two runs")
			}
		}
	}
}

// awaitSessions waits until there are n.
func (s *Runs) awaitSessions(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		s.sessions.mu.Lock()
		have := len(s.sessions.live)
		s.sessions.mu.Unlock()
		if have == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("there are %d sessions, want %d", have, n)
		}
	}
}

func TestIdleSessionEnds(t *testing.T) {
	s := newSessionServer(t, nil, func(o *Options) { o.SessionIdle = 50 * time.Millisecond })
	s.in(t, "a", "x = 1")
	s.awaitSessions(t, 0)
	s.in(t, "a", "print('x' in globals())").says(t, "False").
		notes(t, `session "a" was ended: no call came for 50ms; this is a new one, without its variables and files`)
}

func TestOldestIdleSessionMakesRoom(t *testing.T) {
	s := newSessionServer(t, nil, nil)
	for _, name := range []string{"a", "b", "a", "c"} { // two are kept: b has to go
		s.in(t, name, "x = 1")
	}
	s.in(t, "a", "print(x)").says(t, "1").notes(t)
	s.in(t, "b", "1").notes(t, `session "b" was ended: another one needed its place, and 2 are kept at most; this is a new one, without its variables and files`)
}

// busySession starts a run in a session that continues until it is ended.
func busySession(t *testing.T, s *Runs, entered chan struct{}, name string) {
	t.Helper()
	done := make(chan *Result, 1)
	go func() {
		// Not the test's context, which ends before this run is waited for.
		done <- s.Do(context.Background(), Request{Code: "await mcp_up.hold()", Session: name, Servers: []string{"up"}})
	}()
	<-entered
	t.Cleanup(func() {
		if r := <-done; r.IsError() {
			t.Errorf("the run that was waited for: %s: %s", r.Status, r.Error)
		}
	})
}

// holding are upstreams with a tool that does not answer before it is let go.
func holding() (up fakeUpstreams, entered, letGo chan struct{}) {
	entered, letGo = make(chan struct{}), make(chan struct{})
	return fakeUpstreams{"up": {"hold": func(ctx context.Context, _ json.RawMessage) (string, error) {
		entered <- struct{}{}
		select {
		case <-letGo:
		case <-ctx.Done():
		}
		return "ok", nil
	}}}, entered, letGo
}

func TestBusySessionsRefuse(t *testing.T) {
	up, entered, letGo := holding()
	s := newSessionServer(t, up, nil)
	busySession(t, s, entered, "a")
	busySession(t, s, entered, "b")
	t.Cleanup(func() { close(letGo) })
	if r := s.in(t, "c", "1"); r.Status != StatusValidation || !strings.Contains(r.Error, "all 2 sessions that may be kept are at work") {
		t.Errorf("%s: %s", r.Status, r.Error)
	}
	r := s.Do(t.Context(), Request{Code: "1", Session: "a", Timeout: 50 * time.Millisecond})
	if r.Status != StatusTimeout || !strings.Contains(r.Error, "is at work on another call") {
		t.Errorf("%s: %s", r.Status, r.Error)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := s.Do(ctx, Request{Code: "1", Session: "a"}); r.Status != StatusCancelled {
		t.Errorf("%s: %s", r.Status, r.Error)
	}
	s.in(t, "", "print(1)").says(t, "1")
}

// TestSessionRunsOneAfterTheOther: many calls at once neither mix nor are lost.
func TestSessionRunsOneAfterTheOther(t *testing.T) {
	s := newSessionServer(t, nil, nil)
	s.in(t, "a", "seen = []")
	const calls = 20
	results := make(chan *Result, calls)
	for i := range calls {
		go func() {
			results <- s.Do(t.Context(), Request{Session: "a", Code: fmt.Sprintf("seen.append(%d)\nfor _ in range(100): print(%d)", i, i)})
		}()
	}
	for range calls {
		if r := <-results; r.IsError() || len(r.Stdout) != 100 || len(slices.Compact(slices.Clone(r.Stdout))) != 1 {
			t.Errorf("%s: %s, %d lines", r.Status, r.Error, len(r.Stdout))
		}
	}
	s.in(t, "a", "print(len(seen), len(set(seen)))").says(t, "20 20")
}

// TestServersAreGrantedPerCall: what an earlier run of a session might call, a
// later one may not, and the other way round.
func TestServersAreGrantedPerCall(t *testing.T) {
	up := fakeUpstreams{"up": {"f": func(context.Context, json.RawMessage) (string, error) { return "ok", nil }}}
	s := newSessionServer(t, up, nil)
	const call = "try: print(await mcp_up.f(), LOADED_MCP_SERVERS, list(mcp_servers))\nexcept Exception as e: print('refused' if 'not granted' in str(e) else e)"
	for _, tt := range []struct {
		servers []string
		want    string
	}{{nil, "refused"}, {[]string{"up"}, "ok ('up',) ['up']"}, {nil, "refused"}} {
		s.Do(t.Context(), Request{Code: call, Session: "a", Servers: tt.servers}).says(t, tt.want)
	}
	s.in(t, "a", "mcp_up = 'mine'").notes(t)
	s.in(t, "a", "print(mcp_up)").says(t, "mine")
}

// TestWhatARunLeavesBreaksNothing: threads and processes that go on with the next
// runs, print and call.
func TestWhatARunLeavesBreaksNothing(t *testing.T) {
	up := fakeUpstreams{"up": {"f": func(context.Context, json.RawMessage) (string, error) { return "ok", nil }}}
	s := newSessionServer(t, up, nil)
	s.Do(t.Context(), Request{Session: "a", Servers: []string{"up"}, Code: `
import threading, subprocess, sys, time, asyncio, signal
stop = threading.Event()
def chatter():
    while not stop.is_set():
        print('x' * 500, file=sys.stderr)
threading.Thread(target=chatter).start()
answers = []
def calls():
    while not stop.is_set():
        try: answers.append(asyncio.run(mcp_up.f()))
        except Exception as e: answers.append(str(e))
threading.Thread(target=calls).start()
while 'ok' not in answers: time.sleep(0.005)
child = subprocess.Popen([sys.executable, '-c', 'while True: print("y" * 500)'])
def raises(*_): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, raises)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try: time.sleep(1)
except KeyboardInterrupt: print('interrupted')
`})
	for i := range 3 {
		// Not printed: it could be in the part of the output that is cut.
		r := s.in(t, "a", fmt.Sprintf("%d", i))
		if r.IsError() || r.Result != fmt.Sprint(i) || r.Session != sessionContinued {
			t.Fatalf("run %d: %s: %s, session %s", i, r.Status, r.Error, r.Session)
		}
	}
	s.in(t, "a", "stop.set(); child.kill(); child.wait(); [t.join() for t in threading.enumerate() if t is not threading.current_thread()]")
	s.in(t, "a", "") // an empty one is refused and changes nothing
	s.in(t, "a", "print('quiet', 'ok' in answers)").says(t, "quiet True")
}

// TestSignalHandlersOfTheCodeDoNotEndTheSession, though they raise at any time,
// also at the end of a run and between two.
func TestSignalHandlersOfTheCodeDoNotEndTheSession(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many Pythons")
	}
	s := newSessionServer(t, nil, nil)
	s.in(t, "a", `
import signal
def raises(*_): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, raises)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)`)
	for range 5 {
		s.in(t, "", "import time; time.sleep(0.1)")
		s.in(t, "a", "x = 1")
	}
	for i := 0; i < 50 && s.in(t, "a", "signal.signal(signal.SIGALRM, signal.SIG_IGN)").IsError(); i++ { // a signal hit it
	}
	if r := s.in(t, "a", "print('here')"); r.Session != sessionContinued || !slices.Contains(r.Stdout, "here") {
		t.Errorf("%s: %s; the session is %s", r.Status, r.Error, r.Session)
	}
}

// TestForkedChildDoesNotHoldTheSession: a process that the code forks comes
// back from the code too, and has nothing to say.
func TestForkedChildDoesNotHoldTheSession(t *testing.T) {
	s := newSessionServer(t, nil, nil)
	s.in(t, "a", "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('child' if pid == 0 else 'parent')").
		says(t, "child\nparent")
	s.in(t, "a", "print(pid > 0)").says(t, "True").notes(t)
}

func TestSessionOutputIsPassedOnAtOnce(t *testing.T) {
	s := newSessionServer(t, nil, nil)
	var out, errs strings.Builder
	for i := range 2 {
		s.Do(t.Context(), Request{Session: "a", Code: fmt.Sprintf("import sys; print(%d); print(-%d, file=sys.stderr)", i, i), Stdout: &out, Stderr: &errs})
	}
	if out.String() != "0\n1\n" || errs.String() != "0\n-1\n" {
		t.Errorf("stdout %q, stderr %q", &out, &errs)
	}
}

// TestNextServerSaysThatSessionsAreGone, as a client that starts its server
// again would not know otherwise.
func TestNextServerSaysThatSessionsAreGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	at := func(o *Options) { o.SessionsDir = dir }
	s := newSessionServer(t, nil, at)
	s.in(t, "a", "x = 1")
	s.in(t, "b", "exit()")
	other := newSessionServer(t, nil, at) // while the first one lives its sessions do
	other.in(t, "a", "1").notes(t)
	s.Close()
	next := newSessionServer(t, nil, at)
	next.in(t, "a", "1").notes(t, `session "a" was ended: the server that kept it has ended; this is a new one, without its variables and files`)
	next.in(t, "b", "1").notes(t, `session "b" was ended: the code ended it; this is a new one, without its variables and files`)
	next.in(t, "b", "1").notes(t)
}

func TestSessionsCanBeOff(t *testing.T) {
	s := newServer(t, nil, nil)
	if r := s.in(t, "a", "1"); r.Status != StatusValidation || !strings.Contains(r.Error, "switched off") {
		t.Errorf("%s: %s", r.Status, r.Error)
	}
}

func TestSessionNames(t *testing.T) {
	s := newSessionServer(t, nil, nil)
	for name, ok := range map[string]bool{"données 1": true, strings.Repeat("x", 64): true, strings.Repeat("x", 65): false, "a\nb": false, "\xff": false} {
		if r := s.in(t, name, "1"); (r.Status == StatusSuccess) != ok {
			t.Errorf("%q: %s: %s", name, r.Status, r.Error)
		}
	}
}

// TestOutOfMemoryEndsTheSession with the words of the limit.
func TestOutOfMemoryEndsTheSession(t *testing.T) {
	s := newSessionServer(t, nil, func(o *Options) {
		o.Sandboxes = withExit(o.Sandboxes, func(exit oci.Exit, err error) (oci.Exit, error) {
			exit.OOM = exit.Code == 137
			return exit, err
		})
		o.Limits.Memory = 64 << 20
	})
	r := s.in(t, "a", "import os; os.kill(os.getpid(), 9)")
	if r.Status != StatusMemory || r.Session != sessionEnded {
		t.Errorf("%s: %s; the session is %q", r.Status, r.Error, r.Session)
	}
	s.in(t, "a", "1").notes(t, `session "a" was ended: a run needed more than the limit of 64 MiB of memory; this is a new one, without its variables and files`)
}
