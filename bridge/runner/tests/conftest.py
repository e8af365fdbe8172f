"""The tests play the host: they start the runner with one end of a socket pair as fd 3 and answer what it asks."""
from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pythons import NEWEST, Python

PACKAGE = Path(__file__).parents[1] / "toolcell_runner"
TIMEOUT = 60  # seconds, on a machine that does much else
SERVERS = [
    {"name": "github", "alias": "github", "description": "issues and code", "granted": True},
    {"name": "file-system", "alias": "file_system", "granted": True},
    {"name": "jira", "alias": "jira", "granted": False},
    {"name": "servers", "alias": "servers", "granted": False},
]
Answer = Callable[[str, Any], Any]


class Run:
    """The outcome of a run."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.done: list[dict[str, Any]] = []
        self.stdout = self.stderr = ""
        self.exit = -1

    def said(self, field: str) -> Any:
        """Returns a field of the one message at the end."""
        message, = self.done
        return message.get(field)


class Runner:
    """A runner that has been started, and the host's end of its socket."""

    def __init__(self, program: Path, folder: Path, python: Python) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(TIMEOUT)
        # A wrapper, not preexec_fn: the number of the descriptor has to be 3.
        wrapper = f"import os, sys; os.dup2({theirs.fileno()}, 3); os.execv(sys.argv[1], sys.argv[1:])"
        command = [python.path, "-s", "-B", "-u", "-X", "utf8", str(program)]
        # Files, not pipes: what is printed waits for no one.
        self._stdout, self._stderr = folder.with_suffix(".stdout"), folder.with_suffix(".stderr")
        with open(self._stdout, "ab") as stdout, open(self._stderr, "ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-S", "-E", "-c", wrapper, *command], stdin=subprocess.DEVNULL, stdout=stdout,
                stderr=stderr, pass_fds=[theirs.fileno()], cwd=folder)
        theirs.close()

    def send(self, message: object) -> None:
        self.send_bytes(json.dumps(message).encode())

    def send_bytes(self, body: bytes) -> None:
        try:
            self.socket.sendall(len(body).to_bytes(4, "big") + body)
        except BrokenPipeError:
            pass  # the runner has gone, which the test sees in other ways

    def receive(self) -> Any:
        """Returns the next message, or None once the runner has hung up."""
        head = self._read(4)
        return json.loads(self._read(int.from_bytes(head, "big"))) if head else None

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                more = self.socket.recv(min(size - len(data), 1 << 20))
            except ConnectionResetError:
                more = b""
            if not more:
                return b""
            data += more
        return bytes(data)

    def start(self, code: str, **more: Any) -> None:
        self.send({"type": "start", "code": code, "servers": SERVERS, "saved": [], **more})

    def serve(self, run: Run, answer: Answer) -> None:
        """Answers calls until the runner is done, or has hung up."""
        while True:
            message = self.receive()
            if message is None:
                return
            if message["type"] == "done":
                run.done.append(message)
                if message.get("kept"):
                    return
            elif message["type"] == "call":
                run.calls.append(message)
                self.reply(message, answer)

    def reply(self, call: Any, answer: Answer) -> None:
        params = call["params"]
        reply = {"type": "reply", "id": call["id"]}
        try:
            reply["result"] = answer(call["method"], params)
        except Exception as error:
            reply["error"] = {"message": str(error), "kind": type(error).__name__,
                              "server": params.get("server"), "tool": params.get("tool")}
        self.send(reply)

    def finish(self, run: Run) -> Run:
        """Waits until the runner has ended by itself."""
        try:
            run.exit = self.process.wait(TIMEOUT)
        finally:
            self.process.kill()
            self.socket.close()
            run.stdout, run.stderr = self._stdout.read_text("utf-8"), self._stderr.read_text("utf-8")
        assert "/toolcell_runner" not in run.stderr, "a traceback shows the runner"
        return run


def echo(method: str, params: Any) -> Any:
    """Answers as a host whose tools give back their arguments, but for `raw`, whose argument is the whole answer."""
    tools = [
        {"name": "create-issue", "alias": "create_issue", "description": "makes one",
         "input_schema": {"type": "object"}},
        {"name": "echo", "alias": "echo", "description": "gives back"},
    ]
    docs = [{"server": "github", "tool": "echo", "description": "gives back"}, {"server": "jira", "tool": "find"}]
    if method == "call_tool":
        if params["server"] == "jira":
            raise RuntimeError('add "jira" to servers to call it')
        arguments = bound(params)
        if params["tool"] == "raw":
            return arguments["answer"]
        return {"content": [], "structuredContent": {"arguments": arguments, "tool": params["tool"]}}
    if method == "describe_server":
        if params["server"] == "file-system":
            raise RuntimeError("file-system does not start")
        return {"name": params["server"], "alias": "github", "description": "issues", "tools": tools}
    return {
        "tool_signature": lambda: {"parameters": [], "doc": params["tool"] + "()", "description": "gives back"},
        "list_servers": lambda: [server["name"] for server in SERVERS],
        "describe_servers": lambda: [{"name": "github", "alias": "github", "description": "issues", "status": "ready"}],
        "list_tools": lambda: tools,
        "query_tool_docs": lambda: docs[:1] if params.get("tool") else docs,
        "search_tool_docs": lambda: docs[:params["limit"]],
        "save_tool": lambda: None,
    }[method]()


def bound(params: Any) -> dict[str, Any]:
    """Makes of the arguments of a function those of a tool that takes any."""
    if "named" not in params:
        return params["arguments"]  # type: ignore[no-any-return]
    mapping = params["args"][0] if len(params["args"]) == 1 and isinstance(params["args"][0], dict) else {}
    return {**mapping, **params["named"]}


@pytest.fixture
def python(request: pytest.FixtureRequest) -> Python:
    """The interpreter that runs the code: the newest one, where a test is not run by several."""
    return getattr(request, "param", NEWEST)  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def program_for(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Python], Path]:
    """Returns the program of the runner, with bytecode for an interpreter: starting takes twice as long without."""
    copies: dict[Python, Path] = {}

    def copy(python: Python) -> Path:
        if python not in copies:
            folder = tmp_path_factory.mktemp("runner") / "toolcell_runner"
            shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
            subprocess.run([python.path, "-s", "-m", "compileall", "-q", folder], check=True)
            copies[python] = folder / "__main__.py"
        return copies[python]

    return copy


@pytest.fixture
def start(tmp_path: Path, python: Python, program_for: Callable[[Python], Path]) -> Callable[[], Runner]:
    """Starts a runner, whose first message has been read."""
    def started() -> Runner:
        folder = tmp_path / str(len(os.listdir(tmp_path)))
        folder.mkdir()
        runner = Runner(program_for(python), folder, python)
        ready = runner.receive()
        assert ready["type"] == "ready" and ready["python"].startswith(f"3.{python.minor}.")
        return runner

    return started


@pytest.fixture
def run(start: Callable[[], Runner]) -> Callable[..., Run]:
    """Runs code and returns what came of it."""
    def ran(code: str, answer: Answer = echo, **more: Any) -> Run:
        runner, result = start(), Run()
        runner.start(code, **more)
        runner.serve(result, answer)
        return runner.finish(result)

    return ran
