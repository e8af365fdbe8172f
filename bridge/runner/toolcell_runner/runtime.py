"""The functions of mcp.runtime."""
from __future__ import annotations

import sys

from .checks import checked_detail, searching, text, texts
from .errors import MCPError, UnknownServerError
from .jsontext import encode
from .servers import Server
from .sources import FOLDER
from .values import ReadyRecord, ReadyText, ReadyTuple, Record, known_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any

    from .host import Host
    from .saved import SavedTools
    from .sources import Sources


class Runtime:
    """The functions of mcp.runtime: find, read about and call the tools of every MCP server."""

    PUBLIC = ("call_tool", "capability_summary", "describe_server", "discovered_servers", "display", "end_session",
              "export_tools", "get_prompt", "get_prompt_sync", "list_loaded_server_metadata", "list_prompts",
              "list_prompts_sync",
              "list_resource_templates", "list_resource_templates_sync", "list_resources", "list_resources_sync",
              "list_servers", "list_servers_sync", "list_tools", "list_tools_sync", "query_tool_docs",
              "query_tool_docs_sync", "read_resource", "read_resource_sync", "remove_tool", "save_tool",
              "saved_tools", "search_tool_docs", "search_tool_docs_sync")

    def __init__(self, host: Host, sources: Sources) -> None:
        self.host = host
        self.sources = sources
        self.tools: SavedTools  # the saved ones, set before each run
        self.saved_here: dict[str, Any] = {}  # what the code itself has saved, by name
        self.ending = False  # the session, with this run
        self.replaced_variables: dict[str, str | None] = {}  # what network.py put others in place of
        self.has_content = False  # whether there can be images in the code's values
        self.set_servers(())

    def set_servers(self, servers: Sequence[dict[str, Any]]) -> None:
        """Takes in which servers there are, and which of them this run may call."""
        self._entries = {entry["name"]: entry for entry in servers}
        self._names = {entry["alias"]: entry["name"] for entry in servers}
        granted = [entry for entry in servers if entry.get("granted")]
        self.granted = tuple(entry["name"] for entry in sorted(granted, key=lambda entry: entry.get("place", 0)))
        self._abouts: dict[tuple[str, str], Any] = {}

    def server(self, name: str) -> Server:
        """Returns the proxy of a discovered server, by name or alias. Raises UnknownServerError for others."""
        entry = self._entries.get(self._name(name))
        if entry is None:
            raise UnknownServerError(f"no MCP server {name!r}; " + known_names(name, self._entries), name)
        return Server(self, entry)

    def granted_entries(self) -> list[dict[str, Any]]:
        """Returns what the host said of the servers that this run may call, in their order."""
        return [self._entries[name] for name in self.granted]

    def aliases(self) -> dict[str, str]:
        """Returns {alias: name} of all discovered servers."""
        return self._names

    def name_in_code(self, server: str, tool: str) -> str:
        """Returns what code calls a tool by."""
        known = self._entries.get(server)
        name = f"mcp_{known['alias']}" if known else f"mcp_servers[{server!r}]"
        return f"{name}.{tool}" if tool.isidentifier() else f"{name}[{tool!r}]"

    def _named(self, server: Any, function: str) -> Any:
        """_name for an argument of a function of mcp.runtime, which may be anything."""
        if not isinstance(server, (str, Server)):
            raise TypeError(f"{function}(): server must be a name or a server, not {type(server).__name__}")
        return self._name(server)

    def _name(self, server: Any) -> Any:
        if isinstance(server, Server):
            return server._name
        return server if server in self._entries else self._names.get(server, server)

    def watch_pyplot(self) -> None:
        """Makes plt.show() do what it does in a notebook."""
        def hook(pyplot: Any) -> None:
            # A function: pyplot gives it the signature of its backend's.
            pyplot.show = lambda *args, **kwargs: self.show_figures()

        self.sources.when_loaded("matplotlib.pyplot", hook)

    def show_figures(self) -> None:
        """Displays the open figures and closes them."""
        pylab = sys.modules.get("matplotlib._pylab_helpers")
        if pylab and pylab.Gcf.figs:
            from .display import show_figures
            show_figures(self.host, pylab.Gcf)

    def content(self) -> ModuleType:
        """Returns the module of content that is not text; its classes are in mcp.runtime from then on."""
        from . import content
        if not self.has_content:
            self.has_content = True
            content.publish(self)
        return content

    def about(self, server: str, tool: str) -> Any:
        """Returns what the host knows of a tool and its signature."""
        key = server, tool
        if key not in self._abouts:
            self._abouts[key] = self.host.ask("tool_signature", {"server": server, "tool": tool})
        return self._abouts[key]

    async def call_tool(self, server: str, tool: str, arguments: Any = None, *, check: bool = True) -> Any:
        """Calls a tool and returns its value; the whole answer is at the value's .raw.

        The arguments are a mapping. Raises MCPError if the tool reports an error or may not be called, TypeError or
        ValueError if a value does not fit the tool's schema or is not JSON. Names that the schema does not have, and
        those that are missing, are left to the server. With check=False all values are too: for a server that takes
        what its own schema does not allow.
        """
        from .arguments import arguments_of
        from .toolresults import tool_value
        name = self._named(server, "call_tool")
        params = {"server": name, "tool": text(tool, "call_tool(): tool"),
                  "arguments": arguments_of({} if arguments is None else arguments)}
        if not check:
            params["unchecked"] = True
        return tool_value(await self.host.ask_async("call_tool", params), name, tool, self)

    async def _call(self, name: str, tool: str, args: Any, kwargs: Any) -> Any:
        """call_tool with the arguments of a function, which the host binds to the tool's parameters."""
        from .arguments import arguments_of, is_planned, jsonable_argument
        from .toolresults import tool_value
        if len(args) == 1 and hasattr(args[0], "keys") and not is_planned(args[0]):
            args = [arguments_of(args[0])]
        else:
            args = [jsonable_argument(value, str(index)) for index, value in enumerate(args, 1)]
        params = {"server": name, "tool": tool, "args": args, "named": arguments_of(kwargs)}
        return tool_value(await self.host.ask_async("call_tool", params), name, tool, self)

    def discovered_servers(self, detailed: bool = False) -> ReadyTuple:
        """Returns the names of all known servers, or, if detailed, records of name, alias, description and status."""
        return ReadyTuple(self.host.ask("describe_servers", {}) if detailed else self._entries)

    def list_servers(self) -> ReadyTuple:
        """Returns the names of all known servers, as the host knows them now; may be awaited."""
        return ReadyTuple(self.host.ask("list_servers", {}))

    def list_servers_sync(self) -> tuple[str, ...]:
        """Returns the names of all known servers, as the host knows them now."""
        return tuple(self.list_servers())

    async def list_tools(self, server: str) -> Any:
        """Returns the tools of a server: records of name, alias, description and input_schema."""
        return await self.host.ask_async("list_tools", {"server": self._named(server, "list_tools")})

    def list_tools_sync(self, server: str | Server) -> Any:
        """list_tools for code that cannot await."""
        return self.host.ask("list_tools", {"server": self._named(server, "list_tools")})

    def describe_server(self, name: str | Server) -> ReadyRecord:
        """Returns a record of a server's name, alias, description and tools; may be awaited."""
        return ReadyRecord(self.host.ask("describe_server", {"server": self._named(name, "describe_server")}))

    def list_loaded_server_metadata(self) -> ReadyTuple:
        """Returns describe_server for each server this run may call. If one fails, it has an error and no tools."""
        waits = [(name, self.host.begin("describe_server", {"server": name})) for name in self.granted]
        return ReadyTuple(self._described(name, wait) for name, wait in waits)

    def _described(self, name: str, wait: Callable[[], Any]) -> Any:
        try:
            return wait()
        except MCPError as error:
            entry = self._entries[name]
            return Record(name=name, alias=entry["alias"], description=entry.get("description", ""), tools=[],
                          error=str(error))

    async def query_tool_docs(self, server: str, tool: str | None = None, detail: str = "summary") -> Any:
        """Returns the docs of a server's tools, or of one tool, whose name or alias may be in any case.

        Each has a short description and the signature in short, which print shows. Detail "full" has both in full, and
        inputSchema; "schema" is the same without signature. query_tool_docs_sync returns a list also of one tool.
        """
        docs = self._docs(await self.host.ask_async(*self._query(server, tool, detail)), detail)
        return docs[0] if tool and docs else docs

    def query_tool_docs_sync(self, server: str, tool: str | None = None, detail: str = "summary") -> Any:
        """query_tool_docs for code that cannot await. It returns a list also of one tool."""
        return self._docs(self.host.ask(*self._query(server, tool, detail)), detail)

    def _query(self, server: str, tool: str | None, detail: str) -> tuple[str, dict[str, Any]]:
        params = {"server": self._named(server, "query_tool_docs"), "detail": checked_detail(detail)}
        if tool is not None:
            params["tool"] = text(tool, "query_tool_docs(): tool")
        return "query_tool_docs", params

    def _docs(self, docs: Any, detail: str) -> Any:
        if detail == "schema":
            return docs
        self.content()
        from .documentation import shown_docs
        return shown_docs(docs, detail == "full")

    async def search_tool_docs(self, query: str, *, limit: int = 5, detail: str = "summary") -> Any:
        """Searches the tools of all servers and returns the docs of those that fit the query best, or [] if none does.

        Each has a score from 0 to 1, which says how well it fits.
        """
        return self._docs(await self.host.ask_async(*searching(query, limit, detail)), detail)

    def search_tool_docs_sync(self, query: str, *, limit: int = 5, detail: str = "summary") -> Any:
        """search_tool_docs for code that cannot await."""
        return self._docs(self.host.ask(*searching(query, limit, detail)), detail)

    async def list_resources(self, server: str) -> list[Any]:
        """Returns the resources of a server: records of uri, name, mime_type…, each with read().

        As in the other lists, fields that are empty or only for the protocol are left out; the whole entry is at .raw.
        """
        return self._links(server, await self.host.ask_async(*self._of("list_resources", server)))

    def list_resources_sync(self, server: str) -> list[Any]:
        """list_resources for code that cannot await."""
        return self._links(server, self.host.ask(*self._of("list_resources", server)))

    async def list_resource_templates(self, server: str) -> list[Any]:
        """Returns the resource templates of a server: records of uriTemplate, name…"""
        return self._items(await self.host.ask_async(*self._of("list_resource_templates", server)), "resourceTemplates")

    def list_resource_templates_sync(self, server: str) -> list[Any]:
        """list_resource_templates for code that cannot await."""
        return self._items(self.host.ask(*self._of("list_resource_templates", server)), "resourceTemplates")

    async def read_resource(self, server: str, uri: object) -> Any:
        """Returns the content of a resource: text, an object with data, mime_type and save(path), or a list of them."""
        return self._content(server, await self.host.ask_async(*self._of("read_resource", server, uri=str(uri))))

    def read_resource_sync(self, server: str, uri: object) -> Any:
        """read_resource for code that cannot await."""
        return self._content(server, self.host.ask(*self._of("read_resource", server, uri=str(uri))))

    async def list_prompts(self, server: str) -> list[Any]:
        """Returns the prompts of a server: records of name, description and arguments."""
        return self._items(await self.host.ask_async(*self._of("list_prompts", server)), "prompts")

    def list_prompts_sync(self, server: str) -> list[Any]:
        """list_prompts for code that cannot await."""
        return self._items(self.host.ask(*self._of("list_prompts", server)), "prompts")

    async def get_prompt(self, server: str, name: str, arguments: Any = None) -> Any:
        """Returns a prompt: a record of description and messages, each of role and content."""
        return self._prompt(server, await self.host.ask_async(*self._prompting(server, name, arguments)))

    def get_prompt_sync(self, server: str, name: str, arguments: Any = None) -> Any:
        """get_prompt for code that cannot await."""
        return self._prompt(server, self.host.ask(*self._prompting(server, name, arguments)))

    def _of(self, method: str, server: str, **params: Any) -> tuple[str, dict[str, Any]]:
        return method, {"server": self._named(server, method), **params}

    def _links(self, server: str, answer: Any) -> list[Any]:
        link = self.content().ResourceLink
        return [link.of(item, self._name(server)) for item in self._items(answer, "resources")]

    def _items(self, answer: Any, key: str) -> list[Any]:
        from .listeditems import listed
        return listed(answer, key)

    def _content(self, server: str, answer: Any) -> Any:
        if isinstance(answer, list):  # it was only planned
            from .standins import stand_in
            return stand_in(*answer)
        return self.content().resource_value(answer, self._name(server))

    def _prompting(self, server: str, name: str, arguments: Any) -> tuple[str, dict[str, Any]]:
        from .arguments import arguments_of
        values = {key: value if isinstance(value, str) else encode(value).decode()
                  for key, value in arguments_of({} if arguments is None else arguments).items()}
        return self._of("get_prompt", server, name=text(name, "get_prompt(): name"), arguments=values)

    def _prompt(self, server: str, answer: Any) -> Any:
        if isinstance(answer, list):
            from .standins import stand_in
            return stand_in(*answer)
        return self.content().prompt_value(answer, self._name(server))

    def capability_summary(self) -> ReadyText:
        """Returns the manual of this Python as text."""
        with open(FOLDER + "manual.md", encoding="utf-8") as file:
            return ReadyText(file.read())

    def display(self, *values: Any) -> None:
        """Shows each value as a notebook would: figures and pictures as pictures, everything else as text.

        Pictures inside a tool's answer are shown after its text.
        """
        from .display import display
        for value in values:
            display(self, value)

    def save_tool(self, func: Any) -> Any:
        """Saves a function or class for later runs (from user_tools import …). Also works as a decorator.

        Raises ValueError if its source is not in this code, if it needs something else of this code, such as
        variables of an enclosing function, or if it has the name of a builtin or of a module.
        """
        from .savetool import save_tool
        save_tool(self, func)
        return func

    def saved_tools(self) -> ReadyTuple:
        """Returns the saved tools: records of name, signature, doc, imports and saved; may be awaited."""
        return ReadyTuple(self.host.ask("saved_tools", {}))

    def remove_tool(self, name: str) -> ReadyTuple:
        """Removes a saved tool and returns the names of the others; may be awaited. MCPError if there is none."""
        self.host.ask("remove_tool", {"name": text(name, "remove_tool(): name")})
        self.tools.forget(name)
        return ReadyTuple(sorted(self.tools.saved))

    def export_tools(self, *names: str) -> ReadyText:
        """Returns the saved tools, or those named, as the text of one Python module; may be awaited."""
        return ReadyText(self.host.ask("export_tools", {"tools": texts(names, "export_tools(): names")}))

    def end_session(self) -> None:
        """Ends the session after this run; the next call with its name begins a new one. Harmless without a session."""
        self.ending = True
