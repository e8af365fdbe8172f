package run

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/bridgetest"
)

// An asyncCase is code that uses asyncio at its top level, and what comes of it.
type asyncCase struct {
	name, code string
	out        string // what it prints and its value, exactly
	err        string // how its error begins; empty if it succeeds
	stderr     string // that stderr has; empty: stderr is empty
	in         string // "fresh", "session" or, without an await, "sync", if it is not the same everywhere
	hint       string // of the result
	from       int    // the first minor version of Python with what it uses
}

// asyncSetup stands before every case. It is not empty, so that the cases do not
// begin at line 1.
const asyncSetup = `import asyncio, sys
async def f(n=1):
    await asyncio.sleep(0)
    return n
async def fail(what='bad'):
    await asyncio.sleep(0)
    raise ValueError(what)
async def say(what):
    await asyncio.sleep(0.01)
    print(what)
def called(what): return what()
`

const notAwaited = "mcp_up.echo() is a coroutine: write await mcp_up.echo(…)"

var asyncCases = []asyncCase{
	{name: "create_task", code: "t = asyncio.create_task(say('task'))", out: "task", in: "fresh"},
	{name: "ensure_future", code: "t = asyncio.ensure_future(say('task'))", out: "task", in: "fresh"},
	{name: "gather", code: "t = asyncio.gather(say('a'), say('b'))", out: "a\nb", in: "fresh"},
	{name: "in a function", code: "def start(): return asyncio.create_task(say('task'))\nt = start()", out: "task", in: "fresh"},
	{name: "imported names", code: "from asyncio import create_task, get_running_loop as g\nt = create_task(say('task'))\nprint(g() is asyncio.get_event_loop())", out: "True\ntask", in: "fresh"},
	{name: "a task makes another", code: "async def more(): asyncio.create_task(say('inner'))\nasyncio.create_task(more())\nx = 1", out: "inner", in: "fresh"},
	{name: "a trailing task", code: "asyncio.create_task(f(3))", out: "3", in: "fresh"},
	{name: "a trailing coroutine", code: "f(3)", out: "3"},
	{name: "a trailing list of coroutines", code: "[f(n) for n in range(3)]", out: "[0, 1, 2]"},
	{name: "a trailing tuple of coroutines", code: "f(1), f(2)", out: "(1, 2)"},
	{name: "get_running_loop", code: "loop = asyncio.get_running_loop()\nprint(loop is asyncio.get_event_loop(), asyncio.all_tasks() - {asyncio.current_task()})", out: "True set()"},
	{name: "run", code: "print(asyncio.run(f(2)), asyncio.run(f(3)))", out: "2 3"},
	{name: "run in a function", code: "called(lambda: print(asyncio.run(f(2))))", out: "2"},
	{name: "run in run", code: "async def main(): return asyncio.run(f(2)) + await f(3)\nasyncio.run(main())", out: "5"},
	{name: "run after a task", code: "t = asyncio.create_task(say('later'))\nprint(asyncio.run(f(2)))\nt = asyncio.create_task(say('last'))", out: "2\nlater\nlast", in: "fresh"},
	{name: "run cancels its own tasks", code: "async def main(): asyncio.create_task(asyncio.sleep(600))\nasyncio.run(main())"},
	{name: "run_until_complete", code: "loop = asyncio.get_event_loop()\nprint(loop.run_until_complete(f(2)))\nprint(loop.run_until_complete(asyncio.gather(f(3), f(4))))\nloop.close()", out: "2\n[3, 4]"},
	{name: "run_until_complete of a task", code: "t = asyncio.create_task(f(2))\nprint(asyncio.get_event_loop().run_until_complete(t))", out: "2"},
	{name: "run_until_complete in tasks", code: "loop = asyncio.get_event_loop()\nasync def g(n):\n    await asyncio.sleep(0)\n    return loop.run_until_complete(f(n))\nloop.run_until_complete(asyncio.gather(*(g(n) for n in range(5))))", out: "[0, 1, 2, 3, 4]"},
	{name: "run_forever", code: "loop = asyncio.get_event_loop()\nloop.call_later(0.01, loop.stop)\nloop.run_forever()\nprint('stopped', loop.run_until_complete(f(1)))", out: "stopped 1"},
	{name: "a loop of the code's own", code: "loop = asyncio.new_event_loop()\nasyncio.set_event_loop(loop)\nt = asyncio.ensure_future(f(2))\nprint(loop.run_until_complete(f(3)))\nloop.close()\nasyncio.set_event_loop(None)\nasyncio.get_event_loop().run_until_complete(f(4))", out: "3\n4"},
	{name: "Runner", code: "with asyncio.Runner() as r:\n    print(r.run(f(1)), r.run(f(2)))\nt = asyncio.create_task(f())", out: "1 2", from: 11},
	{name: "timeout", code: "async def main():\n    async with asyncio.timeout(0.01): await asyncio.sleep(600)\ntry: asyncio.run(main())\nexcept TimeoutError: print('late')", out: "late", from: 11},
	{name: "TaskGroup", code: "async def main():\n    async with asyncio.TaskGroup() as g: a, b = g.create_task(f(1)), g.create_task(f(2))\n    return a.result() + b.result()\nmain()", out: "3", from: 11},
	{name: "wait_for", code: "async def main():\n    try: await asyncio.wait_for(asyncio.sleep(600), 0.01)\n    except asyncio.TimeoutError: print('late')\nasyncio.run(main())", out: "late"},
	{name: "eager tasks", code: "asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)\nasync def main():\n    t = asyncio.create_task(f(1))\n    return asyncio.run(f(2)) + asyncio.get_running_loop().run_until_complete(f(3)) + await t\nprint(asyncio.get_event_loop().run_until_complete(main()))\nasyncio.get_running_loop().set_task_factory(None)", out: "6", from: 12},
	{name: "an eager task that runs a loop", code: "async def g(): return asyncio.run(f(2)) + await f(1)\nasync def main():\n    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)\n    return await asyncio.create_task(g())\nasyncio.run(main())", out: "3", from: 12},
	{name: "a future", code: "x = asyncio.get_running_loop().create_future()\nasyncio.get_running_loop().call_later(0.01, x.set_result, 5)\nprint(asyncio.get_event_loop().run_until_complete(x))", out: "5"},
	{name: "a queue", code: "q = asyncio.Queue()\nt = asyncio.create_task(q.get())\nq.put_nowait(4)\nasyncio.get_event_loop().run_until_complete(t)", out: "4"},
	{name: "an executor", code: "import time\nx = asyncio.get_running_loop().run_in_executor(None, lambda: 'thread')\nprint(asyncio.get_event_loop().run_until_complete(x), asyncio.run(asyncio.to_thread(lambda: 1)))", out: "thread 1"},
	{name: "run in another thread", code: "import threading\ndef g(): print(asyncio.run(f(2)))\nt = threading.Thread(target=g); t.start(); t.join()", out: "2"},
	{name: "no loop in another thread", code: "import threading\ndef g():\n    try: asyncio.get_running_loop()\n    except RuntimeError as e: print(e)\nt = threading.Thread(target=g); t.start(); t.join()", out: "no running event loop"},
	{name: "run in a forked process", code: "import os\nif os.fork() == 0:\n    print(asyncio.run(f(2)))\n    sys.stdout.flush(); os._exit(0)\nos.wait()\nx = 1", out: "2", in: "fresh"},
	{name: "a subprocess", code: "async def main():\n    p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=asyncio.subprocess.PIPE)\n    return (await p.communicate())[0]\nprint(asyncio.run(main()))\nmain()", out: "b'hi\\n'\nb'hi\\n'"},
	{name: "async generators", code: "async def numbers():\n    try:\n        for n in range(3): yield n\n    finally: print('closed')\nasync def main():\n    async for n in numbers(): return n\nprint(asyncio.run(main()))", out: "closed\n0"},
	{name: "context variables", code: "import contextvars\nv = contextvars.ContextVar('v', default=0)\nasync def g(): v.set(2); return v.get()\nv.set(1)\nprint(asyncio.run(g()), v.get())\nv.get()", out: "2 1\n1"},
	{name: "helpers without await", code: "from mcp import runtime\nprint(runtime.list_tools_sync('up')[0].name)\nasync def g(): return runtime.list_tools_sync('up')[0].name\nprint(asyncio.run(g()), asyncio.get_event_loop().run_until_complete(g()))", out: "echo\necho echo"},
	{name: "calls of servers in loops", code: "print(asyncio.run(mcp_up.echo(a=1)), asyncio.get_event_loop().run_until_complete(mcp_up.echo(a=2)))\nmcp_up.echo(a=3)", out: `{'a': 1} {'a': 2}` + "\n{'a': 3}"},
	{name: "a task that calls a server", code: "t = asyncio.create_task(mcp_up.echo(a=1))\nt.add_done_callback(lambda t: print(t.result()))", out: "{'a': 1}", in: "fresh"},
	{name: "a trailing list of calls", code: "[mcp_up.echo(a=n) for n in range(2)]", out: "[{'a': 0}, {'a': 1}]"},
	{name: "asyncio replaced by the code", code: "def run(x): x.close(); return 'mine'\nasyncio.run = run\nprint(asyncio.run(f()))\nasyncio.get_running_loop = lambda: 7\nprint(asyncio.get_running_loop())\nimport importlib\nimportlib.reload(asyncio.events); importlib.reload(asyncio.runners); importlib.reload(asyncio); x = 1", out: "mine\n7", in: "fresh"},

	// Errors.
	{name: "an error in run", code: "asyncio.run(fail())", err: "ValueError: bad", stderr: "in <module>"},
	{name: "an error in run_until_complete", code: "asyncio.get_event_loop().run_until_complete(fail())", err: "ValueError: bad", stderr: "in fail"},
	{name: "an error in a trailing coroutine", code: "fail()", err: "ValueError: bad", stderr: "in fail"},
	{name: "a task that fails", code: "t = asyncio.create_task(fail())\nprint('on')", out: "on", err: "ValueError: bad", stderr: "line 7, in fail", in: "fresh"},
	{name: "a task that fails and is dropped", code: "asyncio.create_task(fail())\nasyncio.get_event_loop().run_until_complete(asyncio.sleep(0.01))\nprint('on')", out: "on", err: "ValueError: bad", stderr: "line 7, in fail"},
	{name: "a task that has failed and is kept", code: "t = asyncio.create_task(fail())\nasyncio.get_event_loop().run_until_complete(asyncio.sleep(0.01))", err: "ValueError: bad", stderr: "line 7, in fail", in: "fresh"},
	{name: "tasks that fail", code: "ts = [asyncio.create_task(fail(n)) for n in 'ab']", err: "ValueError: a", stderr: "ValueError: b", in: "fresh"},
	{name: "a failure that is taken", code: "t = asyncio.create_task(fail())\ntry: asyncio.get_event_loop().run_until_complete(t)\nexcept ValueError as e: print('taken', e)", out: "taken bad"},
	{name: "what is left is cancelled by an error", code: "async def g():\n    try: await asyncio.sleep(600)\n    finally: print('cancelled')\nt = asyncio.create_task(g())\nasyncio.get_event_loop().run_until_complete(asyncio.sleep(0))\n1/0", out: "cancelled", err: "ZeroDivisionError", stderr: "1/0", in: "fresh"},
	{name: "sys.exit in a task", code: "async def g(): sys.exit(3)\nt = asyncio.create_task(g())", err: "the process ended with exit code 3", in: "fresh"},
	{name: "an error in another thread", code: "import threading\nt = threading.Thread(target=lambda: asyncio.run(fail()), name='T')\nt.start(); t.join()", stderr: "Exception in thread T:\nTraceback (most recent call last):\n"},
	{name: "a library that asks for a loop", code: "ask = compile('try: asyncio.get_running_loop()\\nexcept RuntimeError as e: print(e)', '/usr/lib/python3/dist-packages/x.py', 'exec')\nexec(ask)\nx = 1", out: "no running event loop", in: "sync"},
	{name: "an exception group", code: "async def main():\n    async with asyncio.TaskGroup() as g: g.create_task(fail())\nasyncio.run(main())", err: "ExceptionGroup", stderr: "ValueError: bad", from: 11},
	{name: "the code's own traceback", code: "import traceback\nasync def g():\n    try: await mcp_up.refuse()\n    except Exception: print(traceback.format_exc().count('File'))\nasyncio.run(g())\ntry: asyncio.run(fail())\nexcept ValueError: text = traceback.format_exc()\nprint('runner-' in text, 'in fail' in text)", out: "1\nFalse True"},
	{name: "the code's own stack", code: "import traceback\ndef stack(): return [frame.filename for frame in traceback.extract_stack()]\nasync def h(): return stack()\nprint(*(any('runner-' in file for file in files) for files in (stack(), asyncio.run(h()))))", out: "False False"},

	// What was never awaited.
	{name: "a call that is printed", code: "print(mcp_up.echo(a=1) is None)", out: "False", err: "RuntimeError: mcp_up.echo() was never awaited, so it did not run: write await mcp_up.echo(…)", stderr: "print(mcp_up.echo(a=1) is None)"},
	{name: "a call that is dropped", code: "mcp_up.echo(a=1)\nx = 1", err: "RuntimeError: mcp_up.echo() was never awaited", stderr: "RuntimeError"},
	{name: "calls that are kept", code: "calls = [mcp_up.echo(a=1), mcp_up.echo(a=2)]\nx = 1", err: "RuntimeError: mcp_up.echo() was never awaited, so it did not run: write await mcp_up.echo(…) (1 more call was not awaited either)", stderr: "RuntimeError", in: "fresh"},
	{name: "a function of runtime", code: "from mcp import runtime\nprint(runtime.search_tool_docs('x') is None)", out: "False", err: "RuntimeError: runtime.search_tool_docs() was never awaited", stderr: "search_tool_docs"},
	{name: "in a function", code: "def g(): return str(mcp_up.echo(a=1))\nx = g()", err: "RuntimeError: mcp_up.echo() was never awaited", stderr: "in g"},
	{name: "a name with _sync", code: "mcp_up.echo_sync(a=1)\nx = 1", err: "RuntimeError: mcp_up.echo_sync() was never awaited, so it did not run: tools have no _sync form: write await mcp_up.echo(…)", stderr: "RuntimeError"},
	{name: "a name in another form with _sync", code: "mcp_up.Echo_sync(a=1)\nx = 1", err: "RuntimeError: mcp_up.Echo_sync() was never awaited, so it did not run: tools have no _sync form: write await mcp_up.echo(…)", stderr: "RuntimeError"},
	{name: "a name with _sync in a function", code: "def g(): return str(mcp_up.echo_sync(a=1))\nx = g()", err: "RuntimeError: mcp_up.echo_sync() was never awaited, so it did not run: tools have no _sync form: write asyncio.run(mcp_up.echo(…))", stderr: "in g"},
	{name: "a name with _sync that there is not", code: "mcp_up.nothing_sync()\nx = 1", err: "RuntimeError: mcp_up.nothing_sync() was never awaited, so it did not run: write await mcp_up.nothing_sync(…)", stderr: "RuntimeError"},
	{name: "a name with _sync used as its value", code: "def g(): return mcp_up.echo_sync(a=1)['a']\ng()", err: "TypeError: 'coroutine' object is not subscriptable", stderr: "in g", hint: "mcp_up.echo() is a coroutine, and await works in an async def only: here, write asyncio.run(mcp_up.echo(…))"},
	{name: "what a hint says to write", code: "def g(): return asyncio.run(mcp_up.echo(a=1)).a\nasync def h(): return g()\nprint(g(), await_ := asyncio.run(h()))", out: "1 1"},
	{name: "in a coroutine", code: "async def g(): mcp_up.echo(a=1)\ng()", err: "RuntimeError: mcp_up.echo() was never awaited", stderr: "in g"},
	{name: "used as its value", code: "for x in mcp_up.echo(a=1): pass", err: "TypeError: 'coroutine' object is not iterable", stderr: "for x in", hint: notAwaited},
	{name: "kept and used", code: "r = mcp_up.echo(a=1)\nprint(r['a'])", err: "TypeError: 'coroutine' object is not subscriptable", stderr: "r['a']", hint: notAwaited},
	{name: "an attribute of it", code: "mcp_up.echo(a=1).a", err: "AttributeError: 'coroutine' object has no attribute 'a'", stderr: "echo", hint: notAwaited},
	{name: "an attribute of it when kept", code: "r = mcp_up.echo(a=1)\nr.a", err: "AttributeError: 'coroutine' object has no attribute 'a'", stderr: "r.a", hint: notAwaited},
	{name: "kept and looped over", code: "r = mcp_up.echo(a=1)\nfor x in r: pass", err: "TypeError: 'coroutine' object is not iterable", stderr: "in r", hint: notAwaited},
	{name: "its length", code: "r = mcp_up.echo(a=1)\nlen(r)", err: "TypeError: object of type 'coroutine' has no len()", stderr: "len", hint: notAwaited},
	{name: "given to a library", code: "import json\nr = mcp_up.echo(a=1)\njson.dumps(r)", err: "TypeError: Object of type coroutine is not JSON serializable", stderr: "dumps", hint: notAwaited},
	{name: "kept in a function", code: "def g():\n    r, other = mcp_up.echo(a=1), 1\n    return r['a']\ng()", err: "TypeError: 'coroutine' object is not subscriptable", stderr: "in g", hint: notAwaited},
	{name: "in what is given to a library", code: "import json\nr = {'a': mcp_up.echo(a=1)}\njson.dumps(r)", err: "TypeError: Object of type coroutine is not JSON serializable", stderr: "dumps", hint: notAwaited},
	{name: "kept in a list", code: "rs = [mcp_up.other(), mcp_up.echo(a=1)]\nrs[1]['a']", err: "TypeError: 'coroutine' object is not subscriptable", stderr: "rs[1]", hint: notAwaited},
	{name: "a function of runtime used as its value", code: "from mcp import runtime\nhits = runtime.search_tool_docs('x')\nhits[0]", err: "TypeError: 'coroutine' object is not subscriptable", stderr: "hits[0]", hint: "runtime.search_tool_docs() is a coroutine: write await runtime.search_tool_docs(…)"},
	{name: "the code's own used as its value", code: "async def own(): pass\nr = own()\ntry: r[0]\nfinally: r.close()", err: "TypeError: 'coroutine' object is not subscriptable", stderr: "r[0]"},
	{name: "an error that has nothing to do with it", code: "calls = [mcp_up.echo(a=1)]\n1/0", err: "ZeroDivisionError", stderr: "1/0"},
	{name: "a coroutine of the code's own", code: "f()\nx = 1", stderr: "RuntimeWarning: coroutine 'f' was never awaited"},
	{name: "one that is kept", code: "c = f()\nx = 1", stderr: "RuntimeWarning: coroutine 'f' was never awaited", in: "fresh"},
	{name: "a warning that the code ignores", code: "import warnings; warnings.simplefilter('ignore')\nf()\nx = 1", in: "fresh"},
}

// TestAsyncioAtTopLevel: with and without an await at the top level, in runs of
// their own and in a session.
//
//test:long
func TestAsyncioAtTopLevel(t *testing.T) {
	up := fakeUpstreams{"up": {
		"echo": func(_ context.Context, args json.RawMessage) (string, error) { return string(args), nil },
	}}
	all := bridgetest.Pythons(t)
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
		s := newSessionServer(t, up, onPython(py.Path))
		// The versions between the oldest and the newest share the cases.
		atEnd := py == all[0] || py == all[len(all)-1]
		for _, awaiting := range []bool{false, true} {
			for _, session := range []string{"", "a"} {
				for i, c := range asyncCases {
					where := map[bool]string{true: "fresh", false: "session"}[session == ""]
					if py.Minor < c.from || c.in == "sync" && awaiting || c.in != "" && c.in != "sync" && c.in != where || !atEnd && i%3 != py.Minor%3 {
						continue
					}
					c.code = asyncSetup + c.code
					name := c.name + ", " + where
					if awaiting {
						c.code, name = "import asyncio; await asyncio.sleep(0); "+c.code, name+", awaiting"
					}
					t.Run(name, func(t *testing.T) {
						c.check(t, s.Do(t.Context(), Request{Code: c.code, Session: session, Servers: []string{"up"}, Timeout: time.Minute}))
					})
				}
			}
		}
	})
}

func (c asyncCase) check(t *testing.T, r *Result) {
	t.Helper()
	stdout, stderr := strings.Join(r.Stdout, "\n"), strings.Join(r.Stderr, "\n")
	if r.Result != "" {
		stdout = strings.Join(append(slices.Clone(r.Stdout), r.Result), "\n")
	}
	if stdout != c.out {
		t.Errorf("it printed %q, want %q", stdout, c.out)
	}
	if !strings.HasPrefix(r.Error, c.err) || r.IsError() != (c.err != "") {
		t.Errorf("%s: %q, want %q", r.Status, r.Error, c.err)
	}
	if !strings.Contains(stderr, c.stderr) || c.stderr == "" && stderr != "" {
		t.Errorf("stderr is %q, want %q", stderr, c.stderr)
	}
	if r.Hint != c.hint {
		t.Errorf("the hint is %q, want %q", r.Hint, c.hint)
	}
	for _, ours := range []string{"toolcell", "runner-", "tracemalloc", "asyncio/"} {
		if strings.Contains(stderr+stdout, ours) {
			t.Errorf("it shows %q:\n%s%s", ours, stdout, stderr)
		}
	}
}

// TestTasksLiveOnInASession: they run while a later run of it awaits, and are not
// waited for.
func TestTasksLiveOnInASession(t *testing.T) {
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
		s := newSessionServer(t, nil, onPython(py.Path))
		for _, step := range []struct{ code, want, err string }{
			{"import asyncio, contextvars\nv = contextvars.ContextVar('v')\nasync def f():\n    await asyncio.sleep(0)\n    return 'ran'\nasync def fail(): raise ValueError('bad')\nfor_ever = asyncio.create_task(asyncio.sleep(1000))\nt = asyncio.create_task(f())", "", ""},
			{"print(t.done(), await t, for_ever.done())", "False ran False", ""},
			{"t = asyncio.ensure_future(f()); v.set(1) and None", "", ""},
			{"print(asyncio.get_event_loop().run_until_complete(t), v.get())", "ran 1", ""},
			{"await asyncio.sleep(0); v.set(2) and None", "", ""},
			{"def start(): return asyncio.create_task(f())", "", ""},
			{"t = start()\nprint(asyncio.run(f()), v.get())", "ran 2", ""},
			{"print(await t)", "ran", ""},
			{"t = asyncio.create_task(fail())", "", ""},
			{"await asyncio.sleep(0.01)\nprint('it may still be awaited')", "it may still be awaited", ""},
			{"try: await t\nexcept ValueError as e: print(e)", "bad", ""},
			{"asyncio.create_task(fail()) and None", "", ""},
			{"await asyncio.sleep(0.01)", "", "ValueError: bad"},
			{"c = mcp.runtime.list_tools('x')", "", ""},
			{"c[0]", "", "TypeError: 'coroutine' object is not subscriptable"},
			{"c = 1", "", ""}, // that it was explained is enough
			{"c = f()", "", ""},
			{"await c", "ran", ""},
			{"t = asyncio.create_task(f()); t.add_done_callback(lambda _: print('at its end')); mcp.runtime.end_session(); for_ever.cancel() and None", "at its end", ""},
		} {
			r := s.in(t, "a", step.code)
			got := strings.Join(append(slices.Clone(r.Stdout), strings.Trim(r.Result, "'")), "\n")
			if strings.Trim(got, "\n") != step.want || r.Error != step.err || step.err == "" && len(r.Stderr) > 0 {
				t.Errorf("%s\ngives %q, error %q, stderr %q; want %q", step.code, got, r.Error, r.Stderr, step.want)
			}
		}
	})
}

// TestTimeoutNamesWhatIsLeft: a run waits for its tasks no longer than its time.
//
//test:long
func TestTimeoutNamesWhatIsLeft(t *testing.T) {
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
		s := newServer(t, nil, onPython(py.Path))
		for name, c := range map[string]struct{ code, want string }{
			"a task":     {"import asyncio\nasync def f():\n    await asyncio.sleep(60)\nt = asyncio.create_task(f())", "line 3, in f: await asyncio.sleep(60)\n[1 frame inside asyncio]"},
			"two":        {"import asyncio\nasync def f(n):\n    await asyncio.sleep(n)\nts = [asyncio.create_task(f(60), name=n) for n in 'ab']", "task a:\nline 3, in f: await asyncio.sleep(n)\n[1 frame inside asyncio]\ntask b:\nline 3, in f: await asyncio.sleep(n)\n[1 frame inside asyncio]"},
			"a run":      {"import asyncio\nasync def f():\n    await asyncio.sleep(60)\nasyncio.run(f())", "line 4, in <module>: asyncio.run(f())"},
			"an inner":   {"import asyncio\nasync def f():\n    await asyncio.sleep(60)\nawait asyncio.sleep(0)\nasyncio.run(f())", "line 5, in <module>: asyncio.run(f())"},
			"the same":   {"import asyncio\nasync def f():\n    await asyncio.sleep(60)\nawait asyncio.sleep(0)\nasyncio.get_event_loop().run_until_complete(f())", "line 5, in <module>: asyncio.get_event_loop().run_until_complete(f())"},
			"in a block": {"import asyncio, time\nasync def f():\n    time.sleep(60)\nawait asyncio.sleep(0)\nasyncio.run(f())", "line 5, in <module>: asyncio.run(f())"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := s.Do(t.Context(), Request{Code: c.code, Timeout: 3 * time.Second})
				got := strings.Join(r.Stack, "\n")
				if r.Status != StatusTimeout || !strings.HasPrefix(got, c.want) || strings.Contains(got, "runner") || strings.Contains(got, "eventloop") {
					t.Errorf("status %s, stack:\n%s\nwant:\n%s", r.Status, got, c.want)
				}
			})
		}
	})
}

// TestInterruptReachesCodeThatAwaits: while its tasks wait, and while one is at work;
// the session goes on.
//
//test:long
func TestInterruptReachesCodeThatAwaits(t *testing.T) {
	t.Parallel()
	const mark = "import asyncio, time\nasync def ready():\n    print('ready', flush=True)\n"
	for name, code := range map[string]string{
		"waiting":       "await ready()\nawait asyncio.sleep(100)",
		"at work":       "await ready()\ntime.sleep(100)",
		"another task":  "async def work():\n    await ready()\n    time.sleep(100)\nt = asyncio.create_task(work())\nawait asyncio.sleep(100)",
		"run":           "async def work():\n    await ready()\n    await asyncio.sleep(100)\nasyncio.run(work())",
		"run, awaiting": "async def work():\n    await ready()\n    await asyncio.sleep(100)\nawait asyncio.sleep(0)\nasyncio.run(work())",
		"the same loop": "async def work():\n    await ready()\n    time.sleep(100)\nawait asyncio.sleep(0)\nasyncio.get_event_loop().run_until_complete(work())",
	} {
		t.Run(name, func(t *testing.T) {
			bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
				s := newSessionServer(t, nil, onPython(py.Path))
				var interrupt func()
				stdout := writerFunc(func(b []byte) (int, error) {
					if strings.Contains(string(b), "ready") {
						interrupt()
					}
					return len(b), nil
				})
				// A signal just before Python waits in the kernel is seen only when that ends, as
				// with any Python: a user presses Ctrl-C again.
				ended := make(chan struct{})
				running := func(f func()) {
					interrupt = f
					go func() {
						select {
						case <-time.After(20 * time.Second):
							f()
						case <-ended:
						}
					}()
				}
				r := s.Do(t.Context(), Request{Code: mark + code, Session: "a", Timeout: time.Minute, Stdout: stdout, Running: running})
				close(ended)
				if r.Error != "KeyboardInterrupt" || r.Session == sessionEnded || strings.Contains(strings.Join(r.Stderr, "\n"), "runner-") {
					t.Errorf("%s: %q %q, session %s", r.Status, r.Error, r.Stderr, r.Session)
				}
				s.in(t, "a", "print(await asyncio.sleep(0, 'goes on'))").says(t, "goes on")
			})
		})
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestCallsThatTheCodeHasGivenUpDoNotCount: not as calls in flight, nor for their server.
func TestCallsThatTheCodeHasGivenUpDoNotCount(t *testing.T) {
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
		var hanging atomic.Int64
		up := fakeUpstreams{"slow": {
			"hang": func(ctx context.Context, _ json.RawMessage) (string, error) {
				hanging.Add(1)
				defer hanging.Add(-1)
				<-ctx.Done()
				return "", context.Cause(ctx)
			},
			"quick": func(context.Context, json.RawMessage) (string, error) { return "done", nil },
		}}
		r := newServer(t, up, onPython(py.Path)).Do(t.Context(), Request{Servers: []string{"slow"}, Timeout: time.Minute, Code: `
import asyncio
from mcp import runtime
for _ in range(300):
    task = asyncio.ensure_future(runtime.call_tool("slow", "hang"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
try:
    await asyncio.wait_for(runtime.call_tool("slow", "hang"), 0.001)
except asyncio.TimeoutError:
    print("given up")
print(await runtime.call_tool("slow", "quick"))
`})
		if got := strings.Join(r.Stdout, " "); r.Status != StatusSuccess || got != "given up done" {
			t.Errorf("%s %q %s", r.Status, got, r.Error)
		}
		// Over HTTP the cancellation of a call may overtake it, and is then lost.
		const lost = 30
		for range 600 {
			if hanging.Load() <= lost {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Errorf("%d calls hang", hanging.Load())
	})
}
