"""The functions of mcp.runtime."""
from __future__ import annotations

from .calls import Calls
from .errors import MCPError
from .jsontext import encode
from .saved import SavedTools
from .servers import Server
from .sources import FOLDER
from .values import ReadyRecord, ReadyText, ReadyTuple, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .host import Host
    from .sources import Sources


class Runtime(Calls):
    """The functions of mcp.runtime: find, read about and call the tools of every MCP server."""

    # A name without an underscore is a function of mcp.runtime.

    def __init__(self, host: Host, sources: Sources) -> None:
        super().__init__(host, sources)
        self.tools = SavedTools(self)
        self.ending = False  # the session, with this run
        self.replaced_variables: dict[str, str | None] = {}  # what network.py put others in place of

    def _named(self, server: Any, function: str) -> str:
        """Returns the name of the server in an argument of a function, which may be anything."""
        if isinstance(server, Server):
            return server._name
        if not isinstance(server, str):
            raise TypeError(f"{function}(): server must be a name or a server, not {type(server).__name__}")
        return self.name_of(server)

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
        params: dict[str, Any] = {
            "server": name, "tool": text(tool, "call_tool(): tool"),
            "arguments": arguments_of({} if arguments is None else arguments)}
        if not check:
            params["unchecked"] = True
        return tool_value(await self.host.ask_async("call_tool", params), name, tool, self.content)

    def discovered_servers(self, detailed: bool = False) -> ReadyTuple:
        """Returns the names of all known servers, or, if detailed, records of name, alias, description and status."""
        return ReadyTuple(self.host.ask("describe_servers", {}) if detailed else self._entries)

    def list_servers(self) -> ReadyTuple:
        """Returns the names of all known servers, as the host knows them now; may be awaited."""
        return ReadyTuple(self.host.ask("list_servers", {}))

    def list_servers_sync(self) -> tuple[str, ...]:
        """Returns the names of all known servers, as the host knows them now."""
        return tuple(self.list_servers())

    async def list_tools(self, server: str | Server) -> Any:
        """Returns the tools of a server: records of name, alias, description and input_schema."""
        return await super().list_tools(self._named(server, "list_tools"))

    def list_tools_sync(self, server: str | Server) -> Any:
        """list_tools for code that cannot await."""
        return super().list_tools_sync(self._named(server, "list_tools"))

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

    async def list_resources(self, server: str) -> Any:
        """Returns the resources of a server: records of uri, name, mime_type…, each with read().

        As in the other lists, fields that are empty or only for the protocol are left out; the whole entry is at .raw.
        """
        method, params = self._of("list_resources", server)
        return self._resources().links(await self.host.ask_async(method, params), params["server"])

    def list_resources_sync(self, server: str) -> Any:
        """list_resources for code that cannot await."""
        method, params = self._of("list_resources", server)
        return self._resources().links(self.host.ask(method, params), params["server"])

    async def list_resource_templates(self, server: str) -> Any:
        """Returns the resource templates of a server: records of uriTemplate, name…"""
        answer = await self.host.ask_async(*self._of("list_resource_templates", server))
        return self._resources().listed(answer, "resourceTemplates")

    def list_resource_templates_sync(self, server: str) -> Any:
        """list_resource_templates for code that cannot await."""
        answer = self.host.ask(*self._of("list_resource_templates", server))
        return self._resources().listed(answer, "resourceTemplates")

    async def read_resource(self, server: str, uri: object) -> Any:
        """Returns the content of a resource: text, an object with data, mime_type and save(path), or a list of them."""
        method, params = self._of("read_resource", server, uri=str(uri))
        return self._resources().resource_value(await self.host.ask_async(method, params), params["server"])

    def read_resource_sync(self, server: str, uri: object) -> Any:
        """read_resource for code that cannot await."""
        method, params = self._of("read_resource", server, uri=str(uri))
        return self._resources().resource_value(self.host.ask(method, params), params["server"])

    async def list_prompts(self, server: str) -> Any:
        """Returns the prompts of a server: records of name, description and arguments."""
        return self._resources().listed(await self.host.ask_async(*self._of("list_prompts", server)), "prompts")

    def list_prompts_sync(self, server: str) -> Any:
        """list_prompts for code that cannot await."""
        return self._resources().listed(self.host.ask(*self._of("list_prompts", server)), "prompts")

    async def get_prompt(self, server: str, name: str, arguments: Any = None) -> Any:
        """Returns a prompt: a record of description and messages, each of role and content."""
        method, params = self._prompting(server, name, arguments)
        return self._resources().prompt_value(await self.host.ask_async(method, params), params["server"])

    def get_prompt_sync(self, server: str, name: str, arguments: Any = None) -> Any:
        """get_prompt for code that cannot await."""
        method, params = self._prompting(server, name, arguments)
        return self._resources().prompt_value(self.host.ask(method, params), params["server"])

    def _resources(self) -> Any:
        from . import resources
        self.content()
        return resources

    def _of(self, method: str, server: str, **params: Any) -> tuple[str, dict[str, Any]]:
        return method, {"server": self._named(server, method), **params}

    def _prompting(self, server: str, name: str, arguments: Any) -> tuple[str, dict[str, Any]]:
        from .arguments import arguments_of
        values = {key: value if isinstance(value, str) else encode(value).decode()
                  for key, value in arguments_of({} if arguments is None else arguments).items()}
        return self._of("get_prompt", server, name=text(name, "get_prompt(): name"), arguments=values)

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
        save_tool(self.tools, func)
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


# Checks of arguments


def searching(query: str, limit: int | None, detail: str) -> tuple[str, dict[str, Any]]:
    """Returns the request for a search. A limit of None is the usual one."""
    if isinstance(limit, bool) or limit is not None and not hasattr(type(limit), "__index__"):
        raise TypeError(f"search_tool_docs(): limit must be an int, not {type(limit).__name__}")
    most = None if limit is None else max(-1, min(limit.__index__(), 1 << 30))
    return "search_tool_docs", {"query": text(query, "search_tool_docs(): query"), "limit": most,
                                "detail": checked_detail(detail)}


def text(value: str, what: str) -> str:
    """Returns an argument that must be a text. The host would refuse others in words that are not Python's."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")
    return value


def texts(values: Sequence[str], what: str) -> list[str]:
    return [text(value, what) for value in values]


def checked_detail(detail: str) -> str:
    if detail not in ("summary", "full", "schema"):
        given = repr(detail) if isinstance(detail, str) else type(detail).__name__
        raise ValueError(f"detail is 'summary', 'full' or 'schema', not {given}")
    return detail
