package run

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestTimeoutSaysWhereTheCodeWas(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	for name, c := range map[string]struct{ code, want string }{
		"a loop":                  {"def f(n):\n    while True: n += 1\nf(0)", "line 3, in <module>: f(0)\nline 2, in f: while True: n += 1"},
		"sleeping":                {"import time\n\ndef nap():\n    time.sleep(60)\nnap()", "line 5, in <module>: nap()\nline 4, in nap: time.sleep(60)"},
		"a busy C call":           {"def f():\n    return sum(range(10**13))\nf()", "line 3, in <module>: f()\nline 2, in f: return sum(range(10**13))"},
		"a subprocess":            {"import subprocess\nsubprocess.run(['sleep', '60'])", "line 2, in <module>: subprocess.run(['sleep', '60'])\n[4 frames inside subprocess]"},
		"awaiting":                {"async def inner():\n    await asyncio.sleep(60)\nasync def outer():\n    await inner()\nawait outer()", "line 5, in <module>: await outer()\nline 4, in outer: await inner()\nline 2, in inner: await asyncio.sleep(60)\n[1 frame inside asyncio]"},
		"a call":                  {"await mcp_up.slow()", "line 1, in <module>: await mcp_up.slow()"},
		"sleeping in a coroutine": {"import time\nasync def f():\n    time.sleep(60)\nawait f()", "line 4, in <module>: await f()\nline 3, in f: time.sleep(60)"},
		"a lock":                  {"import threading\nthreading.Lock().acquire() and None\nl = threading.Lock()\nl.acquire()\nl.acquire()", "line 5, in <module>: l.acquire()"},
		"recursion":               {"import time\ndef f(n):\n    if not n: time.sleep(60)\n    f(n - 1)\nf(500)", "line 5, in <module>: f(500)\nline 4, in f: f(n - 1)\nline 4, in f: f(n - 1)\nline 4, in f: f(n - 1)\nline 4, in f: f(n - 1)\nline 4, in f: f(n - 1)\n[38 lines left out]\nline 4, in f: f(n - 1)\nline 4, in f: f(n - 1)\nline 4, in f: f(n - 1)\nline 4, in f: f(n - 1)\nline 4, in f: f(n - 1)\nline 3, in f: if not n: time.sleep(60)"},
		"the signal taken":        {"import signal\nsignal.signal(signal.SIGURG, signal.SIG_IGN)\nwhile True: pass", ""},
		"the socket closed":       {"import os, time\nos.close(3)\ntime.sleep(60)", ""},
		"a handler for it":        {"import signal, time\nsignal.signal(signal.SIGURG, lambda *_: time.sleep(60))\ntime.sleep(60)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, fakeUpstreams{"up": {"slow": func(ctx context.Context, _ json.RawMessage) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}}}, nil)
			start := time.Now()
			r := s.Do(t.Context(), Request{Code: c.code, Timeout: 3 * time.Second, Servers: []string{"up"}})
			took := time.Since(start)
			got := strings.Join(r.Stack, "\n")
			if name == "a subprocess" { // how many frames differs between Pythons
				got, c.want, _ = cutBoth(got, c.want, "\n[")
			}
			if r.Status != StatusTimeout || got != c.want {
				t.Errorf("status %s, stack:\n%s\nwant:\n%s", r.Status, got, c.want)
			}
			if took > 45*time.Second {
				t.Errorf("it took %s", took)
			}
			if len(r.Stderr) > 0 { // of the connection that ends with the sandbox
				t.Errorf("stderr %q", r.Stderr)
			}
		})
	}
}

func cutBoth(a, b, at string) (string, string, bool) {
	a, _, found := strings.Cut(a, at)
	b, _, _ = strings.Cut(b, at)
	return a, b, found
}

func TestTimeoutNamesTasksThatWait(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	t.Parallel()
	s := newServer(t, nil, nil)
	r := s.Do(t.Context(), Request{Code: "async def part(n):\n    await asyncio.sleep(60 + n)\nawait asyncio.gather(*(part(n) for n in range(9)))", Timeout: 3 * time.Second})
	got := strings.Join(r.Stack, "\n")
	if !strings.HasPrefix(got, "task Task-1:\nline 3, in <module>: await asyncio.gather(") || !strings.Contains(got, "task Task-2:\nline 2, in part: await asyncio.sleep(60 + n)") || strings.Count(got, "task ") != 4 {
		t.Errorf("got:\n%s", got)
	}
}

func TestTimeoutOfASessionSaysWhere(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	t.Parallel()
	s := newServer(t, nil, func(o *Options) { o.Sessions = 1 })
	if r := s.Do(t.Context(), Request{Code: "import time\ndef busy():\n    return sum(range(10**13))", Session: "a"}); r.IsError() {
		t.Fatalf("%+v", r)
	}
	r := s.Do(t.Context(), Request{Code: "x = 1\n\nbusy()", Session: "a", Timeout: 3 * time.Second})
	got := strings.Join(r.Stack, "\n")
	if r.Status != StatusTimeout || !strings.HasPrefix(got, "line 3, in <module>: busy()\nline 3, in busy") {
		t.Errorf("status %s, stack:\n%s", r.Status, got)
	}
}

// TestStackBeforeTheTimeIsUpBreaksTheTalk, as any frame where it may not come.
func TestStackBeforeTheTimeIsUpBreaksTheTalk(t *testing.T) {
	s := newServer(t, nil, nil)
	r := runCode(t, s, "import os, time\nos.write(3, b'Stack (most recent call first):\\n')\ntime.sleep(20)")
	if r.Status != StatusError || !strings.Contains(r.Error, "broke the connection") {
		t.Errorf("%s: %s", r.Status, r.Error)
	}
}
