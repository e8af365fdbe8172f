"""The code's view of servers: mcp_servers, mcp_<alias> and their tools."""
from __future__ import annotations

from .errors import UnknownServerError
from .values import known_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .calls import Calls


class Tool:
    # No docstring: help() is to show that of the instance.

    def __init__(self, calls: Calls, server: str, name: str) -> None:
        self._calls, self._server, self._name = calls, server, name
        self.__name__ = name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        call: Any = self._calls.call(self._server, self._name, args, kwargs, self._calls.host.line())
        # What is said about a call that was never awaited names it as the code does.
        call.__name__ = self._name
        call.__qualname__ = self._calls.name_in_code(self._server, self._name)
        return call

    @property
    def __signature__(self) -> Any:
        from .signatures import signature_of
        return signature_of(self._calls.about(self._server, self._name))

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        from .documentation import tool_help
        return tool_help(self._calls.about(self._server, self._name))

    def __repr__(self) -> str:
        return f"<tool {self._name!r} of MCP server {self._server!r}>"


class Server:
    # No docstring: help() is to show that of the instance.

    def __init__(self, calls: Calls, entry: dict[str, Any]) -> None:
        self._calls = calls
        self._name: str = entry["name"]
        about = entry.get("description")
        self._title = f"MCP server {self._name!r}" + (f": {about}" if about else "")

    def __getattr__(self, tool: str) -> Tool:
        # An alias starts with an underscore only before a digit; all else is Python asking for its own.
        if tool.startswith("_") and not tool[1:2].isdigit():
            raise AttributeError(f"MCP server {self._name!r} has no attribute {tool!r}")
        return self[tool]

    def __getitem__(self, tool: str) -> Tool:
        return Tool(self._calls, self._name, tool)

    __iter__ = None  # or Python would iterate by item 0, 1, 2… for ever

    def __dir__(self) -> list[str]:
        return ["list_tools", *(tool["alias"] for tool in self._calls.list_tools_sync(self._name))]

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        from .documentation import server_help
        return server_help(self._title, self._calls.list_tools_sync(self._name))

    def list_tools(self) -> Any:
        """Await it: all tools of this server, each with name, alias, description and input_schema."""
        return self._calls.list_tools(self._name)

    def __repr__(self) -> str:
        return f"<{self._title}>"


class Servers(dict):  # type: ignore[type-arg]
    """mcp_servers: the servers this run may call, by name. Others can be had too; the host refuses their calls."""

    def __init__(self, calls: Calls, names: Iterable[str]) -> None:
        super().__init__((name, server_of(calls, name)) for name in names)
        self._calls = calls

    def __missing__(self, name: str) -> Server:
        return server_of(self._calls, name)


def server_of(calls: Calls, name: str) -> Server:
    """Returns a discovered server, by name or alias. Raises UnknownServerError for others."""
    entry = calls.entry(name)
    if entry is None:
        raise UnknownServerError(f"no MCP server {name!r}; " + known_names(name, calls.aliases().values()), name)
    return Server(calls, entry)
