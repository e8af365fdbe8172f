"""MCP_AVAILABLE_SERVERS: the servers that the code may call, as JSON in the environment."""
from __future__ import annotations

import os

from .jsontext import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .runtime import Runtime

VARIABLE = "MCP_AVAILABLE_SERVERS"
MAX_BYTES = 64 << 10  # the kernel starts no program with a variable of 128 KiB
SERVER = "name", "alias", "description", "error", "tools"
TOOL = "name", "alias", "description", "input_schema"
DETAILS = (SERVER, TOOL), (SERVER, TOOL[:3]), (SERVER, TOOL[:2]), (SERVER[:2], ())


def set_variable(runtime: Runtime, source: str) -> None:
    """Sets the variable. Only for code that names it are the servers' tools in it: to list them may start a server."""
    known = runtime.list_loaded_server_metadata() if VARIABLE in source else runtime.granted_entries()
    try:
        os.environ[VARIABLE] = bounded_json(known)
    except Exception:
        pass  # an earlier run of the session has put something else in the place of os.environ


def bounded_json(servers: Sequence[Any]) -> str:
    """Returns the servers as JSON of at most MAX_BYTES: without schemas, descriptions or tools if they do not fit."""
    for of_server, of_tool in DETAILS:
        shown = [part(server, of_server) for server in servers]
        for server in shown:
            if "tools" in server:
                server["tools"] = [part(tool, of_tool) for tool in server["tools"]]
        text = encode(shown)
        if len(text) <= MAX_BYTES:
            return text.decode()
    return encode(shown[:MAX_BYTES * len(shown) // len(text) // 2]).decode()


def part(record: Any, keys: Iterable[str]) -> dict[str, Any]:
    return {key: record[key] for key in keys if key in record}
