"""A run: its names, its code, and its last message to the host."""
from __future__ import annotations

import os
import sys

from .mcpmodules import install_servers
from .serversenv import set_variable
from .tracebacks import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .channel import Channel
    from .execute import Executor
    from .runtime import Runtime
    from .uninterrupted import UninterruptedChannel

OUT = "/workspace/out"  # what is in it outlives the run
MAX_NAMES = 100  # of those that a run has defined


def set_names(runtime: Runtime, start: dict[str, Any], namespace: dict[str, Any]) -> None:
    """Defines the names of the servers that this run's code may call."""
    runtime.set_servers(start.get("servers") or ())
    names = install_servers(runtime, namespace["mcp"])
    namespace.update(names)
    names.update(mcp=namespace["mcp"], display=namespace["display"])
    runtime.tools.renew(start.get("saved") or (), names)


def set_file(executor: Executor, start: dict[str, Any], namespace: dict[str, Any]) -> None:
    """Names the file that the code comes from, if it comes from one."""
    if start.get("file"):
        executor.file = namespace["__file__"] = start["file"]


def run_one(channel: Channel | UninterruptedChannel, runtime: Runtime, start: dict[str, Any], executor: Executor,
            more: Callable[[], dict[str, Any]]) -> tuple[int, bool]:
    """Runs the code and reports to the host, with what more() gives. Returns the exit code and if that worked."""
    pid = os.getpid()
    source = start.get("code", "").replace("\r\n", "\n").replace("\r", "\n")
    runtime.sources.add(executor.file, source)
    runtime.host.code_file = executor.file
    watch_pyplot(runtime)
    set_variable(runtime, source)
    namespace = sys.modules["__main__"].__dict__
    before = set(namespace)
    code, result, error, limit = executor.run(source, runtime.host.tell_begun if start.get("begun") else None)
    # A process that the code forked comes back here too: only the first one has anything to report.
    if os.getpid() != pid:
        return code, False
    hand_over_output(runtime)
    done = {"type": "done", "exitCode": code, "result": result, "error": error, "limit": limit, "cause": executor.cause,
            "names": new_names(namespace, before), **more()}
    try:
        channel.send({key: value for key, value in done.items() if value is not None})
    except Exception:
        return code, False  # the code broke the socket: the host goes by the exit status
    return code, True


def new_names(namespace: dict[str, Any], before: set[str]) -> str | None:
    """Returns the names that the code has defined: the host explains it if a later run misses them."""
    names = [name for name in tuple(namespace) if name not in before and type(name) is str and name.isidentifier()
             and name[:1] != "_" and len(name) <= 60]
    return " ".join(names[-MAX_NAMES:]) or None


def hand_over_output(runtime: Runtime) -> None:
    """Sends the code's open figures, and makes the files in OUT readable for the host. Never raises."""
    try:
        show_figures(runtime)
        if os.listdir(OUT):
            from .display import open_files
            open_files(OUT)
    except BaseException as error:
        if not isinstance(error, OSError):  # OUT is not there
            os.write(2, (describe(error) + "\n").encode("utf-8", "backslashreplace"))


def watch_pyplot(runtime: Runtime) -> None:
    """Makes plt.show() do what it does in a notebook."""
    def hook(pyplot: Any) -> None:
        # A function: pyplot gives it the signature of its backend's.
        pyplot.show = lambda *args, **kwargs: show_figures(runtime)

    runtime.sources.when_loaded("matplotlib.pyplot", hook)


def show_figures(runtime: Runtime) -> None:
    """Displays the open figures and closes them."""
    pylab = sys.modules.get("matplotlib._pylab_helpers")
    if pylab and pylab.Gcf.figs:
        from . import display
        display.show_figures(runtime.host, pylab.Gcf)
