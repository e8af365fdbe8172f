"""The modules mcp, mcp.runtime and mcp.servers."""
from __future__ import annotations

import sys

from .errors import MCPError, UnknownServerError
from .runtime import Runtime
from .servers import Servers, server_of
from .values import CARRIERS, Ready, ReadyRecord, ReadyText, ReadyTuple, Record, hide_types, is_dunder, known_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .servers import Server

Module = type(sys)


def install_modules(runtime: Runtime) -> dict[str, Any]:
    """Registers mcp and mcp.runtime. Returns the names every piece of code starts with, without those of servers."""
    mcp = package("mcp", "The user's MCP servers, in Python.")
    mcp.__all__ = ["runtime", "servers"]
    mcp.MCPError = MCPError
    mcp.runtime = runtime_module(runtime)
    for module in (mcp, mcp.runtime):
        sys.modules[module.__name__] = module
    return {"mcp": mcp, "display": runtime.display}


def install_servers(runtime: Runtime, mcp: Any) -> dict[str, Any]:
    """Registers mcp.servers.*. Returns the names that lead to servers."""
    mcp.servers = package("mcp.servers", "One module for each MCP server, one function for each of its tools.")
    mcp.servers.__all__ = list(runtime.aliases())
    sys.modules["mcp.servers"] = mcp.servers
    names: dict[str, Any] = {}
    for alias, name in runtime.aliases().items():
        module = server_module("mcp.servers." + alias, server_of(runtime, name), runtime)
        setattr(mcp.servers, alias, module)
        sys.modules[module.__name__] = module
        names["mcp_" + alias] = server_of(runtime, name)
    names.update(mcp_servers=Servers(runtime, runtime.granted), LOADED_MCP_SERVERS=runtime.granted)
    return names


def package(name: str, doc: str) -> Any:
    module = Module(name, doc)
    module.__path__ = []  # a package, with nothing on disk: import x.y looks in sys.modules and ends there
    return module


def runtime_module(runtime: Runtime) -> Any:
    module: Any = Module("mcp.runtime", Runtime.__doc__)
    for kind in (MCPError, UnknownServerError, Record, Ready, ReadyTuple, ReadyRecord, ReadyText,
                 *CARRIERS.values()):
        setattr(module, kind.__name__, kind)  # where pickle looks for them
        hide_types(kind)
    hide_types(Runtime)
    public = sorted(name for name in vars(Runtime) if name[0] != "_")
    for name in public:
        setattr(module, name, getattr(runtime, name))
    module.__all__ = [*public, "MCPError"]
    return module


def server_module(name: str, server: Server, runtime: Runtime) -> Any:
    """Returns a module whose names are the server's tools, by alias or name. It asks for them when first used.

    TOOLS lists their records, and TOOL_MAP has them by alias.
    """
    module: Any = Module(name, server._title)
    known: list[Any] = []

    def tools() -> list[Any]:
        if not known:
            known.extend(runtime.list_tools_sync(server._name))
        return known

    def __getattr__(wanted: str) -> Any:
        if wanted == "__all__":
            return [tool["alias"] for tool in tools()]
        if wanted == "TOOLS":
            return list(tools())
        if wanted == "TOOL_MAP":
            return {tool["alias"]: tool for tool in tools()}
        if not is_dunder(wanted):
            for key in ("name", "alias"):  # no alias is the name of another tool
                for tool in tools():
                    if tool[key] == wanted:
                        return server[tool["name"]]
            raise AttributeError(f"no tool {wanted!r}; " + known_names(wanted, [tool["alias"] for tool in tools()]))
        raise AttributeError(f"module {name!r} has no attribute {wanted!r}")

    module.__getattr__ = __getattr__
    module.__dir__ = lambda: [tool["alias"] for tool in tools()]
    return module
