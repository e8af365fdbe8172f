"""The tests play the host: they start the runner with one end of a socket pair as fd 3 and answer what it asks."""
from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[1] / "toolcell_runner"
SERVERS = [
    {"name": "github", "alias": "github", "description": "issues and code", "granted": True},
    {"name": "file-system", "alias": "file_system", "granted": True},
    {"name": "jira", "alias": "jira", "granted": False},
]


class Run:
    """The outcome of a run."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.done: list[dict[str, Any]] = []
        self.stdout = self.stderr = ""
        self.exit = -1


class Runner:
    """A runner that has been started, and the host's end of its socket."""

    def __init__(self, folder: Path) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(30)
        program = f"import os, sys; os.dup2({theirs.fileno()}, 3); os.execv(sys.argv[1], sys.argv[1:])"
        command = [sys.executable, "-s", "-B", "-u", "-X", "utf8", str(PACKAGE / "__main__.py")]
        # A wrapper, not preexec_fn: the number of the descriptor has to be 3.
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", program, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, pass_fds=[theirs.fileno()], cwd=folder, text=True, encoding="utf-8")
        theirs.close()

    def send(self, message: object) -> None:
        self.send_bytes(json.dumps(message).encode())

    def send_bytes(self, body: bytes) -> None:
        self.socket.sendall(len(body).to_bytes(4, "big") + body)

    def receive(self) -> Any:
        """Returns the next message, or None once the runner has hung up."""
        head = self._read(4)
        return json.loads(self._read(int.from_bytes(head, "big"))) if head else None

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                return b""
            data += more
        return data

    def start(self, code: str, **more: Any) -> None:
        self.send({"type": "start", "code": code, "servers": SERVERS, "saved": [], **more})

    def serve(self, run: Run, answer: Callable[[str, Any], Any]) -> None:
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
                reply = {"type": "reply", "id": message["id"]}
                try:
                    reply["result"] = answer(message["method"], message["params"])
                except Exception as error:
                    reply["error"] = {"message": str(error), "kind": type(error).__name__}
                self.send(reply)

    def finish(self, run: Run) -> Run:
        run.stdout, run.stderr = self.process.communicate(timeout=30)
        run.exit = self.process.returncode
        self.socket.close()
        return run


def echo(method: str, params: Any) -> Any:
    """Answers as a server whose tools give back their arguments."""
    if method != "call_tool":
        raise ValueError(f"no method {method!r}")
    return {"content": [], "structuredContent": {"tool": params["tool"], "named": params.get("named")}}


@pytest.fixture
def start(tmp_path: Path) -> Callable[[], Runner]:
    """Starts a runner, whose first message has been read."""
    def started() -> Runner:
        runner = Runner(tmp_path)
        ready = runner.receive()
        assert ready == {"type": "ready", "python": "%d.%d.%d" % sys.version_info[:3]}
        return runner

    return started


@pytest.fixture
def run(start: Callable[[], Runner]) -> Callable[..., Run]:
    """Runs code and returns what came of it."""
    def ran(code: str, answer: Callable[[str, Any], Any] = echo, **more: Any) -> Run:
        runner, result = start(), Run()
        runner.start(code, **more)
        runner.serve(result, answer)
        runner.finish(result)
        assert os.fspath(PACKAGE) not in result.stderr, "a traceback shows the runner"
        return result

    return ran
