"""How values are shown, and what is said of errors."""
from __future__ import annotations

from typing import Any

import pytest
from pythons import Case, each_python, table

WIDE = """{"name": "Ada", "langs": ["en", "fr"], "address": {"street": "12 St James's Square", "city": "London"}, \
"note": "first"}"""


@table([
    Case("short list", "[1, 'a', None]", result="[1, 'a', None]"),
    Case("nested and short", "{'a': [1, (2,), {3}], 'b': {}, 'c': set(), 'd': frozenset({1}), 'e': ()}", result="{'a': [1, (2,), {3}], 'b': {}, 'c': set(), 'd': frozenset({1}), 'e': ()}"),
    Case("wide", "[" + WIDE + "]", result="""[{'name': 'Ada',
  'langs': ['en', 'fr'],
  'address': {'street': "12 St James's Square", 'city': 'London'},
  'note': 'first'}]"""),
    Case("numbers fill lines", "out = list(range(60))\nout", result="""[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50,
 51, 52, 53, 54, 55, 56, 57, 58, 59]"""),
    Case("a container in itself", "a = [1, 2]\na.append(a)\na", result="[1, 2, …]"),
    Case("repr of its own", """from collections import Counter, OrderedDict, namedtuple
P = namedtuple('P', 'x y')
[Counter('aab'), P(1, 2)]""", result="[Counter({'a': 2, 'b': 1}), P(x=1, y=2)]"),
    Case("answers of tools", """from mcp import runtime
(await mcp_github.echo(a=1, b=[2])).arguments""", result="{'a': 1, 'b': [2]}"),
    Case("repr that raises", """class Bad:
    def __repr__(self): raise ValueError('no')
[Bad()]""", exit=1, error="ValueError: no", stderr=["line 2, in __repr__"]),
])
def test_values_are_shown_as_in_a_notebook(case: Case, run: Any) -> None:
    case.check(run(case.code))


@each_python
@pytest.mark.parametrize(("code", "most", "wanted"), [
    pytest.param("list(range(100000))", 1300, ["[0, 1, 2", " 199, … 99,800 more, 100,000 in all]"], id="many items"),
    pytest.param("{f'key{i}': 'x' * 50 for i in range(5000)}", 21000, ["{'key0': 'xxx", "'key199': ", "… 4,800 more, 5,000 in all}"], id="many keys"),
    pytest.param("{'text': 'é' * 100000}", 2100, ["… (100,000 characters)}"], id="a long text inside"),
    pytest.param("deep = []\nfor i in range(100000): deep = [deep]\ndeep", 200, ["…"], id="deep"),
    pytest.param("[[['x' * 50] * 500] * 500] * 500", 21000, ["… cut: ", "characters as it is shown"], id="wide and deep"),
    pytest.param("class A:\n    def __repr__(self): return 'a' * 10000\n[A()]", 4100, ["… (10,000 characters)"], id="an own repr inside"),
])
def test_long_values_are_bounded(run: Any, code: str, most: int, wanted: list[str]) -> None:
    """A note says how much of a value was cut."""
    result = run(code)
    assert result.exit == 0, result.stderr
    shown = result.said("result")
    assert len(shown) <= most
    assert [want for want in wanted if want not in shown] == []


@each_python
@pytest.mark.parametrize(("code", "want"), [
    pytest.param("pritn(1)", ". Did you mean: 'print'?", id="builtin"),
    pytest.param("def f():\n    count = 1\n    return cuont\nf()", ". Did you mean: 'count'?", id="local"),
    pytest.param("json.dumps(1)", "import 'json'", id="module not imported"),
    pytest.param("'x'.uper()", ". Did you mean: 'upper'?", id="attribute"),
    pytest.param("import os\nos.path.joni('a')", ". Did you mean: 'join'?", id="attribute of an attribute"),
    pytest.param("class Box:\n    fullName = 1\nbox = Box()\nbox.full_name", ". Did you mean: 'fullName'?", id="attribute, by case"),
    pytest.param("from json import dmups", ". Did you mean: 'dumps'?", id="name in a module"),
    pytest.param("import jsno", ". Did you mean: 'json'?", id="module"),
    pytest.param("import email.mesage", ". Did you mean: 'email.message'?", id="part of a package"),
    pytest.param("mcp.runtime.search_tools('x')", "no attribute 'search_tools'. Did you mean: await runtime.search_tool_docs(query, *, limit=5, detail='summary')?", id="function of runtime"),
    pytest.param("mcp.runtime.call_tool_sync('a', 'b')", "no attribute 'call_tool_sync'. Did you mean: await runtime.call_tool(server, tool, arguments=None, *, check=True)?", id="function of runtime that is only awaited"),
    pytest.param("mcp.runtime.invokeTool('a', 'b')", "no attribute 'invokeTool'. Did you mean: await runtime.call_tool(server, tool, arguments=None, *, check=True)?", id="function of runtime by another name"),
    pytest.param("mcp.runtime.saved_tool()", "no attribute 'saved_tool'. Did you mean: runtime.saved_tools()?", id="function of runtime without await"),
    pytest.param("mcp.runtime.McpError", "Did you mean: runtime.MCPError?", id="exception of runtime"),
    pytest.param("from mcp.runtime import search_tools", "Did you mean: 'search_tool_docs'?", id="name in runtime"),
    pytest.param("row = {'title': 1, 'body': 2}\nrow['titel']", "KeyError: 'titel'. Did you mean: 'title'?", id="key"),
    pytest.param("""data = {'items': [{'userName': 1}]}
print(data['items'][0]['user_name'])""", "Did you mean: 'userName'?", id="key, deeper"),
    pytest.param("row = {'title': 1}\nrow.pop('tilte')", "Did you mean: 'title'?", id="key, popped"),
    pytest.param("""def f(row):
    return row['tilte']
for r in [{'title': 1}]: f(r)""", "Did you mean: 'title'?", id="key, in a function"),
    pytest.param("row = {'title': 1, 'body': 2}\nrow['zzz']", "KeyError: 'zzz'; there are: title, body", id="key, nothing near"),
    pytest.param("(await mcp_github.echo(total=3))['argumnets']", "KeyError: 'argumnets'. Did you mean: 'arguments'?", id="key of an answer without a name"),
    pytest.param("(await mcp_github.echo(total=3))[0]", "KeyError: 0: this is a mapping, not a list; its keys are: ", id="index of an answer"),
    pytest.param("for t in await mcp_github.echo(total=3):\n    t['title']", "; t is 'arguments': a loop over a mapping gives its keys", id="loop over an answer"),
    pytest.param("found = {'tasks': 1}\nfor t in found: t.id", "; t is 'tasks': a loop over a mapping gives its keys", id="attribute in a loop over a mapping"),
    pytest.param("found = {'tasks': 1}\nfor t in found:\n    t['id']", "; t is 'tasks': a loop over a mapping gives its keys", id="loop over a mapping with a name"),
    pytest.param("""answer = await mcp_github.echo(total=3)
answer['arguments']['totla']""", "Did you mean: 'total'?", id="key of a server's answer"),
])
def test_what_was_meant_is_said(run: Any, code: str, want: str) -> None:
    """On Pythons that say it themselves and on those that do not."""
    result = run(code)
    assert want in result.said("error")
    assert want in result.stderr.strip().rpartition("\n")[2]


@each_python
@pytest.mark.parametrize("code", [
    pytest.param("class A:\n    def __dir__(self): raise SystemExit(3)\nA().x", id="dir raises"),
    pytest.param("""class A:
    def __dir__(self): return ('x%d' % i for i in range(3))
A().y""", id="dir is endless"),
    pytest.param("class A:\n    def __dir__(self): return [1, None]\nA().y", id="dir of no names"),
    pytest.param("""class A(dict):
    def keys(self): raise ValueError
a = A()
a['k']""", id="keys raises"),
    pytest.param("a = {1: 2, None: 3, 'b' * 100000: 4}\na['k']", id="keys of no order"),
    pytest.param("getattr(1, 'x' * 1000000)", id="huge name"),
    pytest.param("a = {'k%d' % i: i for i in range(1000000)}\na['kk']", id="many names"),
    pytest.param("""class E(Exception):
    def __str__(self): raise ValueError
raise E""", id="error in error"),
    pytest.param("""e = None
for i in range(5000):
    n = ValueError(i)
    n.__context__ = e
    e = n
raise e""", id="chain"),
    pytest.param("import traceback\ntraceback.TracebackException = None\n{}['x']", id="no traceback"),
])
def test_errors_survive_hostile_objects(run: Any, code: str) -> None:
    """Looking for what was meant goes through objects of the code's, which may do anything."""
    result = run(code)
    assert (result.exit, len(result.done)) == (1, 1)
    assert 0 < len(result.stderr.encode()) <= 20_000 and "runner" not in result.stderr


TEXT = '{"rows": [{"id": 1}], "content": "x"}'


def text_of_json(method: str, params: Any) -> Any:
    return {"content": [{"type": "text", "text": TEXT}], "structuredContent": {"result": TEXT}}


@each_python
@pytest.mark.parametrize(("code", "cause"), [
    ("data = await mcp_github.q()\ndata.rows", "json text data"),
    ("data = await mcp_github.q()\ndata.get('rows')", "json text data"),
    ("data = await mcp_github.q()\ndata['rows'][0]['id']", "json text data"),
    ("data = await mcp_github.q()\ndata.content", "json text data"),
    ("d = {'a': await mcp_github.q()}\nd['a']['rows']", "json text d['a']"),
    ("data = await mcp_github.q()\nfor row in data: row['id']", "json text data"),
    ("""data = await mcp_github.q()
ids = [row['id'] for row in data]""", "json text data"),
    ("data = 'plain'\ndata['rows']", None),
    ("data = '[broken'\ndata.rows", None),
    ("""import json
data = json.loads(await mcp_github.q())
data['no']""", None),
    ("(await mcp_github.q()).rows", "json text "),
])
def test_text_of_json_is_the_cause(run: Any, code: str, cause: str | None) -> None:
    """Of an error where code takes it for the JSON in it, as with tools of FastMCP that return str."""
    assert run(code, text_of_json).said("cause") == cause
