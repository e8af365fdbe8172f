"""A session: run after run in one process.

Each run begins with a start message. Between two of them the host freezes the sandbox, but not at once: threads and
processes that the code left go on for a moment. The event loop is paused.
"""
from __future__ import annotations

import _thread
import builtins
import os
import sys

from .errors import MCPError
from .execute import Executor
from .mcpmodules import install_servers
from .run import run_one, set_file
from .uninterrupted import UninterruptedChannel, uninterrupted, wait_gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NoReturn

    from .channel import Channel
    from .host import Host
    from .runtime import Runtime


def run_session(channel: Channel, runtime: Runtime, start: dict[str, Any], namespace: dict[str, Any]) -> int:
    """Runs the code of one start message after the other until the session ends. Returns the last exit code."""
    executor = Executor(runtime, namespace, session=True)
    given = {name: namespace[name] for name in namespace if name == "display" or name.startswith(("mcp", "LOADED_MCP"))}
    for name in ("exit", "quit"):
        setattr(builtins, name, SessionExit(name, runtime))
    count = 0
    while True:
        count += 1
        if count > 1:
            executor.file = f"<run_python {count}>"  # tracebacks name the run and find its lines
        set_file(executor, start, namespace)
        coming = NextStart(runtime.host)
        whole = UninterruptedChannel(channel, runtime)
        code, reported = run_one(whole, runtime, start, executor, lambda: uninterrupted(runtime, flush_output, runtime))
        if runtime.ending or not reported:
            return code
        following = coming.wait(runtime)
        while following is not None and following.get("complete"):
            coming = NextStart(runtime.host)
            send_completions(whole, following["complete"], namespace)
            following = coming.wait(runtime)
        if following is None:
            return code
        start = following
        update_names(runtime, start, namespace, given)
        uninterrupted(runtime, prepare_run, runtime, start)


def send_completions(channel: UninterruptedChannel, text: str, namespace: dict[str, Any]) -> None:
    """Answers a start message that asks what may continue a name."""
    try:
        from .completion import names_for
        names = names_for(text, namespace)
    except BaseException:  # also that of an interrupt: it took too long
        names = []
    channel.send({"type": "done", "exitCode": 0, "kept": True, "result": "\n".join(names)})


def flush_output(runtime: Runtime) -> dict[str, Any]:
    """Flushes the output, and reports whether the session continues."""
    stream: Any
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except Exception:
            pass  # the code closed or replaced it
    try:
        import ctypes
        ctypes.PyDLL(None).fflush(None)  # what C libraries have printed
    except Exception:
        pass  # an image without ctypes: it comes with a later run
    return {} if runtime.ending else {"kept": True}


def update_names(runtime: Runtime, start: dict[str, Any], namespace: dict[str, Any], given: dict[str, Any]) -> None:
    """Updates the servers and saved tools for the next run, without touching the code's own names."""
    runtime.set_servers(start.get("servers") or ())
    names = install_servers(runtime, given["mcp"])
    for name, value in names.items():
        if name not in namespace or namespace[name] is given.get(name):
            namespace[name] = value
    given.update(names)
    runtime.tools.renew(start.get("saved") or (), given)
    namespace.pop("__warningregistry__", None)  # each run is warned anew
    type(runtime.host).derived = False


def prepare_run(runtime: Runtime, start: dict[str, Any]) -> None:
    """Makes ready what the host has for this run: what the last one printed, and a way out."""
    fetch_printed(runtime, start.get("printed") or ())
    if start.get("network") or runtime.replaced_variables:
        from .network import use_network
        use_network(runtime, start.get("network") or {})


def fetch_printed(runtime: Runtime, names: Iterable[str]) -> None:
    """Writes to files what the last run has printed, where that was too long for its result."""
    from binascii import a2b_base64

    from .newfile import FOLDER, new_file
    for name in names:
        path = f"{FOLDER}/{name}"
        try:
            with new_file(path) as file:
                while chunk := a2b_base64(runtime.host.ask("read_printed", {"name": name, "offset": file.tell()})):
                    file.write(chunk)
        except (OSError, MCPError) as error:
            print(f"{path} could not be written: {error}", file=sys.stderr)
            try:
                os.unlink(path)
            except OSError:
                pass  # it is not there


class NextStart:
    """The next start message, which the thread that reads replies hands over: it is the one without an id."""

    def __init__(self, host: Host) -> None:
        self._gate = _thread.allocate_lock()
        self._gate.acquire()
        self._message: list[dict[str, Any]] = []
        with host._lock:
            if host._closed:
                self._resolve({})
            else:
                host._waiting[None] = self._resolve, {}
                host.listen()

    def _resolve(self, message: Any) -> None:
        self._message.append(message)
        self._gate.release()

    def wait(self, runtime: Runtime) -> dict[str, Any] | None:
        """Returns the message, or None when the host has hung up."""
        wait_gate(self._gate, lambda: self._message, runtime)
        message, = self._message
        return message if message.get("type") == "start" else None


class SessionExit:
    """exit and quit end the session with the run, as they end a notebook's kernel; sys.exit() ends the run alone."""

    def __init__(self, name: str, runtime: Runtime) -> None:
        self._name, self._runtime = name, runtime

    def __call__(self, code: Any = None) -> NoReturn:
        self._runtime.end_session()
        raise SystemExit(code)

    def __repr__(self) -> str:
        return f"{self._name}() ends the session"
