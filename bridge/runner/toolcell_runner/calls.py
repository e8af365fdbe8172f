"""Asks the host for the code."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any

    from .host import Host
    from .sources import Sources


class Calls:
    """Knows which servers there are, and asks the host for what their objects in the code need."""

    def __init__(self, host: Host, sources: Sources) -> None:
        self.host = host
        self.sources = sources
        self.has_content = False  # whether there can be images in the code's values
        self.set_servers(())

    def set_servers(self, servers: Sequence[dict[str, Any]]) -> None:
        """Takes in which servers there are, and which of them this run may call."""
        self._entries = {entry["name"]: entry for entry in servers}
        self._names = {entry["alias"]: entry["name"] for entry in servers}
        granted = [entry for entry in servers if entry.get("granted")]
        self.granted = tuple(entry["name"] for entry in sorted(granted, key=lambda entry: entry.get("place", 0)))
        self._abouts: dict[tuple[str, str], Any] = {}

    def granted_entries(self) -> list[dict[str, Any]]:
        """Returns what the host said of the servers that this run may call, in their order."""
        return [self._entries[name] for name in self.granted]

    def aliases(self) -> dict[str, str]:
        """Returns {alias: name} of all discovered servers."""
        return self._names

    def entry(self, name: str) -> dict[str, Any] | None:
        """Returns what the host said of a server, by name or alias; None if there is none."""
        return self._entries.get(self.name_of(name))

    def name_of(self, server: str) -> str:
        """Returns the name of a server, which may be given by its alias."""
        return server if server in self._entries else self._names.get(server, server)

    def name_in_code(self, server: str, tool: str) -> str:
        """Returns what code calls a tool by."""
        known = self._entries.get(server)
        name = f"mcp_{known['alias']}" if known else f"mcp_servers[{server!r}]"
        return f"{name}.{tool}" if tool.isidentifier() else f"{name}[{tool!r}]"

    async def call(self, name: str, tool: str, args: Any, kwargs: Any, line: int) -> Any:
        """Calls a tool with the arguments of a function, which the host binds to the tool's parameters.

        The line is that of the code in which this was made: where gather awaits it, no frame of the code does.
        """
        from .arguments import arguments_of, is_planned, jsonable_argument
        from .toolresults import tool_value
        if len(args) == 1 and hasattr(args[0], "keys") and not is_planned(args[0]):
            args = [arguments_of(args[0])]
        else:
            args = [jsonable_argument(value, str(index)) for index, value in enumerate(args, 1)]
        params = {"server": name, "tool": tool, "args": args, "named": arguments_of(kwargs)}
        if line:
            params["line"] = line
        return tool_value(await self.host.ask_async("call_tool", params), name, tool, self.content)

    async def list_tools(self, server: str) -> Any:
        """Returns the tools of a server: records of name, alias, description and input_schema."""
        return await self.host.ask_async("list_tools", {"server": server})

    def list_tools_sync(self, server: str) -> Any:
        """list_tools for code that cannot await."""
        return self.host.ask("list_tools", {"server": server})

    def about(self, server: str, tool: str) -> Any:
        """Returns what the host knows of a tool and its signature."""
        key = server, tool
        if key not in self._abouts:
            self._abouts[key] = self.host.ask("tool_signature", {"server": server, "tool": tool})
        return self._abouts[key]

    def content(self) -> ModuleType:
        """Returns the module of content that is not text; its classes are in mcp.runtime from then on."""
        from . import content
        if not self.has_content:
            self.has_content = True
            content.publish(self)
        return content

