"""Whole runs, as the host sees them."""
from __future__ import annotations

from typing import Any

import pytest
from conftest import Run


def test_prints_and_gives_the_last_value(run: Any) -> None:
    result = run("print('hi')\n20 + 22")
    assert (result.stdout, result.stderr, result.exit) == ("hi\n", "", 0)
    assert result.done == [{"type": "done", "exitCode": 0, "result": "42"}]


def test_calls_a_tool(run: Any) -> None:
    result = run("print((await mcp_github.create_issue(title='a')).arguments.title)")
    assert result.stdout == "a\n"
    call, = result.calls
    assert call["method"] == "call_tool"
    assert call["params"] == {"server": "github", "tool": "create_issue", "args": [], "named": {"title": "a"}, "line": 1}


def test_calls_have_the_lines_of_the_code(run: Any) -> None:
    """Also those that a task of its own awaits, in which no frame is of the code."""
    result = run("""import asyncio
await mcp_github.echo(n=0)
await asyncio.gather(
    mcp_github.echo(n=1),

    asyncio.wait_for(mcp_github.echo(n=2), 60), *[
        mcp_github.echo(n=n) for n in (3, 4)])
async def later(call):
    return await call
await asyncio.gather(later(mcp_github.echo(n=5)))
def made(): return mcp_github.echo(n=6)
await asyncio.create_task(made())
print(1)""")
    assert result.stdout == "1\n"
    lines = {call["params"]["named"]["n"]: call["params"].get("line") for call in result.calls}
    assert lines == {0: 2, 1: 4, 2: 6, 3: 7, 4: 7, 5: 9, 6: 11}


def test_a_tool_can_begin_a_thread(run: Any) -> None:
    """No frame is below it then."""
    result = run("""import _thread, sys, time
failed, dropped = [], []
sys.unraisablehook = failed.append
class Argument:
    def __del__(self): dropped.append(self)
_thread.start_new_thread(mcp_github.echo, (Argument(),))
while not failed and not dropped: time.sleep(0.01)
print([str(each.exc_value) for each in failed])""")
    assert result.stdout == "[]\n"


def test_code_does_not_meet_the_runner(run: Any) -> None:
    code = """
import builtins, mcp.runtime, os, pickle, sys
assert __builtins__ is vars(builtins) and __name__ == '__main__'
assert not [name for name in sys.modules if 'toolcell' in name]
assert sys.path[0] == os.getcwd() and not [path for path in sys.path if 'runner' in path], sys.path
try: import toolcell_runner
except ModuleNotFoundError: pass
else: raise AssertionError
print(pickle.loads(pickle.dumps(mcp.runtime.Record(a=1))).a, mcp.runtime.Record)
"""
    result = run(code)
    assert (result.stdout, result.stderr) == ("1 <class 'mcp.runtime.Record'>\n", "")


@pytest.mark.parametrize("spoil", [
    "import sys; sys.modules.clear()",
    "import sys; sys.path.clear(); sys.meta_path.clear(); sys.path_hooks.clear()",
    "import builtins; builtins.__import__ = None",
    "import os, tempfile; os.chdir(tempfile.mkdtemp())",
])
def test_code_that_breaks_imports_does_not_break_the_runner(run: Any, spoil: str) -> None:
    result = run(spoil + "\n{'some text ' * 9: list(range(99)), 'more': 'x' * 99}")
    assert result.exit == 0
    assert result.done[0]["result"].startswith("{'some text some text")


def test_help_shows_names_only(run: Any) -> None:
    result = run("import inspect\nprint(inspect.signature(mcp.runtime.query_tool_docs))")
    assert result.stdout == "(server, tool=None, detail='summary')\n"


def test_the_manual_can_be_read(run: Any) -> None:
    assert run("print(mcp.runtime.capability_summary()[:12])").stdout == "# run_python\n"


def test_a_session_keeps_names(start: Any) -> None:
    runner, first, second = start(), Run(), Run()
    runner.start("x = 1\nasync def f(): return x", session=True)
    runner.serve(first, lambda method, params: None)
    assert first.done[0]["kept"]
    runner.start("x += 1\nawait f()", session=True)
    runner.serve(second, lambda method, params: None)
    assert second.done[0]["result"] == "2"
    runner.socket.close()
    runner.finish(second)


def test_ends_when_the_host_hangs_up(start: Any) -> None:
    runner = start()
    runner.socket.close()
    assert runner.finish(Run()).exit == 1


def test_a_call_fails_when_the_host_hangs_up(start: Any) -> None:
    runner = start()
    runner.start("try: await mcp_github.echo()\nexcept mcp.MCPError as e: print(e)")
    assert runner.receive()["type"] == "call"
    runner.socket.close()
    assert runner.finish(Run()).stdout == "the host closed the connection\n"


def test_a_reply_that_is_no_json_fails_the_calls(start: Any) -> None:
    runner, result = start(), Run()
    runner.start("try: await mcp_github.echo()\nexcept mcp.MCPError as e: print(e)")
    runner.receive()
    runner.send_bytes(b"{")
    runner.serve(result, lambda method, params: None)
    assert runner.finish(result).stdout.startswith("the host's answer cannot be read: ")


def test_input_asks_the_host(run: Any) -> None:
    lines = iter(["one\n", "zwei ü\n", "three\n", None, "four\n", None])

    def answer(method: str, params: Any) -> Any:
        assert method == "read_input"
        return next(lines)

    result = run("import sys\nprint(repr(input('? ')), repr(input()))\nprint(sys.stdin.read())\nprint(list(sys.stdin))",
                 answer, input=True)
    assert result.stdout == "? 'one' 'zwei ü'\nthree\n\n['four\\n']\n"


def test_an_interrupted_input_raises(run: Any) -> None:
    def answer(method: str, params: Any) -> Any:
        raise RuntimeError("KeyboardInterrupt")

    result = run("try: input()\nexcept KeyboardInterrupt: print('stopped')\ninput()", answer, input=True)
    assert result.stdout == "stopped\n"
    assert result.done[0]["error"] == "KeyboardInterrupt"


def test_a_session_completes_names(start: Any) -> None:
    runner = start()

    def ask(**more: Any) -> Any:
        run = Run()
        runner.start(**{"code": "", "session": True, **more})
        runner.serve(run, lambda method, params: None)
        done, = run.done
        assert done["kept"]
        return done.get("result")

    ask(code="import os\nvalue = 7\nclass C:\n    def __dir__(self): raise SystemExit\nc = C()")
    assert ask(complete="valu") == "value"
    assert ask(complete="value.bit_le") == "bit_length"
    assert "path" in ask(complete="os.pa").split()
    assert ask(complete="no_such.x") == ask(complete="c.x") == ""
    assert ask(code="value + 1") == "8"
    run = Run()
    runner.start("1/0", session=True)
    runner.serve(run, lambda method, params: None)
    runner.socket.close()
    assert '"<run_python 3>"' in runner.finish(run).stderr  # a completion is no run


def test_the_code_has_a_file(run: Any) -> None:
    result = run("print(__file__)\n1/0", file="dir/script.py")
    assert result.stdout == "dir/script.py\n"
    assert 'File "dir/script.py", line 2' in result.stderr
    assert run("'__file__' in globals()").done[0]["result"] == "False"


def test_the_time_that_the_host_held_the_run_is_none_for_event_loops(run: Any) -> None:
    result = run("""
import asyncio, resource, time
async def main():
    loop = asyncio.get_running_loop()
    await mcp_github.get()
    begun = loop.time()
    time.sleep(0.01)  # the code is paused, and the host says for how long
    _, hard = resource.getrlimit(10)
    resource.setrlimit(10, (3_000_000, hard))
    return round(begun - loop.time())
print(asyncio.run(main()))
""")
    assert result.stdout == "3\n", result.stderr


def test_a_module_named_resource_breaks_no_event_loop(run: Any) -> None:
    result = run("""
import asyncio
open("resource.py", "w").write("")
async def main(): return (await mcp_github.get()).tool, asyncio.get_running_loop().time() > 0
print(asyncio.run(main()))
""")
    assert result.stdout == "('get', True)\n", result.stderr
