"""Pictures: what display and the last value of the code show."""
from __future__ import annotations

import base64
from typing import Any

import pytest
from conftest import Run, echo
from pythons import each_python

PICTURE = "class P:\n  def _repr_png_(self): return b'png'\n  def __repr__(self): return 'P'\n"
BROKEN = "class B:\n  def _repr_png_(self): raise OSError('no ink')\n  def __repr__(self): return 'B'\n"
# As text it would be all of its data.
OF_PLOTLY = """class Figure:
  def to_image(self, format): raise ValueError('no kaleido')
  def _repr_mimebundle_(self): return {}
Figure.__module__ = 'plotly.graph_objs'
"""
PNG_SHOWN = "<image/png, 3 bytes: .data, .save(path)>"


@pytest.fixture
def shown(run: Any) -> Any:
    """Runs code under a host that takes pictures. Returns the run, and what came as "name data"."""
    def shown_by(code: str) -> tuple[Run, list[str]]:
        pictures: list[str] = []

        def take(method: str, params: Any) -> Any:
            if method != "display":
                return echo(method, params)
            pictures.append(f"{params['name']} {base64.b64decode(params['data']).decode()}")
            return None

        return run(code, take), pictures

    return shown_by


def refuse(method: str, params: Any) -> Any:
    if method == "display":
        raise RuntimeError("a run can display 0 pictures")
    return echo(method, params)


@each_python
@pytest.mark.parametrize(("code", "printed", "pictures"), [
    pytest.param("display('a', 1, [1, 2], None)", "'a'\n1\n[1, 2]\nNone\n", [], id="text"),
    pytest.param("""class P:
  def _repr_png_(self): return b'png'
display(P(), P())""", "", ["picture-1.png png", "picture-2.png png"], id="bytes of a PNG"),
    pytest.param("class P:\n  def _repr_jpeg_(self): return 'anBn'\ndisplay(P())", "", ["picture-1.jpg jpg"], id="base64 of a JPEG"),
    pytest.param("""class P:
  def _repr_png_(self): return b'png', {'width': 3}
display(P())""", "", ["picture-1.png png"], id="with metadata"),
    pytest.param("""class P:
  def _repr_mimebundle_(self, include=None, exclude=None): return {'text/plain': 'x', 'image/gif': b'gif'}, {}
display(P())""", "", ["picture-1.gif gif"], id="a bundle"),
    pytest.param("""class M:
  def _repr_markdown_(self): return '# head'
display(M())""", "# head\n", [], id="markdown"),
    pytest.param("""class N:
  def _repr_png_(self): return None
  def __repr__(self): return 'N'
display(N())""", "N\n", [], id="nothing to show"),
    pytest.param("class P:\n  def _repr_png_(self): return b'png'\ndisplay(P)", "<class '__main__.P'>\n", [], id="a class"),
    pytest.param("class P:\n  def _repr_png_(self): return b'png'\nP()", "", ["picture-1.png png"], id="a last value"),
    pytest.param("""from mcp.runtime import display as d
class P:
  def _repr_png_(self): return b'png'
d(P())""", "", ["picture-1.png png"], id="by import"),
    pytest.param("display = print\ndisplay('mine')", "mine\n", [], id="a name of the code"),
])
def test_a_value_is_asked_what_it_is(shown: Any, code: str, printed: str, pictures: list[str]) -> None:
    result, came = shown(code)
    assert (result.stdout, came, result.exit, result.said("result")) == (printed, pictures, 0, None), result.stderr


@each_python
def test_what_cannot_be_drawn_is_said(shown: Any, run: Any) -> None:
    result, _ = shown(BROKEN + "display(B())")
    assert result.stdout == "B\n"
    assert "display: this B cannot be drawn: OSError: no ink" in result.stderr
    result, _ = shown(BROKEN + "B()")
    assert (result.said("result"), result.exit) == ("B", 0)
    for use in ("display(Figure())", "Figure()"):
        result, _ = shown(OF_PLOTLY + use)
        assert (result.stdout, result.said("result")) == ("", None)
        assert ('display: this Figure cannot be drawn: ValueError: no kaleido; keep it with '
                '.write_html("/workspace/out/figure.html")') in result.stderr


@each_python
def test_pictures_that_the_host_refuses(run: Any) -> None:
    result = run(PICTURE + "try: display(P())\nexcept Exception as e: print(e)", refuse)
    assert result.stdout == "a run can display 0 pictures\n"
    result = run(PICTURE + "P()", refuse)
    assert (result.said("result"), result.exit) == ("P", 0)
    result = run(f"await mcp_github.raw(answer={{'content': [{TEXT}, {PNG}]}})", refuse)
    assert (result.said("result"), result.exit) == (f"['see', {PNG_SHOWN}]", 0)


def image(data: str, kind: str) -> str:
    return str({"type": "image", "data": base64.b64encode(data.encode()).decode(), "mimeType": kind})


TEXT = "{'type': 'text', 'text': 'see'}"
PNG, JPG = image("png", "image/png"), image("jpg", "image/JPG; q=1")


@each_python
@pytest.mark.parametrize(("answer", "code", "printed", "value", "pictures"), [
    pytest.param(f"'content': [{PNG}]", "display(answer)", "", None, ["picture-1.png png"], id="by itself"),
    pytest.param(f"'content': [{TEXT},{PNG}]", "display(answer[1])", "", None, ["picture-1.png png"], id="of a list"),
    pytest.param(f"'content': [{TEXT},{PNG}]", "display(answer)", f"['see', {PNG_SHOWN}]\n", None, ["picture-1.png png"], id="a list"),
    pytest.param(f"'content': [{JPG}]", "answer", "", None, ["picture-1.jpg jpg"], id="as the last value"),
    pytest.param(f"'content': [{TEXT},{PNG}]", "answer", "", f"['see', {PNG_SHOWN}]", ["picture-1.png png"], id="a list as the last"),
    pytest.param(f"'content': [{PNG}]", "{'a': (1, [answer])}", "", "{'a': (1, [<image/png, 3 bytes: .data, .save(path)>])}", ["picture-1.png png"], id="of the code's own"),
    pytest.param(f"'content': [{PNG}], 'structuredContent': {{'content': [{PNG}]}}", "answer", "", "{'content': [<image/png, 3 bytes: .data, .save(path)>]}", ["picture-1.png png"], id="in and beside structured content"),
    pytest.param(f"'content': [{TEXT},{JPG}], 'structuredContent': {{'out': 'see'}}", "answer", "", "'see'", ["picture-1.jpg jpg"], id="beside a text"),
    pytest.param("'content': [{'type': 'resource', 'resource': {'uri': 'x:', 'mimeType': 'image/gif', 'blob': 'Z2lm'}}]", "answer", "", None, ["picture-1.gif gif"], id="a resource"),
    pytest.param(f"'content': [{image('<svg/>', 'image/svg+xml')}]", "answer", "", None, ["picture-1.svg <svg/>"], id="an SVG"),
    pytest.param(f"'content': [{image('bmp', 'image/bmp')}]", "answer", "", "<image/bmp, 3 bytes: .data, .save(path)>", [], id="of no format"),
    pytest.param("'content': [{'type': 'audio', 'data': 'aGk=', 'mimeType': 'audio/wav'}]", "answer", "", "<audio/wav, 2 bytes: .data, .save(path)>", [], id="a sound"),
    pytest.param(f"'content': [{TEXT},{{'type': 'image', 'data': '!', 'mimeType': 'image/png'}}]", "len(answer); answer", "", "['see', <image/png, 0 bytes: .data, .save(path)>]", [], id="not base64"),
    pytest.param(f"'content': [{PNG}]", "loop = [answer]\nloop.append(loop)\nloop", "", "[<image/png, 3 bytes: .data, .save(path)>, …]", ["picture-1.png png"], id="in a loop"),
    pytest.param(f"'content': [{PNG}]", "print(answer)", "<image/png, 3 bytes: .data, .save(path)>\n", None, [], id="printed"),
])
def test_pictures_of_tools_are_shown(
        shown: Any, answer: str, code: str, printed: str, value: str | None, pictures: list[str]) -> None:
    """A screenshot reaches the model as a picture, also in a list, in structured content, and beside it."""
    result, came = shown(f"answer = await mcp_github.raw(answer={{{answer}}})\n{code}")
    assert (result.stdout, came, result.exit, result.said("result")) == (printed, pictures, 0, value), result.stderr
