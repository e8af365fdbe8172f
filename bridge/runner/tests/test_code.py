"""What code may do, and how it ends, as Python does it."""
from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
from pythons import Case, Python, each_python, table


@table([
    Case("nothing"),
    Case("print", "print('hi')", stdout="hi\n"),
    Case("a trailing expression is the result", "x = 20\nx + 22", result="42"),
    Case("None is no result", "print('a')", stdout="a\n"),
    Case("a lone string is the result", "'text'", result="'text'"),
    Case("a docstring stays one", "'doc'\n__doc__", result="'doc'"),
    Case("future imports reach the last expression", """
from __future__ import annotations
def f(x: not_there): pass
(lambda: f.__annotations__)()""", result="{'x': 'not_there'}"),
    Case("windows line ends", "if True:\x0d\n    x = 1\x0d\nx\x0d\n", result="1"),
    Case("top-level await in every form", """
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
one, seen, await twice(4)""", result="(1, [1, 2, 1, 2, 2, 4, 2, 4], 8)"),
    Case("a coroutine as the last value is awaited", "async def f(): return 7\nf()", result="7"),
    Case("so it is after an await", """import asyncio
async def f(): return 7
await asyncio.sleep(0)
f()""", result="7"),
    Case("asyncio need not be imported", "await asyncio.sleep(0)\nprint(asyncio.__name__)", stdout="asyncio\n"),
    Case("asyncio.run in code without await", "import asyncio\nasync def f(): return 3\nasyncio.run(f())", result="3"),
    Case("asyncio.run in code with await", """import asyncio
async def f(): return 3
await f()
asyncio.run(f())""", result="3"),
    Case("what asyncio runs is asyncio's own again at the end", """
import asyncio, atexit
atexit.register(lambda: print(all('runner-' not in f.__code__.co_filename for f in (asyncio.run, asyncio.all_tasks, asyncio.SelectorEventLoop.run_forever) if hasattr(f, '__code__'))))
await asyncio.sleep(0)""", stdout="True\n"),
    Case("main module", """
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
here.x""", result="5"),
    Case("multiprocessing with fork", """
import multiprocessing
def f(x): return x * x
with multiprocessing.get_context('fork').Pool(2) as pool: squares = pool.map(f, [1, 2, 3])
squares""", result="[1, 4, 9]"),
    Case("input is at its end", "input()", exit=1, stderr=['File "<run_python>", line 1', "EOFError"], error="EOFError: EOF when reading a line"),
    Case("every way to stdout", r"""
import os, subprocess, ctypes
print('{"type":"done","exitCode":0}')
subprocess.run(['echo', 'sub'])
os.write(1, b'raw\n')
ctypes.CDLL(None).printf(b'from C\n')""", stdout='{"type":"done","exitCode":0}\nsub\nraw\nfrom C\n', result="7"),
    Case("lone surrogates can be printed", "print('a\\ud800\\xe9')", stdout="a\\ud800é\n"),
    Case("lone surrogates in the result", "'\\ud800'", result="'\\ud800'"),
    Case("atexit and threads end as in Python", """
import atexit, threading
atexit.register(print, 'atexit')
said = threading.Event()
threading.Thread(target=lambda: (said.wait(), print('thread'))).start()
print('main')
said.set()""", stdout="main\nthread\natexit\n"),
    Case("a long result is cut", "out = 'é' * 50000\nout", result="'" + "é" * 32753 + " ... cut: 100002 bytes in all"),
    Case("subprocesses get no socket", """
import subprocess, sys
subprocess.run([sys.executable, '-c', 'import os; os.fstat(3)'], close_fds=False, capture_output=True).returncode""", result="1"),
    Case("a name of ours is not left behind", "x = [n for n in globals() if '<' in n]\nx", result="[]"),
])
def test_code_runs_as_in_python(case: Case, run: Any) -> None:
    case.check(run(case.code))


@table([
    Case("traceback with source lines", "def f(a):\n    return 1 / a\n\nprint(1)\nf(0)", stdout="1\n", exit=1, stderr=["""Traceback (most recent call last):
  File "<run_python>", line 5, in <module>
    f(0)
""", 'File "<run_python>", line 2, in f\n    return 1 / a\n', "ZeroDivisionError: division by zero\n"], error="ZeroDivisionError: division by zero"),
    Case("carets", "x = {}\ny = x['a']['b'] + 1", since=11, exit=1, stderr=["    y = x['a']['b'] + 1\n        ~^^^^^\n"], error="KeyError: 'a'"),
    Case("no frame of asyncio", "async def f():\n    raise ValueError('bad')\nawait f()", exit=1, stderr=["line 3, in <module>\n    await f()", "line 2, in f\n", "ValueError: bad"], hidden=["asyncio"], error="ValueError: bad"),
    Case("frames of libraries are counted", "import json\njson.loads('{')", exit=1, stderr=["<run_python>", "  [3 frames inside json]\n", "JSONDecodeError"], hidden=["decoder.py"], error="JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
    Case("chained", """
async def f():
    await mcp_jira.find()
try: await f()
except Exception as e:
    try: await f()
    except Exception: raise KeyError('x') from e""", exit=1, error="KeyError: 'x'", stderr=["in f\n    await mcp_jira.find()\n", 'MCPError: add "jira" to servers', "direct cause", "KeyError: 'x'"]),
    Case("exception groups", """
def fail():
    mcp_servers['nope']
errors = []
for _ in range(2):
    try: fail()
    except Exception as e: errors.append(e)
raise ExceptionGroup('both', errors)""", since=11, exit=1, error="ExceptionGroup: both (2 sub-exceptions)", stderr=["ExceptionGroup: both", "in fail", "mcp_servers['nope']", "no MCP server 'nope'"]),
    Case("invalid syntax", "x = 1\nx = = 2\n", exit=1, error="SyntaxError: invalid syntax (<run_python>, line 2)", stderr=['  File "<run_python>", line 2\n    x = = 2\n', "^\nSyntaxError: invalid syntax\n"], hidden=["Traceback"]),
    Case("syntax found late", "x = 1\nreturn x", exit=1, error="SyntaxError: 'return' outside function (<run_python>, line 2)", stderr=["line 2\n    return x\n", "^", "SyntaxError: 'return' outside function"], hidden=["Traceback"]),
    Case("syntax of code in code", "exec('a b')", exit=1, error="SyntaxError: invalid syntax (<string>, line 1)", stderr=["Traceback", "exec('a b')", "SyntaxError"]),
    Case("deep recursion is folded", "def f(): f()\nf()", exit=1, stderr=["Previous line repeated", "RecursionError"], error="RecursionError: maximum recursion depth exceeded"),
    Case("no memory", "x = bytearray(1 << 60)", exit=1, stderr=["x = bytearray(1 << 60)", "MemoryError"], error="MemoryError"),
    Case("a repr that raises", "class C:\n    def __repr__(self): raise ValueError('shy')\nC()", exit=1, stderr=["line 2, in __repr__", "ValueError: shy"], error="ValueError: shy"),
    Case("a str that raises", """class E(Exception):
    def __str__(self): raise ValueError
raise E""", exit=1, stderr=["E: <"], error="E: <exception str() failed>"),
    Case("long messages are cut in done", "raise ValueError('x' * 5000)", exit=1, stderr=["ValueError: " + "x" * 1900, "[… 1,013 characters left out …]"], hidden=["x" * 2001], error="ValueError: " + "x" * 1988),
    Case("sys.exit", "import sys\nsys.exit(3)", exit=3),
    Case("sys.exit in a task", "import asyncio, sys\nawait asyncio.sleep(0)\nsys.exit(4)", exit=4),
    Case("sys.exit in another task", """import asyncio, sys
async def f(): sys.exit(5)
asyncio.create_task(f())
await asyncio.sleep(60)""", exit=5),
    Case("sys.exit without code", "raise SystemExit"),
    Case("exit", "exit()"),
    Case("a function of runtime without its arguments", "mcp.runtime.call_tool()", exit=1, stderr=['File "<run_python>", line 1', "TypeError: "],
         hidden=["runtime.py"], error="TypeError: Runtime.call_tool() missing 2 required positional arguments: 'server' and 'tool'"),
    Case("sys.exit with text", "import sys\nsys.exit('gone')", exit=1, stderr=["gone\n"], hidden=["Traceback"]),
    Case("sys.exit as the system cuts it", "import sys\nsys.exit(-1)", exit=255),
    Case("an excepthook of the code", """import sys
sys.excepthook = lambda t, e, tb: print('hook', e, tb.tb_lineno)
1/0""", exit=1, stdout="hook division by zero 3\n", error="ZeroDivisionError: division by zero"),
    Case("source lines for the code's own tracebacks", """import traceback
try: 1/0  # here
except Exception: traceback.print_exc()""", stderr=["try: 1/0  # here", "ZeroDivisionError"]),
    Case("source lines for inspect", "import inspect\ndef f(): return 'body'\ninspect.getsource(f)", result="\"def f(): return 'body'\\n\""),
    Case("a call that is never awaited", "mcp_github.echo(a=1)\nx = 1", exit=1, stderr=["""line 1, in <module>
    mcp_github.echo(a=1)
RuntimeError: mcp_github.echo() was never awaited"""], error="RuntimeError: mcp_github.echo() was never awaited, so it did not run: write await mcp_github.echo(…)"),
    Case("a call by a name that is no identifier", "mcp_servers['github']['weird-name']()\nx = 1", exit=1, stderr=["mcp_github['weird-name']() was never awaited"], error="RuntimeError: mcp_github['weird-name']() was never awaited, so it did not run: write await mcp_github['weird-name'](…)"),
])
def test_errors_are_reported_as_in_python(case: Case, run: Any) -> None:
    case.check(run(case.code))


@each_python
@pytest.mark.parametrize("code", ['x = "\0"', 'x = "\ud800"', "\0\1\x7f\0ELF"])
def test_broken_code_is_refused(run: Any, code: str) -> None:
    result = run(code)
    assert result.exit == 1
    assert "Error: " in result.said("error") and "Error: " in result.stderr


@each_python
@pytest.mark.parametrize(("code", "stdout", "status", "done"), [
    pytest.param("import os\nos._exit(7)", "", 7, 0, id="os._exit"),
    pytest.param("import os\nos.execvp('sh', ['sh', '-c', 'echo exec; exit 5'])", "exec\n", 5, 0, id="exec"),
    pytest.param("import os\nos.close(3)\nprint('on')\nraise SystemExit(6)", "on\n", 6, 0, id="fd 3 closed"),
    pytest.param("""import os
await mcp_github.echo()
os.close(3)
try: await mcp_github.echo()
except mcp.MCPError as e: print(e)""", "the host closed the connection\n", 0, 0, id="fd 3 closed after a call"),
    pytest.param("""import os
os.close(3)
f = open('x', 'w+')
assert f.fileno() == 3
import atexit
atexit.register(lambda: print(repr(open('x').read())))""", "''\n", 0, 0, id="fd 3 is now a file"),
    pytest.param("""import socket
socket.socket(fileno=3).shutdown(socket.SHUT_WR)
print('on')
raise SystemExit(6)""", "on\n", 6, 0, id="fd 3 half shut"),
    pytest.param("""import os
if os.fork() == 0: print('child')
else:
    os.wait()
    print('parent')""", "child\nparent\n", 0, 1, id="fork returns through us"),
    pytest.param("""import os
if os.fork() == 0: raise SystemExit(3)
print(os.waitstatus_to_exitcode(os.wait()[1]))""", "3\n", 0, 1, id="fork that raises"),
    pytest.param("""import sys, json, os
json.dumps = os.write = None
sys.stdout = sys.stderr = None
sys.exit(9)""", "", 9, 0, id="everything broken"),
    pytest.param("import os\nos.close(2)\n1/0", "", 1, 1, id="error without stderr"),
])
def test_the_exit_status_is_that_of_the_code(run: Any, code: str, stdout: str, status: int, done: int) -> None:
    """A run that ends itself in other ways leaves no message at its end, or one that the exit status confirms."""
    result = run(code)
    assert (result.stdout, result.stderr, result.exit, len(result.done)) == (stdout, "", status, done)


@table([
    Case("servers", r"""
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
"""),
    Case("modules", """
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
except AttributeError as e: assert "Did you mean 'create_issue'?" in str(e)"""),
    Case("a private name of a server", "mcp_github._x", exit=1, stderr=["MCP server 'github' has no attribute '_x'; there are: create_issue, echo, list_tools"], error="AttributeError: MCP server 'github' has no attribute '_x'; there are: create_issue, echo, list_tools"),
    Case("a name that a module lacks", "from mcp.servers.github import xyz", exit=1, stderr=["; there are: create_issue, echo\n"], error="ImportError: cannot import name 'xyz' from 'mcp.servers.github' (unknown location); there are: create_issue, echo"),
    Case("runtime", """
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
assert all(getattr(runtime, n).__doc__ for n in runtime.__all__)"""),
    Case("the Python original's names", """
import mcp
import mcp.servers.github as g
assert mcp.__all__ == ['runtime', 'servers'] and issubclass(mcp.MCPError, RuntimeError)
assert [t['name'] for t in g.TOOLS] == ['create-issue', 'echo'] and set(g.TOOLS[0]) >= {'name', 'alias', 'description', 'input_schema'}, g.TOOLS
assert {alias: t['name'] for alias, t in g.TOOL_MAP.items()} == {'create_issue': 'create-issue', 'echo': 'echo'}
g.TOOLS.clear()
assert len(g.TOOLS) == 2
try: mcp_servers['nope']
except RuntimeError as e: assert isinstance(e, (mcp.MCPError, KeyError))
else: assert False"""),
])
def test_names_that_code_begins_with(case: Case, run: Any) -> None:
    case.check(run(case.code))


@each_python
def test_nothing_is_asked_unasked(run: Any) -> None:
    result = run("""
import sys
repr((mcp_github, mcp_github.echo, mcp_servers))
import mcp.servers.github
from mcp import runtime
runtime.discovered_servers()
print('asyncio' in sys.modules, 'linecache' in sys.modules)
""")
    assert (result.calls, result.exit) == ([], 0)
    assert result.stdout != "True True\n"


@each_python
def test_the_start_is_lean(run: Any, python: Python) -> None:
    """Each of these modules, and what it brings along, takes longer to import than most runs take."""
    heavy = """import sys
print({'json', 're', 'enum', 'functools', 'linecache', 'asyncio', 'threading', 'typing'}.intersection(sys.modules))"""
    # What the interpreter itself brings along differs.
    bare = subprocess.run([python.path, "-s", "-u", "-X", "utf8", "-c", heavy], capture_output=True, text=True, check=True)
    assert set(re.findall(r"'\w+'", run(heavy).stdout)) <= set(re.findall(r"'\w+'", bare.stdout))
