package runner

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/bridgetest"

	"github.com/toolcell/toolcell/mcpproxy/signature"
)

// The tests play the host: they start the runner under every Python of this
// machine with a socket pair as fd 3 and answer its calls. What the code
// should see is asserted in Python where that is shorter.

// rtObject is a JSON object on its way to or from the runner.
type rtObject = map[string]any

// rtHost is the other end of fd 3.
type rtHost struct {
	start  rtObject                                          // what start carries besides code and servers
	answer func(method string, params rtObject) (any, error) // nil: rtAnswer
	script func(conn net.Conn, stdout *rtBuffer)             // takes over after start, instead of answering
	attr   *syscall.SysProcAttr
}

// rtOutcome is all that is left of a run.
type rtOutcome struct {
	stdout, stderr string
	exit           int
	done           []rtObject
	calls          []rtObject
}

func (o rtOutcome) result() any { return o.field("result") }
func (o rtOutcome) err() any    { return o.field("error") }

func (o rtOutcome) field(name string) any {
	if len(o.done) != 1 {
		return fmt.Sprintf("%d done messages", len(o.done))
	}
	return o.done[0][name]
}

// rtBuffer is an output that can be read while it is written.
type rtBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *rtBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *rtBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var rtServers = []rtObject{
	{"name": "github", "alias": "github", "description": "issues and code", "granted": true},
	{"name": "file-system", "alias": "file_system", "granted": true},
	{"name": "jira", "alias": "jira", "granted": false},
	{"name": "servers", "alias": "servers", "granted": false},
}

// run starts the runner, speaks with it until it hangs up, and waits for it.
func (h rtHost) run(t *testing.T, py bridgetest.Python, code string) rtOutcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	ours, theirs := rtSocketPair(t)
	defer ours.Close()

	var stdout, stderr rtBuffer
	cmd := exec.CommandContext(ctx, py.Path, "-s", "-B", "-u", "-X", "utf8", rtRunnerFile(t, py))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Dir, cmd.SysProcAttr = t.TempDir(), h.attr
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Start()
	theirs.Close()
	if err != nil {
		t.Fatal(err)
	}

	var out rtOutcome
	ready := rtReceive(ours)
	if v, _ := ready["python"].(string); ready["type"] != "ready" || !strings.HasPrefix(v, fmt.Sprintf("3.%d.", py.Minor)) {
		t.Errorf("first message = %v", ready)
	}
	start := rtObject{"type": "start", "code": code, "servers": rtServers, "saved": []string{}}
	maps.Copy(start, h.start)
	rtSend(ours, start)
	if h.script != nil {
		h.script(ours, &stdout)
	} else {
		h.serve(ours, &out)
	}
	cmd.Wait()
	out.stdout, out.stderr, out.exit = stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	if ctx.Err() != nil {
		t.Fatalf("the runner did not end; stdout %.500q stderr %.2000q", out.stdout, out.stderr)
	}
	if strings.Contains(out.stderr, "/runner-") {
		t.Errorf("stderr shows frames of the runner:\n%s", out.stderr)
	}
	return out
}

// serve answers calls, each in a goroutine of its own, until the runner hangs up.
func (h rtHost) serve(conn net.Conn, out *rtOutcome) {
	answer := h.answer
	if answer == nil {
		answer = rtAnswer
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	var writing sync.Mutex
	for {
		msg := rtReceive(conn)
		switch {
		case msg == nil:
			return
		case msg["type"] == "done":
			out.done = append(out.done, msg)
		case msg["type"] == "call":
			out.calls = append(out.calls, msg)
			calls.Go(func() {
				params, _ := msg["params"].(rtObject)
				rtBind(params)
				reply := rtObject{"type": "reply", "id": msg["id"]}
				result, err := answer(msg["method"].(string), params)
				if err != nil {
					failure := rtObject{"message": err.Error(), "server": params["server"], "tool": params["tool"]}
					if wrong, ok := errors.AsType[*signature.ArgumentError](err); ok {
						failure["kind"] = wrong.Kind
					}
					reply["error"] = failure
				} else {
					reply["result"] = result
				}
				writing.Lock()
				defer writing.Unlock()
				rtSend(conn, reply)
			})
		}
	}
}

// rtBind makes of the arguments of a function those of a tool that takes any.
func rtBind(params rtObject) {
	named, ok := params["named"].(rtObject)
	if !ok {
		return
	}
	arguments := rtObject{}
	if args := params["args"].([]any); len(args) == 1 {
		mapping, _ := args[0].(rtObject)
		maps.Copy(arguments, mapping)
	}
	maps.Copy(arguments, named)
	params["arguments"] = arguments
}

// rtAnswer is the host of most tests. Tools answer with what their name says.
func rtAnswer(method string, params rtObject) (any, error) {
	tools := []rtObject{
		{"name": "create-issue", "alias": "create_issue", "description": "makes one", "input_schema": rtObject{"type": "object"}},
		{"name": "echo", "alias": "echo", "description": "gives back"},
	}
	docs := []rtObject{{"server": "github", "tool": "echo", "description": "gives back"}, {"server": "jira", "tool": "find"}}
	switch method {
	case "tool_signature":
		return rtObject{"parameters": []any{}, "doc": params["tool"].(string) + "()", "description": "gives back"}, nil
	case "list_servers":
		return []string{"github", "file-system", "jira", "servers"}, nil
	case "describe_servers":
		return []rtObject{{"name": "github", "alias": "github", "description": "issues", "status": "ready"}}, nil
	case "list_tools":
		return tools, nil
	case "describe_server":
		if params["server"] == "file-system" {
			return nil, errors.New("file-system does not start")
		}
		return rtObject{"name": params["server"], "alias": "github", "description": "issues", "tools": tools}, nil
	case "query_tool_docs":
		if params["tool"] != nil {
			return docs[:1], nil
		}
		return docs, nil
	case "search_tool_docs":
		return docs[:min(len(docs), int(params["limit"].(float64)))], nil
	case "save_tool":
		return nil, nil
	case "call_tool":
		return rtToolAnswer(params)
	}
	return nil, fmt.Errorf("no method %q", method)
}

// rtToolAnswer answers for the tools: `raw` gives back its argument as the
// whole answer, any other tool gives back its arguments as structured content.
func rtToolAnswer(params rtObject) (any, error) {
	if params["server"] == "jira" {
		return nil, errors.New("add \"jira\" to servers to call it")
	}
	args := params["arguments"].(rtObject)
	if params["tool"] == "raw" {
		return args["answer"], nil
	}
	return rtObject{"content": []any{}, "structuredContent": rtObject{"tool": params["tool"], "arguments": args}}, nil
}

func TestMain(m *testing.M) { bridgetest.Main(m) }

// rtRunnerFile returns the file of the package that Python starts.
func rtRunnerFile(t *testing.T, py bridgetest.Python) string {
	t.Helper()
	dir := bridgetest.RunnerDir(t, Write)
	if err := bridgetest.Compile(py.Path, dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, filepath.Base(Program))
}

func rtSocketPair(t *testing.T) (net.Conn, *os.File) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[0]), "host")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	return conn, os.NewFile(uintptr(fds[1]), "runner")
}

func rtSend(conn net.Conn, msg rtObject) {
	body, err := json.Marshal(msg)
	if err != nil {
		panic(err)
	}
	rtSendBytes(conn, body)
}

// rtSendBytes ignores errors: the runner may have gone, which the test then sees in other ways.
func rtSendBytes(conn net.Conn, body []byte) {
	conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
}

// rtReceive returns the next message, or nil when there is none any more.
func rtReceive(conn net.Conn) rtObject {
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil
	}
	var msg rtObject
	if err := json.Unmarshal(body, &msg); err != nil {
		return rtObject{"type": "done", "error": "unreadable frame: " + err.Error()}
	}
	return msg
}

// rtCase is one piece of code and what has to come of it. Empty fields mean:
// no output, exit 0, no result, no error.
type rtCase struct {
	name, code string
	stdout     string   // exactly
	stderr     []string // each contained, in this order; none: stderr is empty
	hidden     []string // none contained in stderr
	exit       int
	result     any
	err        any
	from       int // the first minor version this holds for
}

func (c rtCase) check(t *testing.T, out rtOutcome) {
	t.Helper()
	if out.stdout != c.stdout {
		t.Errorf("stdout = %.2000q, want %q", out.stdout, c.stdout)
	}
	rest := out.stderr
	for _, want := range c.stderr {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Errorf("stderr lacks %q:\n%.3000s", want, out.stderr)
		}
		rest = after
	}
	for _, bad := range c.hidden {
		if strings.Contains(out.stderr, bad) {
			t.Errorf("stderr has %q:\n%.3000s", bad, out.stderr)
		}
	}
	if len(c.stderr) == 0 && out.stderr != "" {
		t.Errorf("stderr = %.3000s", out.stderr)
	}
	if out.exit != c.exit || out.field("exitCode") != float64(c.exit) {
		t.Errorf("exit = %d, done says %v, want %d", out.exit, out.field("exitCode"), c.exit)
	}
	if out.result() != c.result || out.err() != c.err {
		t.Errorf("result = %v, want %v; error = %v, want %v", out.result(), c.result, out.err(), c.err)
	}
}

// rtTable runs cases under the oldest and the newest Python. Those between
// share them: what differs between versions shows at the ends first.
func rtTable(t *testing.T, host rtHost, cases []rtCase) {
	t.Helper()
	all := bridgetest.Pythons(t)
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
		atEnd := py == all[0] || py == all[len(all)-1]
		for i, c := range cases {
			if py.Minor >= c.from && (atEnd || i%3 == py.Minor%3) {
				t.Run(c.name, func(t *testing.T) { c.check(t, host.run(t, py, c.code)) })
			}
		}
	})
}

func TestRunnerRunsCodeAsPythonDoes(t *testing.T) {
	t.Parallel()
	rtTable(t, rtHost{}, []rtCase{
		{name: "nothing"},
		{name: "print", code: "print('hi')", stdout: "hi\n"},
		{name: "a trailing expression is the result", code: "x = 20\nx + 22", result: "42"},
		{name: "None is no result", code: "print('a')", stdout: "a\n"},
		{name: "a lone string is the result", code: "'text'", result: "'text'"},
		{name: "a docstring stays one", code: "'doc'\n__doc__", result: "'doc'"},
		{name: "future imports reach the last expression", code: `
from __future__ import annotations
def f(x: not_there): pass
(lambda: f.__annotations__)()`, result: "{'x': 'not_there'}"},
		{name: "windows line ends", code: "if True:\r\n    x = 1\r\nx\r\n", result: "1"},
		{name: "top-level await in every form", code: `
class Context:
    async def __aenter__(self): return 1
    async def __aexit__(self, *_): return False
async def numbers():
    yield 1
    yield 2
async def twice(n): return 2 * n
async with Context() as one: pass
seen = [n async for n in numbers()]
async for n in numbers(): seen.append(n)
seen += [await twice(n) for n in seen]
one, seen, await twice(4)`, result: "(1, [1, 2, 1, 2, 2, 4, 2, 4], 8)"},
		{name: "a coroutine as the last value is awaited", code: "async def f(): return 7\nf()", result: "7"},
		{name: "so it is after an await", code: "import asyncio\nasync def f(): return 7\nawait asyncio.sleep(0)\nf()", result: "7"},
		{name: "asyncio need not be imported", code: "await asyncio.sleep(0)\nprint(asyncio.__name__)", stdout: "asyncio\n"},
		{name: "asyncio.run in code without await", code: "import asyncio\nasync def f(): return 3\nasyncio.run(f())", result: "3"},
		{name: "asyncio.run in code with await", code: "import asyncio\nasync def f(): return 3\nawait f()\nasyncio.run(f())", result: "3"},
		{name: "what asyncio runs is asyncio's own again at the end", code: `
import asyncio, atexit
atexit.register(lambda: print(all('runner-' not in f.__code__.co_filename for f in (asyncio.run, asyncio.all_tasks, asyncio.SelectorEventLoop.run_forever) if hasattr(f, '__code__'))))
await asyncio.sleep(0)`, stdout: "True\n"},
		{name: "main module", code: `
import sys, pickle, dataclasses, typing
@dataclasses.dataclass
class Point: x: typing.Optional[int]
assert __name__ == '__main__' and sys.modules['__main__'].Point is Point
assert pickle.loads(pickle.dumps(Point(1))) == Point(1)
assert sys.argv == [''], sys.argv
import os
assert sys.path[0] == os.getcwd() and not any('runner' in os.listdir(p) for p in sys.path if os.path.isdir(p))
open('here.py', 'w').write('x = 5')
import here
here.x`, result: "5"},
		{name: "multiprocessing with fork", code: `
import multiprocessing
def f(x): return x * x
with multiprocessing.get_context('fork').Pool(2) as pool: squares = pool.map(f, [1, 2, 3])
squares`, result: "[1, 4, 9]"},
		{name: "input is at its end", code: "input()", exit: 1, stderr: []string{`File "<run_python>", line 1`, "EOFError"}, err: "EOFError: EOF when reading a line"},
		{name: "every way to stdout", code: `
import os, subprocess, ctypes
print('{"type":"done","exitCode":0}')
subprocess.run(['echo', 'sub'])
os.write(1, b'raw\n')
ctypes.CDLL(None).printf(b'from C\n')`, stdout: "{\"type\":\"done\",\"exitCode\":0}\nsub\nraw\nfrom C\n", result: "7"},
		{name: "lone surrogates can be printed", code: `print('a\ud800\xe9')`, stdout: "a\\ud800é\n"},
		{name: "lone surrogates in the result", code: `'\ud800'`, result: `'\ud800'`},
		{name: "atexit and threads end as in Python", code: `
import atexit, threading
atexit.register(print, 'atexit')
said = threading.Event()
threading.Thread(target=lambda: (said.wait(), print('thread'))).start()
print('main')
said.set()`, stdout: "main\nthread\natexit\n"},
		{name: "a long result is cut", code: "out = 'é' * 50000\nout", result: "'" + strings.Repeat("é", 32753) + " ... cut: 100002 bytes in all"},
		{name: "subprocesses get no socket", code: `
import subprocess, sys
subprocess.run([sys.executable, '-c', 'import os; os.fstat(3)'], close_fds=False, capture_output=True).returncode`, result: "1"},
		{name: "a name of ours is not left behind", code: "x = [n for n in globals() if '<' in n]\nx", result: "[]"},
	})
}

func TestRunnerReportsErrorsAsPythonDoes(t *testing.T) {
	t.Parallel()
	rtTable(t, rtHost{}, []rtCase{
		{
			name: "traceback with source lines", code: "def f(a):\n    return 1 / a\n\nprint(1)\nf(0)", stdout: "1\n", exit: 1,
			stderr: []string{"Traceback (most recent call last):\n  File \"<run_python>\", line 5, in <module>\n    f(0)\n", "File \"<run_python>\", line 2, in f\n    return 1 / a\n", "ZeroDivisionError: division by zero\n"},
			err:    "ZeroDivisionError: division by zero",
		},
		{name: "carets", from: 11, code: "x = {}\ny = x['a']['b'] + 1", exit: 1, stderr: []string{"    y = x['a']['b'] + 1\n        ~^^^^^\n"}, err: "KeyError: 'a'"},
		{
			name: "no frame of asyncio", code: "async def f():\n    raise ValueError('bad')\nawait f()", exit: 1,
			stderr: []string{"line 3, in <module>\n    await f()", "line 2, in f\n", "ValueError: bad"}, hidden: []string{"asyncio"}, err: "ValueError: bad",
		},
		{
			name: "frames of libraries are counted", code: "import json\njson.loads('{')", exit: 1, stderr: []string{"<run_python>", "  [3 frames inside json]\n", "JSONDecodeError"}, hidden: []string{"decoder.py"},
			err: "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
		},
		{
			name: "chained", code: `
async def f():
    await mcp_jira.find()
try: await f()
except Exception as e:
    try: await f()
    except Exception: raise KeyError('x') from e`, exit: 1, err: "KeyError: 'x'",
			stderr: []string{"in f\n    await mcp_jira.find()\n", "MCPError: add \"jira\" to servers", "direct cause", "KeyError: 'x'"},
		},
		{
			name: "exception groups", from: 11, code: `
def fail():
    mcp_servers['nope']
errors = []
for _ in range(2):
    try: fail()
    except Exception as e: errors.append(e)
raise ExceptionGroup('both', errors)`, exit: 1, err: "ExceptionGroup: both (2 sub-exceptions)",
			stderr: []string{"ExceptionGroup: both", "in fail", "mcp_servers['nope']", "no MCP server 'nope'"},
		},
		{
			name: "invalid syntax", code: "x = 1\nx = = 2\n", exit: 1, err: "SyntaxError: invalid syntax (<run_python>, line 2)",
			stderr: []string{"  File \"<run_python>\", line 2\n    x = = 2\n", "^\nSyntaxError: invalid syntax\n"}, hidden: []string{"Traceback"},
		},
		{
			name: "syntax found late", code: "x = 1\nreturn x", exit: 1, err: "SyntaxError: 'return' outside function (<run_python>, line 2)",
			stderr: []string{"line 2\n    return x\n", "^", "SyntaxError: 'return' outside function"}, hidden: []string{"Traceback"},
		},
		{name: "syntax of code in code", code: "exec('a b')", exit: 1, err: "SyntaxError: invalid syntax (<string>, line 1)", stderr: []string{"Traceback", "exec('a b')", "SyntaxError"}},
		{name: "deep recursion is folded", code: "def f(): f()\nf()", exit: 1, stderr: []string{"Previous line repeated", "RecursionError"}, err: "RecursionError: maximum recursion depth exceeded"},
		{name: "no memory", code: "x = bytearray(1 << 60)", exit: 1, stderr: []string{"x = bytearray(1 << 60)", "MemoryError"}, err: "MemoryError"},
		{name: "a repr that raises", code: "class C:\n    def __repr__(self): raise ValueError('shy')\nC()", exit: 1, stderr: []string{"line 2, in __repr__", "ValueError: shy"}, err: "ValueError: shy"},
		{name: "a str that raises", code: "class E(Exception):\n    def __str__(self): raise ValueError\nraise E", exit: 1, stderr: []string{"E: <"}, err: "E: <exception str() failed>"},
		{name: "long messages are cut in done", code: "raise ValueError('x' * 5000)", exit: 1, stderr: []string{"ValueError: " + strings.Repeat("x", 1900), "[… 1,013 characters left out …]"}, hidden: []string{strings.Repeat("x", 2001)}, err: "ValueError: " + strings.Repeat("x", 1988)},
		{name: "sys.exit", code: "import sys\nsys.exit(3)", exit: 3},
		{name: "sys.exit in a task", code: "import asyncio, sys\nawait asyncio.sleep(0)\nsys.exit(4)", exit: 4},
		{name: "sys.exit in another task", code: "import asyncio, sys\nasync def f(): sys.exit(5)\nasyncio.create_task(f())\nawait asyncio.sleep(60)", exit: 5},
		{name: "sys.exit without code", code: "raise SystemExit"},
		{name: "sys.exit with text", code: "import sys\nsys.exit('gone')", exit: 1, stderr: []string{"gone\n"}, hidden: []string{"Traceback"}},
		{name: "sys.exit as the system cuts it", code: "import sys\nsys.exit(-1)", exit: 255},
		{name: "an excepthook of the code", code: "import sys\nsys.excepthook = lambda t, e, tb: print('hook', e, tb.tb_lineno)\n1/0", exit: 1, stdout: "hook division by zero 3\n", err: "ZeroDivisionError: division by zero"},
		{name: "source lines for the code's own tracebacks", code: "import traceback\ntry: 1/0  # here\nexcept Exception: traceback.print_exc()", stderr: []string{"try: 1/0  # here", "ZeroDivisionError"}},
		{name: "source lines for inspect", code: "import inspect\ndef f(): return 'body'\ninspect.getsource(f)", result: `"def f(): return 'body'\n"`},
		{
			name: "a call that is never awaited", code: "mcp_github.echo(a=1)\nx = 1", exit: 1, stderr: []string{"line 1, in <module>\n    mcp_github.echo(a=1)\nRuntimeError: mcp_github.echo() was never awaited"},
			err: "RuntimeError: mcp_github.echo() was never awaited, so it did not run: write await mcp_github.echo(…)",
		},
		{
			name: "a call by a name that is no identifier", code: "mcp_servers['github']['weird-name']()\nx = 1", exit: 1, stderr: []string{"mcp_github['weird-name']() was never awaited"},
			err: "RuntimeError: mcp_github['weird-name']() was never awaited, so it did not run: write await mcp_github['weird-name'](…)",
		},
	})
}

func TestRunnerRefusesBrokenCode(t *testing.T) {
	t.Parallel()
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
		for _, code := range []string{`x = "\u0000"`, `x = "\ud800"`, `\u0000\u0001\u007f\u0000ELF`} {
			host := rtHost{start: rtObject{"code": json.RawMessage(`"` + strings.ReplaceAll(code, `"`, `\"`) + `"`)}}
			out := host.run(t, py, "")
			if text, _ := out.err().(string); out.exit != 1 || !strings.Contains(text, "Error: ") || !strings.Contains(out.stderr, "Error: ") {
				t.Errorf("%s: exit %d, error %v, stderr %s", code, out.exit, out.err(), out.stderr)
			}
		}
	})
}

func TestRunnerValues(t *testing.T) {
	t.Parallel()
	rtTable(t, rtHost{}, []rtCase{
		{name: "what a tool answers", code: `
def text(*texts): return {'content': [{'type': 'text', 'text': t} for t in texts]}
def structured(value): return {'content': [{'type': 'text', 'text': 'x'}], 'structuredContent': value}
def both(value, *texts): return {**text(*texts), 'structuredContent': value}
image = {'type': 'image', 'data': 'aGk=', 'mimeType': 'image/png'}
for answer, want in [
    (structured({'title': 'T'}), {'title': 'T'}),
    (structured({'result': [1, 2]}), [1, 2]),
    (structured({'result': 'plain'}), 'plain'),
    (structured({'result': None}), None),
    (structured({'result': {'a': 1}}), {'result': {'a': 1}}),
    (structured({'result': 1, 'more': 2}), {'result': 1, 'more': 2}),
    (structured({}), {}),
    (both({'content': 'a TODO'}, 'a TODO'), 'a TODO'), (both({'content': ''}, ''), ''),
    (both({'content': '{"name": "p"}'}, '{"name": "p"}'), '{"name": "p"}'), (both({'content': '12345'}, '12345'), '12345'),
    (both({'out': 'a\nb'}, 'a', 'b'), 'a\nb'), (both({'out': 'ab'}, 'a', 'b'), 'ab'),
    (both({'content': 'other'}, 'text'), {'content': 'other'}), (both({'content': 'a', 'n': 1}, 'a'), {'content': 'a', 'n': 1}),
    (both({'name': 'p'}, '{"name": "p"}'), {'name': 'p'}), (both({'content': ['a']}, 'a'), {'content': ['a']}),
    (both({'content': ''}), {'content': ''}), (both({'result': '{}'}, '{}'), '{}'), (both({'content': {'a': 1}}, '{"a": 1}'), {'content': {'a': 1}}),
    (text('{"a": [1]}'), {'a': [1]}),
    (text(' \n{"a": [1]}\t\r\n'), {'a': [1]}), (text('{"a": 1} and more'), '{"a": 1} and more'), (text('1 2'), '1 2'),
    (text('[NaN]'), '[NaN]'), (text('[-Infinity]'), '[-Infinity]'), (text('{"a": 1,}'), '{"a": 1,}'), (text('  '), '  '),
    (text('\ufeff1'), '\ufeff1'), (text('\xa01'), '\xa01'), (text('12345'), '12345'), (text('1.5'), '1.5'), (text('true'), 'true'), (text('null'), 'null'),
    (text('"quoted"'), '"quoted"'), (text('1', '[2]'), ['1', [2]]),
    (text('NaN'), 'NaN'), (text('plain {'), 'plain {'), (text(''), ''), (text('[' * 5000), '[' * 5000),
    (text('one', '{"b": 2}'), ['one', {'b': 2}]),
    ({'content': [image]}, image),
    ({'content': [{'type': 'text', 'text': 'see'}, image]}, ['see', image]),
    ({'content': []}, None), ({}, None),
]:
    got = await mcp_github.raw(answer=answer)
    assert got == want and isinstance(got, type(want)), (got, want)
    if want is not None and want is not True: assert got.raw == answer, got.raw`},
		{name: "records", code: `
import copy, json, pickle
from mcp.runtime import Record
r = await mcp_github.raw(answer={'structuredContent': {'title': 'T', 'user': {'name': 'n'}, 'labels': [{'id': 1}], 'items': 5, 'raw': 'key', 'html_url': 'u'}})
assert (r.title, r.user.name, r.labels[0].id, r['items']) == ('T', 'n', 1, 5)
assert callable(r.items) and r['raw'] == 'key' and r.raw.structuredContent.title == 'T'
assert isinstance(r, dict) and json.loads(json.dumps(r)) == r == dict(r)
for twin in (copy.copy(r), copy.deepcopy(r), pickle.loads(pickle.dumps(r))):
    assert twin == r and type(twin) is Record and twin.user.name == 'n'
inner = Record(raw='inner')
assert inner.raw == 'inner'
r.user.name = 'm'
assert r['user'] == {'name': 'm'}
del r.user.name
assert not hasattr(r.user, 'name') and not hasattr(r, '__array__')
try: r.htmlUrl
except AttributeError as e: assert "Did you mean 'html_url'?" in str(e) and 'labels' in str(e), e
else: assert False`},
		{name: "plain values with raw", code: `
import json, pickle
for value in ('text', 7, 2.5, [1, {'a': 1}]):
    got = await mcp_github.raw(answer={'structuredContent': {'result': value}})
    assert type(got) is not type(value) and got == value
    assert (repr(got), str(got), f'{got}', json.dumps(got)) == (repr(value), str(value), f'{value}', json.dumps(value))
    assert got.raw.structuredContent.result == value
    assert pickle.loads(pickle.dumps(got)) == value
assert got[1].a == 1`},
		{name: "a tool's error can be caught", code: `
from mcp.runtime import MCPError
import mcp as package
assert package.MCPError is MCPError
try: await mcp_github.raw(answer={'isError': True, 'content': [{'type': 'text', 'text': 'no such repo'}]})
except MCPError as e:
    assert (str(e), e.message, e.server, e.tool, e.raw.isError) == ('no such repo', 'no such repo', 'github', 'raw', True)
try: await mcp_github.raw(answer={'isError': True, 'content': []})
except MCPError as e: assert 'gave no reason' in str(e)
try: await mcp_jira.find()
except MCPError as e: assert (e.server, e.tool) == ('jira', 'find') and 'add "jira"' in str(e)
print('went on')`, stdout: "went on\n"},
		{
			name: "a tool's error uncaught", code: "await mcp_github.raw(answer={'isError': True, 'content': [{'type': 'text', 'text': 'bad'}]})", exit: 1,
			stderr: []string{"line 1, in <module>", "mcp.runtime.MCPError: bad"}, err: "MCPError: bad",
		},
	})
}

func TestRunnerArguments(t *testing.T) {
	t.Parallel()
	rtTable(t, rtHost{}, []rtCase{
		{name: "become JSON", code: `
import collections, dataclasses, datetime, decimal, enum, pathlib, uuid
class Color(enum.Enum): RED = 'red'
class Level(enum.IntEnum): LOW = 1
@dataclasses.dataclass
class Point: x: int; at: datetime.date
class Array:  # as numpy has them
    def tolist(self): return [1, 2]
day = datetime.date(2024, 2, 3)
for given, want in [
    ((1, 'a'), [1, 'a']), ({3, 1}, [1, 3]), ({1: None, True: 2}, {'1': 2}), (Color.RED, 'red'), ([Level.LOW], [1]),
    (Point(1, day), {'x': 1, 'at': '2024-02-03'}), (datetime.datetime(2024, 2, 3, 4), '2024-02-03T04:00:00'),
    (pathlib.Path('/tmp/x'), '/tmp/x'), (decimal.Decimal('1.50'), '1.50'), (uuid.UUID(int=1), str(uuid.UUID(int=1))),
    (Array(), [1, 2]), (collections.OrderedDict(a=1), {'a': 1}), (collections.ChainMap({'a': 1}), {'a': 1}),
    ('lone \ud800'.encode('utf-8', 'replace').decode(), 'lone ?'), (1e300, 1e300),
]:
    got = (await mcp_github.echo(value=given)).arguments.value
    assert got == want, (got, want)
assert len((await mcp_github.echo({'value': {'a', 1}})).arguments.value) == 2`},
		{name: "in every form of a call", code: `
from mcp import runtime
issue = {'title': 'T', 'self': 1, 'tool': 2}
for call in (mcp_github.echo(**issue), mcp_github.echo(issue), mcp_github['echo'](issue), mcp_servers['github'].echo(issue),
             runtime.call_tool('github', 'echo', issue), runtime.call_tool(mcp_github, 'echo', issue)):
    assert (await call) == {'tool': 'echo', 'arguments': issue}
assert (await mcp_github.echo({'a': 1}, b=2)).arguments == {'a': 1, 'b': 2}
assert (await mcp_github['weird-name']()).tool == 'weird-name'
assert (await mcp_github._2fa()).tool == '_2fa'
assert (await runtime.call_tool('github', 'echo')).arguments == {}`},
		{name: "that cannot, say where", code: `
import math
loop = []
loop.append(loop)
async def later(): pass
coroutine = later()
for given, text in [
    (dict(a=[{'b': math.nan}]), 'argument a[0].b: nan is not a JSON number'),
    (dict(a=b'x'), 'argument a: bytes is not JSON: decode() it to text, or base64 it'),
    (dict(a={'k': object()}), 'argument a.k: object is not JSON'),
    (dict(a=coroutine), 'argument a: coroutine is not JSON: await it first'),
    (dict(a=int), 'argument a: the class int is not JSON'),
    (dict(a=loop), 'the arguments contain themselves'),
]:
    try: await mcp_github.echo(**given)
    except (TypeError, ValueError) as e: assert text in str(e), e
    else: assert False, given
coroutine.close()`},
	})
}

func TestRunnerNamespace(t *testing.T) {
	t.Parallel()
	rtTable(t, rtHost{}, []rtCase{
		{name: "servers", code: `
from mcp.runtime import MCPError
assert list(mcp_servers) == ['github', 'file-system'] == list(LOADED_MCP_SERVERS) and type(LOADED_MCP_SERVERS) is tuple
assert type(mcp_servers).__name__ == 'Servers', 'the alias "servers" must not hide it'
assert repr(mcp_servers['jira']) == "<MCP server 'jira'>" and mcp_servers['file_system'] is not None
try: mcp_servers['git-hub']
except KeyError as e: assert isinstance(e, MCPError) and str(e) == "no MCP server 'git-hub'; there are: github, file-system, jira, servers. Did you mean 'github'?", e
assert repr(mcp_github) == "<MCP server 'github': issues and code>"
assert repr(mcp_github.echo) == "<tool 'echo' of MCP server 'github'>" and mcp_github.echo.__doc__ == 'echo()\n\ngives back'
assert 'issues' in mcp_github.__doc__ and 'echo' in dir(mcp_github)
for name in ('_x', '__len__', '__wrapped__', '_repr_html_'): assert not hasattr(mcp_github, name)
try: list(mcp_github)
except TypeError: pass
assert mcp.runtime.MCPError is MCPError
`},
		{name: "modules", code: `
import sys, mcp, mcp.servers.github as g
from mcp.servers import jira
from mcp.servers.github import create_issue
import mcp.servers.file_system
assert (await create_issue(a=1)).tool == 'create-issue' and (await g.echo()).tool == 'echo'
ns = {}
exec('from mcp.servers.github import *', ns)
assert {'create_issue', 'echo'} < set(ns) and 'list_tools' not in ns
for bad in ('from mcp.servers.github import nope', 'from mcp.servers import nope', 'import mcp.client', 'from mcp import ClientSession'):
    try: exec(bad)
    except ImportError: pass
    else: assert False, bad
try: g.createIssue
except AttributeError as e: assert "Did you mean 'create_issue'?" in str(e)`},
		{name: "a private name of a server", code: "mcp_github._x", exit: 1, stderr: []string{"MCP server 'github' has no attribute '_x'; there are: create_issue, echo, list_tools"}, err: "AttributeError: MCP server 'github' has no attribute '_x'; there are: create_issue, echo, list_tools"},
		{name: "a name that a module lacks", code: "from mcp.servers.github import xyz", exit: 1, stderr: []string{"; there are: create_issue, echo\n"}, err: "ImportError: cannot import name 'xyz' from 'mcp.servers.github' (unknown location); there are: create_issue, echo"},
		{name: "runtime", code: `
from mcp import runtime
from mcp.runtime import *
names = ('github', 'file-system', 'jira', 'servers')
assert runtime.discovered_servers() == names == await runtime.discovered_servers()
assert runtime.discovered_servers(detailed=True)[0].status == 'ready' == (await discovered_servers(detailed=True))[0].status
assert runtime.list_servers() == names == await runtime.list_servers() == runtime.list_servers_sync()
assert (await runtime.list_tools('github'))[0].alias == 'create_issue' == runtime.list_tools_sync('github')[0].alias
assert (await mcp_github.list_tools())[1].name == 'echo'
assert runtime.describe_server('github').tools[0].name == 'create-issue' == (await runtime.describe_server('github'))['tools'][0]['name']
good, bad = runtime.list_loaded_server_metadata()
assert good.name == 'github' and bad == {'name': 'file-system', 'alias': 'file_system', 'description': '', 'tools': [], 'error': 'file-system does not start'}, bad
assert type(await query_tool_docs('github')) is list and (await query_tool_docs('github', 'echo')).tool == 'echo'
assert len(query_tool_docs_sync('jira', detail='full')) == 2 and [d.tool for d in query_tool_docs_sync('github', tool='echo')] == ['echo']
assert len(await search_tool_docs('x', limit=1)) == 1 and len(search_tool_docs_sync('x')) == 2
assert 'runtime.' in capability_summary() == await capability_summary()
assert set(runtime.__all__) == {n for n in dir(runtime) if n.islower() and n[0] != '_'} | {'MCPError'}
assert all(getattr(runtime, n).__doc__ for n in runtime.__all__)`},
		{name: "the Python original's names", code: `
import mcp
import mcp.servers.github as g
assert mcp.__all__ == ['runtime', 'servers'] and issubclass(mcp.MCPError, RuntimeError)
assert [t['name'] for t in g.TOOLS] == ['create-issue', 'echo'] and set(g.TOOLS[0]) >= {'name', 'alias', 'description', 'input_schema'}, g.TOOLS
assert {alias: t['name'] for alias, t in g.TOOL_MAP.items()} == {'create_issue': 'create-issue', 'echo': 'echo'}
g.TOOLS.clear()
assert len(g.TOOLS) == 2
try: mcp_servers['nope']
except RuntimeError as e: assert isinstance(e, (mcp.MCPError, KeyError))
else: assert False`},
	})
}

func TestRunnerAsksNothingUnasked(t *testing.T) {
	t.Parallel()
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
		out := rtHost{}.run(t, py, "repr((mcp_github, mcp_github.echo, mcp_servers))\nimport mcp.servers.github\nfrom mcp import runtime\nruntime.discovered_servers()\nprint('asyncio' in __import__('sys').modules, 'linecache' in __import__('sys').modules)")
		if len(out.calls) != 0 {
			t.Errorf("calls = %v", out.calls)
		}
		if out.exit != 0 || out.stdout == "True True\n" {
			t.Errorf("exit %d, stdout %q, stderr %s", out.exit, out.stdout, out.stderr)
		}
	})
}

func TestRunnerReadmeExamples(t *testing.T) {
	t.Parallel()
	servers := []rtObject{}
	for _, name := range []string{"filesystem", "search", "github", "transcripts", "jira", "calendar", "api"} {
		servers = append(servers, rtObject{"name": name, "alias": name, "granted": true})
	}
	structured := func(v any) any { return rtObject{"structuredContent": v} }
	texts := func(text string) any { return rtObject{"content": []rtObject{{"type": "text", "text": text}}} }
	host := rtHost{start: rtObject{"servers": servers}, answer: func(method string, params rtObject) (any, error) {
		if method != "call_tool" {
			return rtAnswer(method, params)
		}
		args := params["arguments"].(rtObject)
		switch params["tool"] {
		case "read_file":
			return texts(fmt.Sprint("a TODO in ", args["path"])), nil
		case "list_directory":
			return structured(rtObject{"result": []string{"/tmp/a", "/tmp/b"}}), nil
		case "search":
			return structured(rtObject{"title": "TODO 1"}), nil
		case "get_transcript":
			return texts(strings.Repeat("t", 600)), nil
		case "search_issues", "list_items":
			return structured(rtObject{"result": []rtObject{{"id": "J-1"}, {"id": "J-2"}}}), nil
		case "get_issue":
			return structured(rtObject{"description": "URGENT " + args["id"].(string)}), nil
		}
		return structured(args), nil
	}}
	rtTable(t, host, []rtCase{
		{name: "read a file", code: "result = await mcp_filesystem.read_file(path='/tmp/test.txt')\nprint(result)", stdout: "a TODO in /tmp/test.txt\n"},
		{name: "chain two servers", code: `
data = await mcp_search.search(query="TODO")
await mcp_github.create_issue(repo='owner/repo', title=data.title)`, result: "{'repo': 'owner/repo', 'title': 'TODO 1'}"},
		{name: "loop over files", code: `
files = await mcp_filesystem.list_directory(path='/tmp')
for file in files:
    content = await mcp_filesystem.read_file(path=file)
    if 'TODO' in content:
        print(f"Found TODO in {file}")`, stdout: "Found TODO in /tmp/a\nFound TODO in /tmp/b\n"},
		{name: "slice a text", code: `
transcript = await mcp_transcripts.get_transcript(id=1)
summary = transcript[:500] + "..."
len(summary)`, result: "503"},
		{name: "read records", code: `
issues = await mcp_jira.search_issues(jql="project = X")
for issue in issues:
    details = await mcp_jira.get_issue(id=issue.id)
    if 'urgent' in details.description.lower(): print(issue.id)`, stdout: "J-1\nJ-2\n"},
		{
			name: "discover", code: `
from mcp import runtime
print(runtime.discovered_servers()[:2])
loaded = runtime.list_loaded_server_metadata()
first = runtime.describe_server(loaded[0]["name"])
for tool in first["tools"]: print(tool["alias"], tool.get("description", ""))
matches = await runtime.search_tool_docs("calendar events", limit=5)
for hit in matches: print(hit["server"], hit.get("description", ""))`,
			stdout: "('filesystem', 'search')\ncreate_issue makes one\necho gives back\ngithub gives back\njira \n",
		},
		{name: "in parallel", code: `
items = await mcp_api.list_items()
tasks = [mcp_api.process_item(id=item.id) for item in items]
await asyncio.gather(*tasks)`, result: "[{'id': 'J-1'}, {'id': 'J-2'}]"},
	})
}

func TestRunnerCallsRunInParallel(t *testing.T) {
	t.Parallel()
	// No reply is given before all calls are there: calls in a row would never end.
	code := map[string]string{
		"gather":  "print(sum([r.arguments.n for r in await asyncio.gather(*[mcp_github.echo(n=n) for n in range(10)])]))",
		"threads": "import threading\nfrom mcp import runtime\nts = [threading.Thread(target=runtime.search_tool_docs_sync, args=('x',)) for n in range(10)]\n[t.start() for t in ts] and [t.join() for t in ts]\nprint(45)",
	}
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
		for name, code := range code {
			var all sync.WaitGroup
			all.Add(10)
			host := rtHost{answer: func(method string, params rtObject) (any, error) {
				all.Done()
				all.Wait()
				return rtAnswer(method, params)
			}}
			if out := host.run(t, py, code); out.stdout != "45\n" {
				t.Errorf("%s: stdout %q, stderr %s", name, out.stdout, out.stderr)
			}
		}
	})
}

func TestRunnerBlockingCallsWorkAnywhere(t *testing.T) {
	t.Parallel()
	rtTable(t, rtHost{}, []rtCase{
		{name: "in a running loop", code: `
from mcp import runtime
import asyncio
async def f(): return runtime.list_tools_sync('github')[0].alias
await asyncio.gather(f(), mcp_github.echo(), f())
await asyncio.to_thread(runtime.list_servers_sync)
import threading
def other(): print(asyncio.run(mcp_github.echo(n=1)).arguments)
t = threading.Thread(target=other); t.start(); t.join()`, stdout: "{'n': 1}\n"},
		{name: "a cancelled call leaves the others alone", code: `
import asyncio
task = asyncio.ensure_future(mcp_github.echo(n=1))
await asyncio.sleep(0)
task.cancel()
(await mcp_github.echo(n=2)).arguments.n`, result: "2"},
		{name: "a forked process may not", code: `
import os
mcp.runtime.list_servers()
import warnings; warnings.simplefilter('ignore')
if os.fork() == 0:
    try: mcp.runtime.list_servers()
    except mcp.MCPError as e: print(e)
else: os.wait()`, stdout: "tools can only be called from the main process\n"},
	})
}

// The event loop that asks reads the answers, as long as no other thread asks
// and the socket holds what it sends, as it does in the cases that count
// threads.
func TestRunnerReadsInTheLoop(t *testing.T) {
	t.Parallel()
	const threads = "import asyncio, os, threading\ndef threads(): return len(os.listdir('/proc/self/task'))\n"
	rtTable(t, rtHost{}, []rtCase{
		{name: "without a thread", code: threads + `
print(sum([r.arguments.n for r in await asyncio.gather(*[mcp_github.echo(n=n) for n in range(50)])]), threads())`, stdout: "1225 1\n"},
		{name: "of large answers", code: threads + `
a, b = await asyncio.gather(mcp_github.echo(text='x' * 60000), mcp_github.echo(n=1))
print(len(a.arguments.text), b.arguments.n, threads())`, stdout: "60000 1 1\n"},
		{name: "one loop after the other", code: threads + `
def ask(n): return asyncio.run(mcp_github.echo(n=n)).arguments.n
print(ask(1), ask(2), threads())`, stdout: "1 2 1\n"},
		{name: "two loops at once", code: threads + `
async def many(): return sum([r.arguments.n for r in await asyncio.gather(*[mcp_github.echo(n=n) for n in range(100)])])
sums = []
all = [threading.Thread(target=lambda: sums.append(asyncio.run(many()))) for _ in range(3)]
[t.start() for t in all] and [t.join() for t in all]
print(sums)`, stdout: "[4950, 4950, 4950]\n"},
		{name: "two loops in turn", code: threads + `
first = asyncio.new_event_loop()
task = first.create_task(mcp_github.echo(n=1))
first.run_until_complete(asyncio.sleep(0))
second = asyncio.new_event_loop()
print(second.run_until_complete(mcp_github.echo(n=2)).arguments.n, first.run_until_complete(task).arguments.n)
first.close(), second.close()
print(asyncio.run(mcp_github.echo(n=3)).arguments.n)`, stdout: "2 1\n3\n"},
		{name: "of a loop that cannot", code: threads + `
class Loop(asyncio.SelectorEventLoop):
    def add_reader(self, fd, *args):
        if fd == 3: raise NotImplementedError
        return super().add_reader(fd, *args)
loop = Loop()
print(loop.run_until_complete(mcp_github.echo(n=1)).arguments.n, threads())
loop.close()`, stdout: "1 2\n"},
		{name: "and of a thread beside it", code: threads + `
from mcp import runtime
async def often(): return [(await mcp_github.echo(n=n)).arguments.n for n in range(200)]
def other(): return [len(runtime.list_tools_sync('github')) for _ in range(50)]
numbers, lengths = await asyncio.gather(often(), asyncio.to_thread(other))
print(numbers == list(range(200)), lengths == [2] * 50)`, stdout: "True True\n"},
	})
}

// TestRunnerSendsToAHostThatAnswersFirst: a host that takes nothing more while
// its answers are not taken is not waited for in vain.
func TestRunnerSendsToAHostThatAnswersFirst(t *testing.T) {
	t.Parallel()
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
		host := rtHost{script: func(conn net.Conn, _ *rtBuffer) {
			for msg := rtReceive(conn); msg != nil; msg = rtReceive(conn) {
				if msg["type"] == "call" {
					rtSend(conn, rtObject{"type": "reply", "id": msg["id"], "result": rtObject{"content": []any{}, "structuredContent": msg["params"]}})
				}
			}
		}}
		out := host.run(t, py, `
import asyncio
got = await asyncio.gather(*[mcp_github.echo(n=n, text='x' * 50000) for n in range(100)])
print(sum([r.named.n for r in got]))`)
		if out.stdout != "4950\n" {
			t.Errorf("stdout %q, stderr %.2000s", out.stdout, out.stderr)
		}
	})
}

func TestRunnerLargeValues(t *testing.T) {
	t.Parallel()
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
		out := rtHost{}.run(t, py, `
for size in (1 << 16, 1 << 20, 1 << 24):
    text = 'x' * size
    assert (await mcp_github.echo(text=text)).arguments.text == text
try: await mcp_github.echo(text='x' * (64 << 20))
except ValueError as e: assert 'one call can carry 50331648' in str(e)
else: assert False
text = await mcp_github.raw(answer={'content': [{'type': 'text', 'text': 'é' * (1 << 20)}]})
assert text == 'é' * (1 << 20)
print('x' * (1 << 20))`)
		if out.exit != 0 || len(out.stdout) != 1<<20+1 {
			t.Errorf("exit %d, %d bytes of output, stderr %.2000s", out.exit, len(out.stdout), out.stderr)
		}
	})
}

func TestRunnerSavesTools(t *testing.T) {
	t.Parallel()
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
		saved := rtObject{}
		var failed sync.Map // why, by name
		host := rtHost{answer: func(method string, params rtObject) (any, error) {
			switch method {
			case "save_tool":
				saved[params["name"].(string)] = params["source"]
			case "saved_source":
				return saved[params["name"].(string)], nil
			case "saved_failed":
				failed.Store(params["name"], params["source"])
				return nil, nil
			}
			return rtAnswer(method, params)
		}}
		out := host.run(t, py, `
import json, os.path as p
from mcp import runtime
from mcp.servers.github import echo
from collections import OrderedDict
def base(x):
    """Says so."""
    return json.dumps(OrderedDict(x=x)) + p.basename('/a/b')
assert runtime.save_tool(base) is base

if True:
    @runtime.save_tool
    async def fetch(n: int = 3):
        return base(n), (await echo(n=n)).arguments, await mcp_github.echo()

@runtime.save_tool
class Box:
    size = 4
from user_tools import base as again
assert again(1) == base(1)

def outer():
    x = 1
    def inner(): return x
    return inner
for wrong in (lambda: 1, len, json.dumps, int, 5, outer()):
    try: runtime.save_tool(wrong)
    except ValueError as e: print(e)
    else: assert False, wrong`)
		for _, want := range []string{"that has a name", "len is not written in Python", "dumps is not in this code", "int is not in this code", "enclosing function (x)"} {
			if !strings.Contains(out.stdout, want) {
				t.Errorf("stdout lacks %q:\n%s", want, out.stdout)
			}
		}
		if out.exit != 0 || len(saved) != 3 || strings.Contains(fmt.Sprint(saved), "save_tool") {
			t.Fatalf("exit %d, saved %v, stderr %s", out.exit, saved, out.stderr)
		}

		saved["broken"], saved["useless"] = "def broken(:", "x = 1"
		host.start = rtObject{"saved": slices.Sorted(maps.Keys(saved))}
		for _, c := range []rtCase{
			{name: "by name", code: "await fetch(2)", result: `('{"x": 2}b', {'n': 2}, {'arguments': {}, 'tool': 'echo'})`},
			{
				name: "by import", code: "from user_tools import *\nBox.size, base.__doc__, base.__module__", result: "(4, 'Says so.', 'user_tools')",
			},
			{name: "broken", code: "try: broken\nexcept NameError: print('no')", stdout: "no\n"},
			{name: "unused", code: "x = 1\nx", result: "1"},
			{name: "the code's own wins", code: "def base(): return 'mine'\nbase()", result: "'mine'"},
			{name: "source lines", code: "await fetch(object())", exit: 1, stderr: []string{`File "<user_tools.fetch>"`, "return base(n)", "not JSON serializable"}, err: "TypeError: Object of type object is not JSON serializable"},
		} {
			t.Run(c.name, func(t *testing.T) { c.check(t, host.run(t, py, c.code)) })
		}
		for name, want := range map[string]string{"broken": "SyntaxError: ", "useless": "its source does not define useless"} {
			if why, _ := failed.Load(name); !strings.HasPrefix(fmt.Sprint(why), want) {
				t.Errorf("%s was left out for %q, want %q", name, why, want)
			}
		}
	})
}

// A run that ends itself in other ways leaves no done, or one that the exit
// status confirms; the runner never adds noise.
func TestRunnerEndsWithTheCodesStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, code, stdout string
		exit, done         int
	}{
		{"os._exit", "import os\nos._exit(7)", "", 7, 0},
		{"exec", "import os\nos.execvp('sh', ['sh', '-c', 'echo exec; exit 5'])", "exec\n", 5, 0},
		{"fd 3 closed", "import os\nos.close(3)\nprint('on')\nraise SystemExit(6)", "on\n", 6, 0},
		{"fd 3 closed after a call", "import os\nawait mcp_github.echo()\nos.close(3)\ntry: await mcp_github.echo()\nexcept mcp.MCPError as e: print(e)", "the host closed the connection\n", 0, 0},
		{"fd 3 is now a file", "import os\nos.close(3)\nf = open('x', 'w+')\nassert f.fileno() == 3\nimport atexit\natexit.register(lambda: print(repr(open('x').read())))", "''\n", 0, 0},
		{"fd 3 half shut", "import socket\nsocket.socket(fileno=3).shutdown(socket.SHUT_WR)\nprint('on')\nraise SystemExit(6)", "on\n", 6, 0},
		{"fork returns through us", "import os\nif os.fork() == 0: print('child')\nelse:\n    os.wait()\n    print('parent')", "child\nparent\n", 0, 1},
		{"fork that raises", "import os\nif os.fork() == 0: raise SystemExit(3)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))", "3\n", 0, 1},
		{"everything broken", "import sys, json, os\njson.dumps = os.write = None\nsys.stdout = sys.stderr = None\nsys.exit(9)", "", 9, 0},
		{"error without stderr", "import os\nos.close(2)\n1/0", "", 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
				out := rtHost{}.run(t, py, c.code)
				if out.exit != c.exit || out.stdout != c.stdout || len(out.done) != c.done || out.stderr != "" {
					t.Errorf("%+v, want exit %d, stdout %q, %d done, no stderr", out, c.exit, c.stdout, c.done)
				}
			})
		})
	}
}

func TestRunnerSurvivesHostileReplies(t *testing.T) {
	t.Parallel()
	code := `
from mcp import runtime
def ask():
    try: return runtime.list_servers_sync()
    except runtime.MCPError as e: return str(e)[:30]
print(ask()); print(ask()); print(ask()); print(ask())`
	bridgetest.EachPython(t, func(t *testing.T, py bridgetest.Python) {
		host := rtHost{script: func(conn net.Conn, _ *rtBuffer) {
			deep := `{"type":"reply","id":2,"result":` + strings.Repeat("[", 200000) + strings.Repeat("]", 200000) + `}`
			for i, frames := range [][]string{
				{`{"type":"reply","id":99,"result":1}`, `{"type":"news"}`, `{"type":"reply","id":1,"result":["a"]}`},
				{deep},
				{`not JSON`},
				{`[1, 2]`},
			} {
				if msg := rtReceive(conn); msg["id"] != float64(i+1) {
					t.Errorf("call %d = %v", i+1, msg)
				}
				for _, frame := range frames {
					rtSendBytes(conn, []byte(frame))
				}
			}
			rtReceive(conn) // done
		}}
		out := host.run(t, py, code)
		want := "('a',)\n" + strings.Repeat("the host's answer cannot be re\n", 3)
		if out.exit != 0 || out.stdout != want {
			t.Errorf("exit %d, stdout %q, stderr %.2000s", out.exit, out.stdout, out.stderr)
		}
	})
}
