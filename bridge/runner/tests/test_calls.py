"""Calls of the host: at the same time, from any thread, and with answers of any kind."""
from __future__ import annotations

from typing import Any

import pytest
from conftest import Run, echo
from pythons import Case, each_python, table


def examples(method: str, params: Any) -> Any:
    """Answers for the servers of the examples in the README of the Python original."""
    if method != "call_tool":
        return echo(method, params)
    arguments = params["named"]
    answer: Any = {
        "list_directory": {"result": ["/tmp/a", "/tmp/b"]}, "search": {"title": "TODO 1"},
        "search_issues": {"result": [{"id": "J-1"}, {"id": "J-2"}]},
        "list_items": {"result": [{"id": "J-1"}, {"id": "J-2"}]},
        "get_issue": {"description": f"URGENT {arguments.get('id')}"},
    }.get(params["tool"], arguments)
    texts = {"read_file": f"a TODO in {arguments.get('path')}", "get_transcript": "t" * 600}
    if params["tool"] in texts:
        return {"content": [{"type": "text", "text": texts[params["tool"]]}]}
    return {"structuredContent": answer}


@table([
    Case("read a file", """result = await mcp_filesystem.read_file(path='/tmp/test.txt')
print(result)""", stdout="a TODO in /tmp/test.txt\n"),
    Case("chain two servers", """
data = await mcp_search.search(query="TODO")
await mcp_github.create_issue(repo='owner/repo', title=data.title)""", result="{'repo': 'owner/repo', 'title': 'TODO 1'}"),
    Case("loop over files", """
files = await mcp_filesystem.list_directory(path='/tmp')
for file in files:
    content = await mcp_filesystem.read_file(path=file)
    if 'TODO' in content:
        print(f"Found TODO in {file}")""", stdout="Found TODO in /tmp/a\nFound TODO in /tmp/b\n"),
    Case("slice a text", """
transcript = await mcp_transcripts.get_transcript(id=1)
summary = transcript[:500] + "..."
len(summary)""", result="503"),
    Case("read records", """
issues = await mcp_jira.search_issues(jql="project = X")
for issue in issues:
    details = await mcp_jira.get_issue(id=issue.id)
    if 'urgent' in details.description.lower(): print(issue.id)""", stdout="J-1\nJ-2\n"),
    Case("discover", """
from mcp import runtime
print(runtime.discovered_servers()[:2])
loaded = runtime.list_loaded_server_metadata()
first = runtime.describe_server(loaded[0]["name"])
for tool in first["tools"]: print(tool["alias"], tool.get("description", ""))
matches = await runtime.search_tool_docs("calendar events", limit=5)
for hit in matches: print(hit["server"], hit.get("description", ""))""", stdout="""('filesystem', 'search')
create_issue makes one
echo gives back
github gives back
jira 
"""),
    Case("in parallel", """
items = await mcp_api.list_items()
tasks = [mcp_api.process_item(id=item.id) for item in items]
await asyncio.gather(*tasks)""", result="[{'id': 'J-1'}, {'id': 'J-2'}]"),
])
def test_examples_of_the_python_original(case: Case, run: Any) -> None:
    case.check(run(case.code, examples, servers=[
        {"name": name, "alias": name, "granted": True}
        for name in ("filesystem", "search", "github", "transcripts", "jira", "calendar", "api")]))


@each_python
@pytest.mark.parametrize("code", [
    "print(sum([r.arguments.n for r in await asyncio.gather(*[mcp_github.echo(n=n) for n in range(10)])]))",
    """
import threading
from mcp import runtime
threads = [threading.Thread(target=runtime.search_tool_docs_sync, args=('x',)) for n in range(10)]
[t.start() for t in threads] and [t.join() for t in threads]
print(45)""",
], ids=["gather", "threads"])
def test_calls_run_in_parallel(start: Any, code: str) -> None:
    """No reply is given before all calls are there: calls in a row would never end."""
    runner, result = start(), Run()
    runner.start(code)
    for call in [runner.receive() for _ in range(10)]:
        runner.reply(call, echo)
    runner.serve(result, echo)
    assert runner.finish(result).stdout == "45\n"


@table([
    Case("in a running loop", """
from mcp import runtime
import asyncio
async def f(): return runtime.list_tools_sync('github')[0].alias
await asyncio.gather(f(), mcp_github.echo(), f())
await asyncio.to_thread(runtime.list_servers_sync)
import threading
def other(): print(asyncio.run(mcp_github.echo(n=1)).arguments)
t = threading.Thread(target=other); t.start(); t.join()""", stdout="{'n': 1}\n"),
    Case("a cancelled call leaves the others alone", """
import asyncio
task = asyncio.ensure_future(mcp_github.echo(n=1))
await asyncio.sleep(0)
task.cancel()
(await mcp_github.echo(n=2)).arguments.n""", result="2"),
    Case("a forked process may not", """
import os
mcp.runtime.list_servers()
import warnings; warnings.simplefilter('ignore')
if os.fork() == 0:
    try: mcp.runtime.list_servers()
    except mcp.MCPError as e: print(e)
else: os.wait()""", stdout="tools can only be called from the main process\n"),
])
def test_blocking_calls_work_anywhere(case: Case, run: Any) -> None:
    case.check(run(case.code))


THREADS = "import asyncio, os, threading\ndef threads(): return len(os.listdir('/proc/self/task'))\n"


@table([
    Case("without a thread", THREADS + """
print(sum([r.arguments.n for r in await asyncio.gather(*[mcp_github.echo(n=n) for n in range(50)])]), threads())""", stdout="1225 1\n"),
    Case("of large answers", THREADS + """
a, b = await asyncio.gather(mcp_github.echo(text='x' * 60000), mcp_github.echo(n=1))
print(len(a.arguments.text), b.arguments.n, threads())""", stdout="60000 1 1\n"),
    Case("one loop after the other", THREADS + """
def ask(n): return asyncio.run(mcp_github.echo(n=n)).arguments.n
print(ask(1), ask(2), threads())""", stdout="1 2 1\n"),
    Case("two loops at once", THREADS + """
async def many(): return sum([r.arguments.n for r in await asyncio.gather(*[mcp_github.echo(n=n) for n in range(100)])])
sums = []
all = [threading.Thread(target=lambda: sums.append(asyncio.run(many()))) for _ in range(3)]
[t.start() for t in all] and [t.join() for t in all]
print(sums)""", stdout="[4950, 4950, 4950]\n"),
    Case("two loops in turn", THREADS + """
first = asyncio.new_event_loop()
task = first.create_task(mcp_github.echo(n=1))
first.run_until_complete(asyncio.sleep(0))
second = asyncio.new_event_loop()
print(second.run_until_complete(mcp_github.echo(n=2)).arguments.n, first.run_until_complete(task).arguments.n)
first.close(), second.close()
print(asyncio.run(mcp_github.echo(n=3)).arguments.n)""", stdout="2 1\n3\n"),
    Case("of a loop that cannot", THREADS + """
class Loop(asyncio.SelectorEventLoop):
    def add_reader(self, fd, *args):
        if fd == 3: raise NotImplementedError
        return super().add_reader(fd, *args)
loop = Loop()
print(loop.run_until_complete(mcp_github.echo(n=1)).arguments.n, threads())
loop.close()""", stdout="1 2\n"),
    Case("and of a thread beside it", THREADS + """
from mcp import runtime
async def often(): return [(await mcp_github.echo(n=n)).arguments.n for n in range(200)]
def other(): return [len(runtime.list_tools_sync('github')) for _ in range(50)]
numbers, lengths = await asyncio.gather(often(), asyncio.to_thread(other))
print(numbers == list(range(200)), lengths == [2] * 50)""", stdout="True True\n"),
])
def test_the_event_loop_that_asks_reads(case: Case, run: Any) -> None:
    """As long as no other thread asks and the socket holds what it sends, as it does in the cases that count threads."""
    case.check(run(case.code))


@each_python
def test_a_host_that_answers_first_is_sent_to(start: Any) -> None:
    """A host that takes nothing more while its answers are not taken is not waited for in vain."""
    runner, result = start(), Run()
    runner.start("""
got = await asyncio.gather(*[mcp_github.echo(n=n, text='x' * 50000) for n in range(100)])
print(sum([r.arguments.n for r in got]))""")
    runner.serve(result, echo)
    assert runner.finish(result).stdout == "4950\n"


@each_python
def test_large_values(run: Any) -> None:
    result = run("""
for size in (1 << 16, 1 << 20, 1 << 24):
    text = 'x' * size
    assert (await mcp_github.echo(text=text)).arguments.text == text
try: await mcp_github.echo(text='x' * (64 << 20))
except ValueError as e: assert 'one call can carry 50331648' in str(e)
else: assert False
text = await mcp_github.raw(answer={'content': [{'type': 'text', 'text': 'é' * (1 << 20)}]})
assert text == 'é' * (1 << 20)
print('x' * (1 << 20))""")
    assert (result.exit, len(result.stdout)) == (0, (1 << 20) + 1), result.stderr


@each_python
def test_hostile_replies_are_survived(start: Any) -> None:
    runner, result = start(), Run()
    runner.start("""
from mcp import runtime
def ask():
    try: return runtime.list_servers_sync()
    except runtime.MCPError as e: return str(e)[:30]
print(ask()); print(ask()); print(ask()); print(ask())""")
    deep = '{"type":"reply","id":2,"result":' + "[" * 200_000 + "]" * 200_000 + "}"
    for number, frames in enumerate([
            ['{"type":"reply","id":99,"result":1}', '{"type":"news"}', '{"type":"reply","id":1,"result":["a"]}'],
            [deep], ["not JSON"], ["[1, 2]"]], 1):
        assert runner.receive()["id"] == number
        for frame in frames:
            runner.send_bytes(frame.encode())
    runner.serve(result, echo)
    assert runner.finish(result).exit == 0
    assert result.stdout == "('a',)\n" + "the host's answer cannot be re\n" * 3
