"""Functions that runs save for later ones."""
from __future__ import annotations

from typing import Any

import pytest
from conftest import echo
from pythons import Case, Python, each_python, table


class Store:
    """A host that keeps what is saved."""

    def __init__(self) -> None:
        self.saved: dict[str, str] = {}
        self.failed: dict[str, str] = {}  # why, by name

    def answer(self, method: str, params: Any) -> Any:
        if method == "save_tool":
            self.saved[params["name"]] = params["source"]
            return None
        if method == "saved_source":
            return self.saved[params["name"]]
        if method == "saved_failed":
            self.failed[params["name"]] = params["source"]
            return None
        return echo(method, params)


SAVING = '''
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
    else: assert False, wrong'''
STORES: dict[Python, Store] = {}  # of runs that have saved


@pytest.fixture
def store(python: Python, run: Any) -> Store:
    """Returns what a run of the same Python has saved, and two that cannot be used."""
    if python not in STORES:
        store = Store()
        result = run(SAVING, store.answer)
        for want in ("that has a name", "len is not written in Python", "dumps is not in this code",
                     "int is not in this code", "enclosing function (x)"):
            assert want in result.stdout
        assert result.exit == 0, result.stderr
        assert len(store.saved) == 3 and "save_tool" not in str(store.saved)
        store.saved.update(broken="def broken(:", useless="x = 1")
        STORES[python] = store
    return STORES[python]


@table([
    Case("by name", "await fetch(2)", result="('{\"x\": 2}b', {'n': 2}, {'arguments': {}, 'tool': 'echo'})"),
    Case("by import", """from user_tools import *
Box.size, base.__doc__, base.__module__""", result="(4, 'Says so.', 'user_tools')"),
    Case("broken", "try: broken\nexcept NameError: print('no')", stdout="no\n"),
    Case("unused", "x = 1\nx", result="1"),
    Case("the code's own wins", "def base(): return 'mine'\nbase()", result="'mine'"),
    Case("source lines", "await fetch(object())", exit=1, stderr=['File "<user_tools.fetch>"', "return base(n)", "not JSON serializable"], error="TypeError: Object of type object is not JSON serializable"),
])
def test_saved_tools_are_used(case: Case, store: Store, run: Any) -> None:
    case.check(run(case.code, store.answer, saved=sorted(store.saved)))


@each_python
def test_a_saved_tool_that_cannot_be_defined_is_left_out(store: Store, run: Any) -> None:
    run("try: broken\nexcept NameError: pass\nfrom user_tools import *", store.answer, saved=sorted(store.saved))
    assert store.failed["broken"].startswith("SyntaxError: ")
    assert store.failed["useless"] == "its source does not define useless"


@each_python
@pytest.mark.parametrize(("code", "why"), [
    ("def helper(): pass\ndef f(): helper()\nruntime.save_tool(f)",
     "f uses helper, which only this code has: save what it calls first"),
    ("x = object()\ndef f(): return x\nruntime.save_tool(f)", "f uses x, which"),
    ("def helper(): pass\nruntime.save_tool(helper)\ndef f(): helper()\nruntime.save_tool(f)", None),
    ("@runtime.save_tool\ndef f(): return later()\ndef later(): pass",
     "f uses later, which is not defined yet: define it above"),
    ("def f():\n    global made\n    made = 1\n    return made, len([each for each in (1, 2)])\nruntime.save_tool(f)", None),
    ("class C:\n    def __init__(self): super().__init__(); self.kind = __class__\nruntime.save_tool(C)", None),
    ("def f(): return f\nruntime.save_tool(f)", None),
    ("class C: pass\ndef f(x: C): return x\nruntime.save_tool(f)", "f uses C, which"),
    ("count = 0\ndef f():\n    global count\n    count += 1\n    return count\nruntime.save_tool(f)", None),
])
def test_what_cannot_be_had_again_is_not_saved(run: Any, code: str, why: str | None) -> None:
    store = Store()
    store.saved["helper"] = "def helper(): return 'another'\n"
    error = run("from mcp import runtime\n" + code, store.answer, saved=["helper"]).said("error")
    assert error is None if why is None else why in error
