"""Prints docs/python-api.md: what code in a sandbox can import and call, from the docstrings of the real objects.

    toolcell exec --image host -q .ci/python_api.py >docs/python-api.md

`make docs` does that, and a test compares the file with what this prints.
"""
from __future__ import annotations

import inspect

from mcp import runtime  # type: ignore[import-not-found] # the sandbox has it

INTRO = """\
# Python inside

This page lists the functions and types that code in the sandbox can use besides Python itself. `make docs` writes it
from the runner's docstrings. A shorter manual, for models, is the resource `resource://toolcell/capabilities`;
`runtime.capability_summary()` returns it too.

`from mcp import runtime` imports the functions below. Top-level `await` works, and the value of a trailing expression
is shown. These names are there without an import of `runtime`:

| name | meaning |
|---|---|
| `mcp_<alias>`, `mcp_servers["name"]` | a server: its tools are attributes |
| `from mcp.servers.<alias> import *` | imports the tools of a server as functions |
| `mcp.servers.<alias>.TOOLS`, `.TOOL_MAP` | the records of a server's tools, as a list and by alias |
| `LOADED_MCP_SERVERS` | names of the servers that this run may call, in the order of the call's `servers` |
| `os.environ["MCP_AVAILABLE_SERVERS"]` | the same as JSON objects of name, alias and description, at most 64 KiB; in code that names the variable also with the tools |
| `https_proxy`, `SSL_CERT_FILE` and the like in `os.environ` | how HTTP clients find the hosts that the call names in `servers`; others find them [by name](network.md#hosts-by-name) |
| `display(…)` | `runtime.display` |
| `asyncio` | the module |
| the name of a saved tool | that tool; `from user_tools import name` works too |

A tool is a function; `await` its result. Its name in code, the *alias*, is the tool's name in lower case, with `_` for what
Python identifiers do not have. A name that is an identifier already is never given to another tool; a clash gets `_2`, `_3`.
Calls also take the tool's own name, as in `mcp_tasks["list-tasks"]()`, and another case or `-` for `_` if only one tool can
be meant.

Arguments that do not fit its schema raise `TypeError` or `ValueError` before
anything is sent: `TypeError: get_sum(): a must be a number, not str`. Names, types and allowed values are checked, also
inside lists and dictionaries; limits and formats are left to the server. Tuples and sets become lists; dates, paths and
UUIDs become strings; an optional argument that is None is left out, unless null is allowed. If a server takes values that
its own schema does not allow, `runtime.call_tool(server, tool, {…}, check=False)` sends them.

The result is a plain value: the structured content if there is any, otherwise the text, parsed if it is a
JSON object or array. Structured content that only repeats the text, as in `{"content": "the text"}`, is that text.
An answer that Python cannot read, such as a number of more than 100,000 digits, raises `MCPError` for that call alone.
If a server declares that a tool returns a string and puts JSON in it, it stays a string: `json.loads` reads it.
`help(tool)` and `inspect.signature(tool)` show its parameters, and `dir(server)` shows a server's tools.

A call that is never awaited is an error: `RuntimeError: mcp_tasks.list_tasks() was never awaited, so it did not run`.
A coroutine, or a list or tuple of coroutines, as the last value is awaited, the coroutines of a list at the same time.

## asyncio

All of asyncio works at the top level of the code, whether the code has a top-level `await` or not: `create_task`,
`ensure_future`, `gather`, `get_running_loop` and `get_event_loop`, `asyncio.run`, `asyncio.Runner` and
`run_until_complete`, and the functions of runtime that end in `_sync`. `asyncio.run` and `run_until_complete` also work
inside of a coroutine.

- What `create_task` starts runs while the code awaits, or runs a loop. Tasks that are left when the code ends are
  awaited, within the time of the run. In a session they live on, and continue when a later run awaits.
- If one of them fails and no code takes its error, the run fails with it. If the code itself fails, those that are left
  are cancelled.
- `asyncio.run` has an event loop of its own, as always. Tasks of the top level are paused meanwhile.
- `get_event_loop().close()` has no effect: the loop is closed when the run or the session ends.
"""

GROUPS = {
    "Find servers and tools": (
        "discovered_servers", "list_servers", "search_tool_docs", "query_tool_docs", "list_tools",
        "describe_server", "list_loaded_server_metadata"),
    "Call": ("call_tool",),
    "Resources and prompts": (
        "list_resources", "list_resource_templates", "read_resource", "list_prompts", "get_prompt"),
    "Show": ("display",),
    "Saved tools": ("save_tool", "saved_tools", "remove_tool", "export_tools"),
    "Sessions and help": ("end_session", "capability_summary"),
}

KINDS = {
    "MCPError": "", "UnknownServerError": "",
    "Record": "The type of mappings in answers of tools and of `runtime`.",
    "Binary": "The type of images and audio in answers.",
    "BinaryResource": "", "ResourceText": "", "ResourceLink": "",
    "ToolDoc": "",
}


def main() -> None:
    print(INTRO)
    left = set(runtime.__all__) - set(KINDS)
    for title, names in GROUPS.items():
        print(f"## {title}\n")
        for name in names:
            left -= {name, name + "_sync"}
            print_function(name, name + "_sync" in runtime.__all__)
    if left:
        raise SystemExit(f"in no group: {', '.join(sorted(left))}")
    print("## Values and errors")
    runtime.call_tool.__self__.content()  # makes all of them names of runtime
    for name, about in KINDS.items():
        print_kind(name, getattr(runtime, name), about)


def print_function(name: str, has_sync: bool) -> None:
    function = getattr(runtime, name)
    wait = "await " if inspect.iscoroutinefunction(function) else ""
    print(f"### {name}\n\n```text\n{wait}runtime.{name}{inspect.signature(function)}\n```\n")
    print(f"{inspect.getdoc(function)}\n")
    if has_sync:
        print(f"`{name}_sync` is the same for code that cannot await.\n")


def print_kind(name: str, kind: type, about: str) -> None:
    bases = ", ".join(base.__name__ for base in kind.__bases__)
    print(f"\n### {name}({bases})\n\n{about}\n\n{inspect.getdoc(kind)}".replace("\n\n\n\n", "\n\n"))
    members = [(member, value) for member, value in vars(kind).items() if not member.startswith("_")]
    lines = [line for member, value in members if (line := member_line(member, value))]
    if lines:
        print("\n" + "\n".join(lines))


def member_line(name: str, value: object) -> str:
    if isinstance(value, property):
        return f"- `{name}`"
    if inspect.isfunction(value):
        parameters = list(inspect.signature(value).parameters.values())[1:]
        return f"- `{name}{inspect.Signature(parameters)}`: {inspect.getdoc(value)}"
    return ""


main()
