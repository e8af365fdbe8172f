"""The work done ahead of runs, in a template and in its forks."""
from __future__ import annotations

import _socket
import sys

# What only some runs need is imported once, in the template: in each fork that would write to all these modules.
from . import (  # noqa: F401
    arguments,
    content,
    display,
    documentation,
    errorreport,
    mistakenvalues,
    network,
    pretty,
    resources,
    savetool,
    session,
    signatures,
    stackdump,
    suggestions,
    toolresults,
    typos,
)
from .channel import Channel
from .host import Host
from .jsontext import encode
from .process import install_main, main
from .runtime import Runtime
from .sources import Sources

if "asyncio" in sys.modules:
    from . import eventloop, looptime  # noqa: F401

REPLACED = "__main__", "mcp", "mcp.runtime", "mcp.servers"  # modules that a run makes for itself


def warm_up() -> None:
    """Goes the way of a run, with code that does nothing.

    What Python learns on the way is kept by the template, and the memory that is written on the way is the fork's own
    before it is needed.
    """
    # A copy of sys.modules would write to each of them, and so copy a page of the template's for nearly every one.
    known, modules = len(sys.modules), {name: sys.modules[name] for name in REPLACED if name in sys.modules}
    finders, argv = list(sys.meta_path), list(sys.argv)
    host, ours = _socket.socketpair()
    try:
        channel = Channel(ours.fileno())
        runtime = Runtime(Host(channel), Sources())
        install_main(runtime)
        awaiting = "await asyncio.sleep(0)\n" if "asyncio" in sys.modules else ""
        start = encode({"code": f"import sys\nx = [1]\nprint(end='')\n{awaiting}x and None", "servers": []})
        host.send(len(start).to_bytes(4, "big") + start)
        main((channel, runtime))
    finally:
        host.close()
        ours.close()
    while len(sys.modules) > known:
        sys.modules.popitem()  # the newest
    sys.modules.update(modules)
    sys.meta_path[:] = finders
    sys.argv[:] = argv
