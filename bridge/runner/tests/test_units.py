"""Modules by themselves, imported as any other."""
from __future__ import annotations

import base64
import copy
import functools
import json
import math
import operator
import os
import socket
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest
from toolcell_runner import (
    arguments,
    channel,
    completion,
    conflictingmodules,
    content,
    errors,
    host,
    jsontext,
    placeholder,
    pretty,
    process,
    resources,
    saved,
    sources,
    stackdump,
    toolresults,
    tracebacks,
    typos,
    values,
)

NO_SOURCES = sources.Sources()


@pytest.mark.parametrize("text", ["", "{", "[1,]", "nul", "1 2", '{"a": 1} x', "\x00"])
def test_what_is_no_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        jsontext.parse_json(text, jsontext.Reading)


def test_strict_json_knows_no_nan() -> None:
    assert math.isnan(jsontext.parse_json("NaN", jsontext.Reading))
    with pytest.raises(ValueError, match="NaN is not JSON"):
        jsontext.parse_json("[NaN]", jsontext.Strict)


def test_json_goes_there_and_back() -> None:
    value = {"a": [1, 2 ** 70, 0.1, "\ud800 ü", None], "b": {"c": True}}
    assert jsontext.decode(jsontext.encode(value)) == value
    assert jsontext.decode(b'{"a": {"b": 1}}').a.b == 1


@pytest.mark.parametrize("sizes", [[0], [1, 5, 3], [channel.READ_SIZE * 5], [10, channel.READ_SIZE * 2, 10]])
def test_frames_are_read_whole(sizes: list[int]) -> None:
    host, ours = socket.socketpair()
    with host, ours:
        host.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        for size in sizes:
            host.sendall(size.to_bytes(4, "big") + b"x" * size)
        host.shutdown(socket.SHUT_WR)
        frames = channel.Channel(ours.fileno())
        for size in sizes:
            assert frames.receive() == b"x" * size
        assert frames.receive() is None


def test_a_frame_that_is_too_large_is_refused() -> None:
    host, ours = socket.socketpair()
    with host, ours:
        host.sendall((channel.MAX_FRAME + 1).to_bytes(4, "big"))
        with pytest.raises(OSError, match="a frame of"):
            channel.Channel(ours.fileno()).receive()


def test_a_descriptor_that_was_replaced_is_not_used() -> None:
    host, ours = socket.socketpair()
    other, another = socket.socketpair()
    with host, ours, other, another:
        frames = channel.Channel(ours.fileno())
        os.dup2(another.fileno(), ours.fileno())
        with pytest.raises(OSError, match="closed by the code"):
            frames.send({})


def test_records_name_what_there_is() -> None:
    record = values.Record(title="a", html_url="b")
    assert record.title == "a"
    with pytest.raises(AttributeError, match="no key 'htmlUrl'; there are: title, html_url. Did you mean 'html_url'?"):
        record.htmlUrl  # noqa: B018


def test_pretty_breaks_and_cuts() -> None:
    assert pretty.show([1, 2]) == "[1, 2]"
    assert pretty.show({"a": "x" * 60, "b": "y" * 60}) == "{'a': '%s',\n 'b': '%s'}" % ("x" * 60, "y" * 60)
    assert pretty.show(list(range(1000))).endswith("… 800 more, 1,000 in all]")
    loop: list[Any] = []
    loop.append(loop)
    assert pretty.show(loop) == "[…]"


def test_unbound_names_of_a_tree() -> None:
    tree = compile("import a.b\nfor c in d: print(c, e)\ndef f(g): return g + h", "x", "exec", 0x400)
    assert sources.unbound(tree) == {"d", "e", "h"}


def test_modules_are_found_and_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("installed.py", "package/__init__.py", "folder/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("sys", "statistics", "pytest", "installed", "package"):
        assert saved.is_module(name)
    for name in ("folder", "no_such_module"):
        assert not saved.is_module(name)


def test_limits_behind_errors() -> None:
    assert tracebacks.limit_hit(MemoryError(), NO_SOURCES) == "memory"
    assert tracebacks.limit_hit(RuntimeError("can't start new thread"), NO_SOURCES) == "pids"
    assert tracebacks.limit_hit(OSError(24, "Too many open files"), NO_SOURCES) == "files"
    assert tracebacks.limit_hit(OSError(28, "No space left on device"), NO_SOURCES) == "space"
    assert tracebacks.limit_hit(OSError(28, "No space left on device", "/dev/shm/a/b"), NO_SOURCES) == "/dev/shm"
    assert tracebacks.limit_hit(OSError(28, "No space left on device", "/nowhere/a"), NO_SOURCES) == "space"
    assert tracebacks.limit_hit(OSError(2, "No such file"), NO_SOURCES) is None


@pytest.mark.parametrize(("code", "limit"), [
    ("raise MemoryError", None),
    ("raise MemoryError('mine') from ValueError()", None),
    ("def f(): raise OSError(28, 'mine')\nf()", None),
    ("raise OSError(24, 'mine')", None),
    ("raise RuntimeError(\"can't start new thread\")", None),
    ("bytearray(1 << 60)", "memory"),
    ("try: bytearray(1 << 60)\nexcept MemoryError: raise", "memory"),
    ("try: bytearray(1 << 60)\nexcept MemoryError as e: raise e", "memory"),
])
def test_only_errors_that_the_code_has_not_made_tell_of_limits(code: str, limit: str | None) -> None:
    texts = sources.Sources()
    texts.add("<code>", code)
    with pytest.raises(BaseException) as raised:
        exec(compile(code, "<code>", "exec"), {})
    assert tracebacks.limit_hit(raised.value, texts) == limit


def test_the_full_folder_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    room = {"/workspace": (5, 100, 5), "/tmp": (0, 100, 5), "/dev/shm": (5, 100, 5)}
    monkeypatch.setattr(tracebacks.os, "statvfs", lambda folder: types.SimpleNamespace(
        **dict(zip(("f_bavail", "f_files", "f_favail"), room[folder]))))
    assert tracebacks.limit_hit(OSError(28, "No space left on device"), NO_SOURCES) == "/tmp"
    room["/tmp"] = (5, 100, 0)  # of files
    assert tracebacks.limit_hit(OSError(28, "No space left on device"), NO_SOURCES) == "/tmp"
    room["/tmp"] = (5, 0, 0)  # which has no number of them
    assert tracebacks.limit_hit(OSError(28, "No space left on device"), NO_SOURCES) == "space"


def test_stacks_begin_at_the_code() -> None:
    frame = sys._getframe()
    places = stackdump.without_runner(stackdump.stack_of(frame, {}), {__file__: ""})
    assert places[0]["func"] == "test_stacks_begin_at_the_code"


def test_completion_runs_no_property() -> None:
    class Slotted:
        __slots__ = ("kept",)

    class Value:
        plain = [1]
        slotted = Slotted()

        @property
        def ran(self) -> str:
            raise AssertionError

        def method(self) -> None:
            pass

    Value.slotted.kept = ""
    names = {"value": Value(), "_hidden": 1, "vault": 2, "bad name": 3}
    assert completion.names_for("va", names) == ["value", "vars", "vault"]
    assert completion.names_for("value.", names) == ["method", "plain", "ran", "slotted"]
    assert completion.names_for("_hid", names) == ["_hidden"]
    assert completion.names_for("value.plain.app", names) == ["append"]
    assert completion.names_for("value.slotted.kept.spl", names) == ["split", "splitlines"]
    assert completion.names_for("whi", names) == ["while"]
    for dotted in ("value.ran.x", "value.missing.x"):
        with pytest.raises(AttributeError):
            completion.names_for(dotted, names)


@pytest.mark.parametrize("digits", [1, 600, 601, 4300, 4301, 5000, 100_000])
def test_numbers_of_many_digits_are_read(digits: int) -> None:
    value = jsontext.decode(b'{"n": -%s, "m": [1.5, 7]}' % (b"7" * digits))
    assert value["n"] == -7 * (10**digits - 1) // 9
    assert value["m"] == [1.5, 7]


def test_a_number_of_too_many_digits_is_an_error() -> None:
    with pytest.raises(ValueError, match="it has a number of 100001 digits; the most is 100000"):
        jsontext.decode(b"[" + b"7" * 100_001 + b"]")


class Replies:
    """A channel over which some replies have come."""

    when_full = None
    fd = -1

    def __init__(self, *replies: bytes) -> None:
        self.replies = list(replies)

    def message(self) -> bytes | None:
        return self.replies.pop(0) if self.replies else None


@pytest.mark.parametrize(("unreadable", "why"), [
    (b"[" * 100_000 + b"]" * 100_000, "nests too deep"), (b"7" * 200_000, "200000 digits"), (b"7x", "cannot be read"),
    (b"", "not JSON"),
])
def test_an_answer_that_cannot_be_read_fails_its_call_alone(unreadable: bytes, why: str) -> None:
    came: dict[int, Any] = {}
    first, second = b'{"type":"reply","id":1,"result":' + unreadable + b"}", b'{"type":"reply","id":2,"result":5}'
    answers: Any = Replies(first, second)
    asked = host.Host(answers)
    for number in (1, 2, 3):
        about = host.names_in({"server": "s", "tool": f"t{number}"})
        asked._waiting[number] = lambda reply, number=number: came.setdefault(number, reply), about
    assert asked._hand_out(True)
    assert sorted(came) == [1, 2]
    assert host.result_of(came[2]) == 5
    with pytest.raises(errors.MCPError, match=why) as raised:
        host.result_of(came[1])
    assert (raised.value.server, raised.value.tool) == ("s", "t1")


@pytest.mark.parametrize(("file", "want"), [("<run_python>", 4), ("another.py", 0)])
def test_a_call_says_the_line_of_the_code_that_makes_it(file: str, want: int) -> None:
    posted: list[Any] = []

    def post(method: str, params: dict[str, Any]) -> None:
        asked._post(method, params, lambda reply: None)

    sender: Any = types.SimpleNamespace(fd=0, send=posted.append, when_full=None)
    asked = host.Host(sender)
    asked.code_file = "<run_python>"
    asked._reader = host._thread  # that reads the replies
    code = compile("def call():\n    post('call_tool', {'server': 's'})\n\ncall()", "library.py", "exec")
    exec(code, {"post": post})
    exec(compile("\n\n\ncall()", file, "exec"), {"call": lambda: post("call_tool", {"server": "s"})})
    assert [call["params"].get("line", 0) for call in posted] == [0, want]


ODD: list[Any] = [
    None, {}, [], "text", 5, True, [None], ["x"], [5], [[]], [{}], {"text": None}, {"type": "text"},
    [{"text": {"a": 1}}], [{"type": "image", "data": 5, "mimeType": 7}], [{"blob": "AAAA", "mimeType": 7, "uri": []}],
    [{"blob": 5}],
    [{"content": None}], [{"content": "x"}], [{"content": 5}], [{"content": [5, None, "x"]}],
    [{"role": 5, "content": {"type": "text", "text": 5}}],
]


@pytest.mark.parametrize("odd", ODD, ids=json.dumps)
def test_resources_and_prompts_of_any_types_are_values(odd: Any) -> None:
    read: Any = jsontext.decode(json.dumps({"contents": odd, "messages": odd}).encode())
    for value in (resources.resource_value(read, "server"), resources.prompt_value(read, "server")):
        repr(value)
        for part in value if isinstance(value, list) else [value]:
            for name in ("mime_type", "uri"):
                if isinstance(part, (content.Binary, content.ResourceText)):
                    assert isinstance(getattr(part, name), str)


CASES = Path(__file__).parents[3] / "mcpproxy" / "toolvalue" / "testdata" / "cases.json"


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in json.loads(CASES.read_text("utf-8"))])
def test_answers_of_tools_are_the_values_that_go_has(case: dict[str, Any]) -> None:
    """Package toolvalue, which prints them from a shell, is held to the same cases."""
    answer: Any = jsontext.decode(json.dumps(case["answer"]).encode())
    if "error" in case:
        with pytest.raises(errors.MCPError) as raised:
            toolresults.tool_value(answer, "server", "tool", lambda: content)
        assert case["error"] in str(raised.value)
        return
    value = toolresults.tool_value(answer, "server", "tool", lambda: content)
    assert value == case["value"]
    assert isinstance(value, str) == isinstance(case["value"], str)
    assert getattr(value, "__dict__", {}).get("attachments", []) == case.get("attachments", [])


@pytest.mark.parametrize(("typed", "meant"), [
    ("jsno", "json"), ("panda", "pandas"), ("requets", "requests"), ("mathplotlib", "matplotlib"), ("numpyy", "numpy"),
    ("pil", "PIL"), ("datetine", "datetime"), ("sjon", "json"), ("email.mesage", "email.message"),
    ("mcp.servers.githb", "mcp.servers.github"),
])
def test_typos_are_recognized(typed: str, meant: str) -> None:
    assert typos.is_typo(typed, meant)


@pytest.mark.parametrize(("wanted", "other"), [
    ("polars", "parso"), ("httpx", "http"), ("ujson", "json"), ("yml", "xml"), ("scapy", "scipy"),
    ("toml", "tomli"), ("runtime", "time"), ("cv", "csv"),
    ("x.json", "y.jsno"), ("json", "json"), ("json", "_json"), ("", "x"), ("x", ""),
])
def test_names_of_other_modules_are_no_typos(wanted: str, other: str) -> None:
    assert not typos.is_typo(wanted, other)


@pytest.mark.parametrize(("path", "want"), [
    (["/workspace", "/usr/lib/python3", "/usr/lib/python3/site-packages"], 2),
    (["/usr/lib/python3", "/usr/local/lib/dist-packages", "/usr/lib/dist-packages"], 1),
    (["/usr/lib/python3"], 1),
])
def test_packages_come_before_those_of_the_image(
        path: list[str], want: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "PACKAGES", str(tmp_path))
    monkeypatch.setattr(sys, "path", path)
    monkeypatch.setenv("PYTHONPATH", "/mine")
    process.add_packages()
    assert sys.path.index(str(tmp_path)) == want
    assert os.environ["PYTHONPATH"] == f"{tmp_path}:/mine"


def test_without_packages_the_path_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process, "PACKAGES", str(tmp_path / "none"))
    before = list(sys.path)
    process.add_packages()
    assert sys.path == before


def test_hidden_modules_come_from_the_packages_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages, image = tmp_path / "packages", tmp_path / "image"
    (packages / "spaced_name").mkdir(parents=True)
    (packages / "spaced_name" / "part.py").write_text("FROM = 'packages'")
    for name in ("spaced_name", "stale_name", "fine_name"):
        (image / name).mkdir(parents=True)
        (image / name / "__init__.py").write_text("FROM = 'image'")
    monkeypatch.setattr(sys, "path", [str(packages), str(image), *sys.path])
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setitem(sys.modules, "spaced_name", math)  # as a .pth file may have left it
    conflictingmodules.hide(["spaced_name", "stale_name"], str(packages))
    import fine_name  # type: ignore[import-not-found]
    import spaced_name.part  # type: ignore[import-not-found]
    assert (spaced_name.part.FROM, fine_name.FROM) == ("packages", "image")
    with pytest.raises(ModuleNotFoundError, match="'stale_name': the one of the image does not go together"):
        import stale_name  # type: ignore[import-not-found] # noqa: F401


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(host.Host, "derived", False)
    shape = values.Record(title="str", number="int", share="float", open="bool", labels=["str"], user={"na me": "int"},
                          other=None, any={})
    return toolresults.tool_value([3, shape], "github", "create", lambda: content)


def test_the_answer_of_a_planned_call_shows_as_its_result(planned: Any) -> None:
    issue = planned
    assert f"{issue.title} {issue.number} {issue.number:05d} {issue.share:.2f} {issue.open}" == (
        "<result 3>.title <result 3>.number <result 3>.number <result 3>.share <result 3>.open")
    assert repr([issue["labels"], issue.labels[0], issue.user["na me"]]) == (
        "[<result 3>.labels, <result 3>.labels[0], <result 3>.user['na me']]")
    assert repr([issue["other"].x, issue.any["y"], issue.raw]) == (
        "[<result 3>.other.x, <result 3>.any['y'], <result 3>.raw]")
    assert arguments.arguments_of({"n": issue.number, "all": [issue.share, {"o": issue.open}], "whole": issue}) == {
        "n": "<result 3>.number", "all": ["<result 3>.share", {"o": "<result 3>.open"}], "whole": "<result 3>"}
    assert json.loads(jsontext.encode(arguments.arguments_of({"n": issue.number}))) == {"n": "<result 3>.number"}
    for wrong in (lambda: issue.titel, lambda: issue["titel"], lambda: issue.number.title, lambda: issue.user.name):
        with pytest.raises((AttributeError, KeyError)):
            wrong()
    assert not host.Host.derived


BINARY = (
    operator.add, operator.sub, operator.mul, operator.matmul, operator.truediv, operator.floordiv, operator.pow,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.iadd, divmod,
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
)
NEEDED: list[Any] = [
    bool, len, int, float, complex, bytes, hash, list, set, tuple, iter, reversed, sorted, sum, max, enumerate, dict,
    abs, round, math.floor, math.ceil, math.trunc, math.sqrt, range, chr, hex, json.dumps, json.loads, "".join,
    base64.b64encode, memoryview, os.fspath, operator.index, operator.inv, operator.neg, operator.pos, operator.not_,
    lambda r: [0][r], lambda r: {r: 1}, lambda r: r in ["x"], lambda r: "x" in r, lambda r: r or 1, lambda r: [*r],
    lambda r: r[1:], lambda r: r[::2], lambda r: r(), lambda r: [1].index(r), lambda r: str(r, "utf-8"),
    lambda r: "%d" % r, lambda r: b"%s" % r, lambda r: 7 % r, lambda r: r % 2, lambda r: f"{1:{len(r)}}",
    *(functools.partial(do, 1) for do in BINARY), *(functools.partial(do, "a") for do in BINARY),
    *(lambda r, do=do: do(r, 2) for do in BINARY), *(lambda r, do=do: do(r, r) for do in BINARY),
]


@pytest.mark.parametrize("need", NEEDED)
@pytest.mark.parametrize("name", ["number", "share", "open", "title", "labels", "user", "other"])
def test_nothing_is_computed_from_a_placeholder(planned: Any, name: str, need: Any) -> None:
    with pytest.raises(TypeError) as raised:
        need(getattr(planned, name))
    said = str(raised.value)
    if "stands for the result of a call that was only planned" in said:
        assert host.Host.derived
        assert said.endswith("Pass it or an item of it on, or write it into a text with an f-string")
    else:  # Python's own check of a type
        assert "PlannedResult" in said or "must be" in said or "is required" in said or "can only join" in said


def test_methods_of_a_placeholder_are_not_called(planned: Any) -> None:
    for call in (lambda: planned.title.strip(), lambda: planned.get("more", 1), lambda: planned.other.encode()):
        with pytest.raises(TypeError, match="what its methods return is not known"):
            call()


def test_a_placeholder_refuses_each_operation_that_values_have() -> None:
    """What a later Python adds is looked at here first."""
    have = {name for kind in (int, float, complex, str, bytes, list, tuple, dict, set) for name in dir(kind)}
    special = {name for name in have if name.startswith("__")} - set(dir(object))
    left_out = {"__setitem__", "__delitem__", "__getnewargs__", "__class_getitem__", "__getformat__", "__setformat__",
                "__buffer__"}
    own = vars(placeholder.PlannedResult).keys()
    in_place = {name for name in special if name[2] == "i" and f"__{name[3:]}" in own}
    assert special - own - in_place == left_out & special


def test_what_kind_of_value_it_is_is_not_known(planned: Any) -> None:
    assert not isinstance(planned.other, dict)
    assert host.Host.derived


def test_a_placeholder_is_no_mapping_of_arguments(planned: Any) -> None:
    with pytest.raises(TypeError, match="takes a mapping or keyword arguments, not PlannedResult"):
        arguments.arguments_of(planned.other)


def test_parts_of_parts_are_bounded(planned: Any) -> None:
    part = planned.other
    for _ in range(1000):
        part = part["more"]
    assert "<result 3>" in str(part) and len(str(part)) <= placeholder.MOST_SHOWN


@pytest.mark.parametrize(("shape", "want"), [
    (None, "<result 1>"), ("str", "<result 1>"), ({"result": ["str"]}, "<result 1>"), ({"result": "str"}, "<result 1>"),
    ({}, "<result 1>"),
])
def test_a_placeholder_is_unwrapped_as_values_are(shape: Any, want: Any) -> None:
    result = toolresults.tool_value([1, shape], "github", "create", lambda: content)
    assert str(result) == want
    assert shape != {"result": ["str"]} or str(result[0]) == "<result 1>[0]"


def test_a_placeholder_can_be_copied_and_asked_what_it_can_do(planned: Any) -> None:
    assert str(copy.deepcopy(planned.title)) == "<result 3>.title"
    assert not hasattr(planned, "_repr_png_") and not hasattr(planned.other, "__await__")
    assert not host.Host.derived
    assert pretty.show(planned) == "<result 3>" and pretty.show([planned.number]) == "[<result 3>.number]"


def test_a_module_that_another_thread_imports_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "slow_module.py").write_text("import __main__ as main\nmain.begun.set()\nmain.go.wait()\ncache = {}\n")
    begun, go, looked = threading.Event(), threading.Event(), threading.Event()
    for name, event in {"begun": begun, "go": go}.items():
        monkeypatch.setattr(sys.modules["__main__"], name, event, raising=False)
    found: list[bool] = []

    def look() -> None:
        looked.set()
        texts.when_loaded("slow_module", lambda module: found.append(hasattr(module, "cache")))

    texts = sources.Sources()
    threads = [threading.Thread(target=__import__, args=("slow_module",)), threading.Thread(target=look)]
    try:
        threads[0].start()
        assert begun.wait(60)
        threads[1].start()
        assert looked.wait(60)
        threads[1].join(0.2)  # it waits, and would not if half a module were good enough
        go.set()
        for thread in threads:
            thread.join(60)
    finally:
        go.set()
        sys.meta_path.remove(texts)
        sys.modules.pop("slow_module", None)
    assert found == [True]
