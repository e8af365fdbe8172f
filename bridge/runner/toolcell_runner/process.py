"""The process of the runner: what it does before the code, and the start message."""
from __future__ import annotations

import builtins
import os
import sys
from io import FileIO

from .channel import Channel
from .execute import Executor
from .host import Host
from .jsontext import decode
from .mcpmodules import install_modules
from .run import OUT, run_one, set_file, set_names
from .runtime import Runtime
from .sources import FOLDER, Sources
from .tracebacks import hide_from, report_in_threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

CONTROL_FD = 3
PACKAGES = "/run/toolcell/packages"
HIDDEN = PACKAGES + "/.toolcell-hidden"  # modules that are not taken from the image

Module = type(sys)


def run_start_message(channel: Channel, runtime: Runtime, start: dict[str, Any]) -> int:
    """Carries out the start message. Returns the exit code."""
    sys.argv[:] = start.get("argv") or [""]
    if start.get("input"):
        from .typedinput import open_typed_input
        sys.stdin = open_typed_input(runtime.host)
    if start.get("network"):
        from .network import use_network
        use_network(runtime, start["network"])
    namespace = sys.modules["__main__"].__dict__
    set_names(runtime, start, namespace)
    if start.get("session"):
        from .session import run_session
        return run_session(channel, runtime, start, namespace)
    executor = Executor(runtime, namespace)
    set_file(executor, start, namespace)
    return run_one(channel, runtime, start, executor, dict)[0]


def handle_timeout_signal(runtime: Runtime, channel: Channel) -> None:
    """Sends the stack of the code when the host's signal says that the time is up.

    faulthandler, which is C code, sends it as text at once. Python's own handler follows when it gets its turn.
    """
    def handle(signum: int, frame: FrameType) -> None:
        try:
            from .stackdump import send_stack
            send_stack(runtime, channel, frame)
        except BaseException:
            pass  # the text has to do

    try:
        import _signal  # type: ignore[import-not-found] # signal itself takes longer
        import faulthandler
        _signal.signal(_signal.SIGURG, handle)
        faulthandler.register(_signal.SIGURG, file=channel.fd, all_threads=False, chain=True)
    except Exception:
        pass  # a Python that was built without


def set_up_process() -> None:
    """Makes this process look like python running a script from the working directory."""
    stream: Any
    for stream in (sys.stdout, sys.stderr):
        # Text from anywhere can be printed: a lone surrogate comes out as \udc80.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    ours = FOLDER[:-1], os.path.dirname(FOLDER[:-1])  # where we, or what loads us, was started
    sys.path[:] = [os.getcwd(), *(entry for entry in sys.path if entry not in ours)]
    sys.argv[:] = [""]
    try:
        os.mkdir(OUT)
    except OSError:
        pass  # this is no sandbox


def add_packages() -> None:
    """Puts the packages of the script into sys.path: behind the standard library, before what the image has.

    A template has them only if the user preloads some. Otherwise modules of theirs would run in it: the standard
    library also tries to import what this system does not have, as subprocess does with msvcrt.
    """
    if PACKAGES in sys.path:
        return
    try:
        os.stat(PACKAGES)
    except OSError:
        return
    at = 0
    while at < len(sys.path) and not sys.path[at].endswith(("/site-packages", "/dist-packages")):
        at += 1
    sys.path.insert(at, PACKAGES)
    try:
        with FileIO(HIDDEN) as file:
            names = file.read().decode("ascii").split()
    except OSError:
        names = []
    if names:
        from .conflictingmodules import hide
        hide(names, PACKAGES)
    # For the Pythons that the code starts. There they come before the standard library; nothing else is read by all.
    others = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{PACKAGES}:{others}" if others else PACKAGES


def prepare() -> tuple[Channel, Runtime]:
    """Does the work that does not depend on the code."""
    channel = Channel(CONTROL_FD)
    set_up_process()
    add_packages()
    channel.send({"type": "ready", "python": "%d.%d.%d" % sys.version_info[:3]})
    runtime = Runtime(Host(channel), Sources())
    runtime.sources.when_loaded("traceback", hide_from)
    runtime.sources.when_loaded("threading", lambda module: report_in_threads(module, runtime.sources))
    handle_timeout_signal(runtime, channel)
    install_main(runtime)
    return channel, runtime


def install_main(runtime: Runtime) -> None:
    """Makes a __main__ for the code, which does not get the builtins of the runner's modules."""
    main_module = sys.modules["__main__"] = Module("__main__")
    main_module.__dict__.update(install_modules(runtime), __builtins__=vars(builtins))


def main(prepared: tuple[Channel, Runtime] | None = None) -> int:
    channel, runtime = prepared or prepare()
    body = channel.receive()
    if body is None:
        return 1  # the host wants nothing
    return run_start_message(channel, runtime, decode(body))


def ended(prepared: tuple[Channel, Runtime], code: int) -> bool:
    """Reports the end to the host, which then need not wait until the kernel has taken this process apart."""
    prepared[0].send({"type": "end", "exitCode": code})
    return True
