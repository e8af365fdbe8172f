"""The values of tools, resources and prompts, and the arguments that code gives."""
from __future__ import annotations

from typing import Any

from conftest import echo
from pythons import Case, table


@table([
    Case("what a tool answers", r"""
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
    if want is not None and want is not True: assert got.raw == answer, got.raw"""),
    Case("records", """
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
else: assert False"""),
    Case("plain values with raw", """
import json, pickle
for value in ('text', 7, 2.5, [1, {'a': 1}]):
    got = await mcp_github.raw(answer={'structuredContent': {'result': value}})
    assert type(got) is not type(value) and got == value
    assert (repr(got), str(got), f'{got}', json.dumps(got)) == (repr(value), str(value), f'{value}', json.dumps(value))
    assert got.raw.structuredContent.result == value
    assert pickle.loads(pickle.dumps(got)) == value
assert got[1].a == 1"""),
    Case("a tool's error can be caught", """
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
print('went on')""", stdout="went on\n"),
    Case("a tool's error uncaught", "await mcp_github.raw(answer={'isError': True, 'content': [{'type': 'text', 'text': 'bad'}]})", exit=1, stderr=["line 1, in <module>", "mcp.runtime.MCPError: bad"], error="MCPError: bad"),
])
def test_values_of_tools(case: Case, run: Any) -> None:
    case.check(run(case.code))


@table([
    Case("become JSON", r"""
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
assert len((await mcp_github.echo({'value': {'a', 1}})).arguments.value) == 2"""),
    Case("in every form of a call", """
from mcp import runtime
issue = {'title': 'T', 'self': 1, 'tool': 2}
for call in (mcp_github.echo(**issue), mcp_github.echo(issue), mcp_github['echo'](issue), mcp_servers['github'].echo(issue),
             runtime.call_tool('github', 'echo', issue), runtime.call_tool(mcp_github, 'echo', issue)):
    assert (await call) == {'tool': 'echo', 'arguments': issue}
assert (await mcp_github.echo({'a': 1}, b=2)).arguments == {'a': 1, 'b': 2}
assert (await mcp_github['weird-name']()).tool == 'weird-name'
assert (await mcp_github._2fa()).tool == '_2fa'
assert (await runtime.call_tool('github', 'echo')).arguments == {}"""),
    Case("that cannot, say where", """
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
coroutine.close()"""),
])
def test_arguments(case: Case, run: Any) -> None:
    case.check(run(case.code))


def contents(method: str, params: Any) -> Any:
    """Answers as a host whose servers have resources and prompts."""
    if method == "read_resource":
        answers: dict[str, Any] = {
            "x://bytes": [{"uri": "x://bytes", "mimeType": "image/png", "blob": "aGk="}],
            "x://many": [{"uri": "x://1", "text": "1"}, {"uri": "x://2", "blob": "aGk="}, {"uri": "x://3"}],
        }
        if params["uri"] == "x://gone":
            raise RuntimeError("no such resource")
        text = {"uri": params["uri"], "mimeType": "text/plain", "text": f'{{"of": 1}} {params["server"]}'}
        return {"contents": answers.get(params["uri"], [text])}
    if method == "get_prompt":
        return {"description": "d", "resultType": "complete", "ttlMs": 1, "cacheScope": "public", "_meta": {}, "messages": [
            {"role": "user", "_meta": {"a": 1}, "content": {
                "type": "text", "text": f"{params['name']} {params['arguments']}"}},
            {"role": "assistant", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}}]}
    lists: dict[str, Any] = {
        "list_resources": {"resources": [{
            "uri": "x://a", "name": "a", "mimeType": "text/plain", "size": 0, "title": "", "annotations": {},
            "icons": [{"src": "data:,"}]}]},
        "list_resource_templates": [{"uriTemplate": "x://{id}", "_meta": {"a": 1}, "description": None}],
        "list_prompts": {"prompts": [{
            "name": "review", "_meta": {"a": 1},
            "arguments": [{"name": "code", "required": True, "description": ""}]}]},
    }
    return lists[method] if method in lists else echo(method, params)


@table([
    Case("images and audio", """
import json, pickle, copy, os
async def value(*content, **more): return await mcp_github.raw(answer={'content': list(content), **more})
image = {'type': 'image', 'data': 'aGk=', 'mimeType': 'image/png'}
got = await value(image)
assert (got.data, got.mime_type, bytes(got), got.type) == (b'hi', 'image/png', b'hi', 'image'), got
assert repr(got) == '<image/png, 2 bytes: .data, .save(path)>' and 'aGk' not in f'{got} {[got]}'
assert got.save('a.png') == 'a.png' and open('a.png', 'rb').read() == b'hi'
import pathlib
assert got.save(pathlib.Path('b.png')) == 'b.png' and os.path.getsize('b.png') == 2
assert got.raw.content == [image] and json.loads(json.dumps(got)) == image and got['data'] == 'aGk='
for twin in (copy.copy(got), copy.deepcopy(got), pickle.loads(pickle.dumps(got))): assert twin.data == b'hi' and type(twin) is type(got)
assert (await mcp_github.echo(image=got)).arguments.image == image
text, sound = await value({'type': 'text', 'text': 'see'}, {**image, 'type': 'audio', 'mimeType': 'audio/wav'})
assert text == 'see' and sound.mime_type == 'audio/wav' and sound.data == b'hi'
bad = await value({'type': 'image', 'data': 'a', 'mimeType': 'image/png'})
try: bad.data
except ValueError as e: assert 'image/png that is not base64' in str(e)
else: assert False
assert (await value({'type': 'image'})) == {'type': 'image'} and (await value({'type': 'new', 'x': 1})).x == 1
large = await value({**image, 'data': 'QUJD' * 400000})
assert len(large.data) == 1200000 and len(repr(large)) < 60"""),
    Case("embedded resources", """
async def value(*content): return await mcp_github.raw(answer={'content': [{'type': 'resource', 'resource': r} for r in content]})
text = await value({'uri': 'x://t', 'mimeType': 'application/json', 'text': '{"a": 1}'})
assert (text, text.uri, text.mime_type, text.raw.content[0].type) == ('{"a": 1}', 'x://t', 'application/json', 'resource')
assert isinstance(text, str)
blob = await value({'uri': 'x://b', 'mimeType': 'application/gzip', 'blob': 'aGk='})
assert (blob.data, blob.uri, blob.mime_type, repr(blob)) == (b'hi', 'x://b', 'application/gzip', '<application/gzip x://b, 2 bytes: .data, .save(path)>')
blob.save('f.gz')
one, two = await value({'uri': 'x://1', 'text': ''}, {'uri': 'x://2'})
assert one == '' and one.mime_type == '' and two.uri == 'x://2'"""),
    Case("links can be read", """
import pickle
link = await mcp_github.raw(answer={'content': [{'type': 'resource_link', 'uri': 'x://r', 'name': 'r', 'mimeType': 'text/plain'}]})
assert (link.uri, link.name, link.mime_type, link['mimeType']) == ('x://r', 'r', 'text/plain', 'text/plain')
text = await link.read()
assert text == '{"of": 1} github' == link.read_sync() and text.uri == 'x://r'
assert await pickle.loads(pickle.dumps(link)).read() == text"""),
    Case("beside structured content", """
image = {'type': 'image', 'data': 'aGk=', 'mimeType': 'image/png'}
async def value(structured, *content): return await mcp_github.raw(answer={'structuredContent': structured, 'content': list(content)})
got = await value({'title': 'T'}, {'type': 'text', 'text': '{}'}, image)
assert got == {'title': 'T'} and got.attachments[0].data == b'hi' and got.raw.content[1] == image
got = await value({'content': [image], 'deep': {'list': [[image]]}}, image)  # as filesystem's read_media_file answers
assert got.content[0].data == b'hi' == got.deep.list[0][0].data and 'aGk' not in str(got)
got = await value({'result': [1]}, image)
assert got == [1] and got.attachments[0].mime_type == 'image/png'
assert (await value({'attachments': 5}, image)).attachments == 5
assert (await value({'result': True}, image)) is True
try: (await value({'a': 1}, {'type': 'text', 'text': 'x'})).attachments
except AttributeError: pass
else: assert False"""),
    Case("resources", """
from mcp import runtime
links = await runtime.list_resources('github')
assert links == runtime.list_resources_sync(mcp_github) and links[0].name == 'a' and links[0]['uri'] == 'x://a'
assert links[0] == {'uri': 'x://a', 'name': 'a', 'mimeType': 'text/plain', 'size': 0} and links[0].raw.icons
assert await links[0].read() == '{"of": 1} github' and links[0].read_sync().mime_type == 'text/plain'
assert (await runtime.list_resource_templates('jira'))[0].uriTemplate == 'x://{id}' == runtime.list_resource_templates_sync('jira')[0]['uriTemplate']
assert await runtime.list_resource_templates('jira') == [{'uriTemplate': 'x://{id}'}]
text = await runtime.read_resource('file_system', 'x://t')
assert text == '{"of": 1} file-system' and text.raw.contents[0].uri == 'x://t'
assert runtime.read_resource_sync('github', 'x://bytes').data == b'hi'
one, two, three = await runtime.read_resource('github', 'x://many')
assert (one, two.data, three) == ('1', b'hi', {'uri': 'x://3'})
try: await runtime.read_resource('github', 'x://gone')
except runtime.MCPError as e: assert str(e) == 'no such resource' and e.server == 'github'
else: assert False"""),
    Case("prompts", """
from mcp import runtime
assert (await runtime.list_prompts('jira'))[0].arguments[0].name == 'code' == runtime.list_prompts_sync('jira')[0].arguments[0].name
assert runtime.list_prompts_sync('jira') == [{'name': 'review', 'arguments': [{'name': 'code', 'required': True}]}]
p = await runtime.get_prompt('github', 'review', {'code': 'x', 'n': 1, 'b': True})
assert p.description == 'd' and [m.role for m in p.messages] == ['user', 'assistant']
assert p.messages[0].content == "review {'code': 'x', 'n': '1', 'b': 'true'}" and p.messages[1].content.data == b'hi', p
assert set(p) == {'description', 'messages'} and set(p.messages[0]) == {'role', 'content'}
assert p.raw.messages[0].content.type == 'text' and p.raw.resultType == 'complete'
assert runtime.get_prompt_sync('github', 'review').messages[0].content == 'review {}'"""),
])
def test_content_that_is_not_text(case: Case, run: Any) -> None:
    case.check(run(case.code, contents))
