"""Suggests what may have been meant by a name that is missing."""
from __future__ import annotations

import sys

from .errors import UnknownServerError
from .servers import Server
from .sources import innermost
from .values import is_dunder, shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType
    from typing import Any

    from .sources import Sources

MAX_CANDIDATES = 5_000  # names that are looked through


def suggestion(error: BaseException, sources: Sources) -> str:
    """Returns the suggestion that ends the message about a missing name."""
    if isinstance(error, ModuleNotFoundError):
        from .typos import intended
        module = intended(missing_name(error), module_names(error))
        return f". Did you mean: {module!r}?" if module else ""
    if is_about_runtime(error):
        return runtime_function(error)
    if isinstance(error, ImportError):
        wanted, module = quoted_names(error, 2)
        return did_you_mean(wanted, dir(sys.modules[module])) or tools_of(sys.modules[module])
    if isinstance(error, NameError):
        return suggested_name(missing_name(error), innermost(error).tb_frame)
    if isinstance(error, AttributeError):
        return suggested_attribute(error, sources) or key_for_record(error, sources)
    if isinstance(error, TypeError):
        return key_for_record(error, sources)
    if isinstance(error, KeyError) and not isinstance(error, UnknownServerError):
        return suggested_key(error, sources)
    return ""


# What models call the functions of mcp.runtime, where its name is not like theirs.
OTHER_NAMES = {
    "call": "call_tool", "callmcptool": "call_tool", "executetool": "call_tool", "invoke": "call_tool",
    "invoketool": "call_tool", "runtool": "call_tool", "usetool": "call_tool",
    "findtool": "search_tool_docs", "findtools": "search_tool_docs", "search": "search_tool_docs",
    "searchtools": "search_tool_docs", "describetool": "query_tool_docs", "docs": "query_tool_docs",
    "gettool": "query_tool_docs", "gettooldocs": "query_tool_docs", "gettoolschema": "query_tool_docs",
    "help": "capability_summary", "manual": "capability_summary", "getservers": "list_servers",
    "servers": "list_servers", "gettools": "list_tools", "tools": "list_tools", "getresource": "read_resource",
    "resources": "list_resources", "prompts": "list_prompts", "deletetool": "remove_tool",
}


def is_about_runtime(error: BaseException) -> bool:
    """Reports whether mcp.runtime lacks a name. Of its functions, Python's own suggestion is often the wrong one."""
    if isinstance(error, ImportError):
        return str(error).startswith("cannot import name ") and quoted_names(error, 2)[1] == "mcp.runtime"
    return isinstance(error, AttributeError) and str(error).startswith("module 'mcp.runtime' has no attribute ")


def runtime_function(error: BaseException) -> str:
    """Suggests a function of mcp.runtime, and says how it is called."""
    import inspect
    wanted = quoted_names(error, 2)[0 if isinstance(error, ImportError) else 1]
    module: Any = sys.modules["mcp.runtime"]
    name = wanted[:-len("_sync")] if wanted.endswith("_sync") else wanted
    if name not in module.__all__:
        name = OTHER_NAMES.get(fold(name)) or nearest(wanted, module.__all__)
    if name is None or isinstance(error, ImportError):
        return f". Did you mean: {name!r}?" if name else ""
    function = getattr(module, name)
    if not inspect.isroutine(function):
        return f". Did you mean: runtime.{name}?"
    awaited = "await " if inspect.iscoroutinefunction(function) else ""
    return f". Did you mean: {awaited}runtime.{name}{inspect.signature(function)}?"


def did_you_mean(wanted: str, names: Iterable[Any]) -> str:
    near = nearest(wanted, names)
    return f". Did you mean: {near!r}?" if near is not None else ""


def nearest(wanted: str, names: Iterable[Any]) -> Any:
    """Returns the name most like the wanted one, or None."""
    import difflib
    import itertools
    names = [name for name in itertools.islice(names, MAX_CANDIDATES)
             if isinstance(name, str) and name != wanted and (wanted[:1] == "_" or name[:1] != "_")]
    folded = fold(wanted)
    for name in names:
        if fold(name) == folded:
            return name
    return next(iter(difflib.get_close_matches(wanted, names, 1, 0.7)), None) if len(wanted) <= 100 else None


def fold(name: str) -> str:
    return name.replace("_", "").replace("-", "").replace(" ", "").lower()


def missing_name(error: BaseException) -> str:
    return getattr(error, "name", None) or quoted_names(error, 1)[0]


def quoted_names(error: BaseException, count: int) -> list[str]:
    """Returns the first names that the text of an error has in quotes."""
    return (str(error).split("'")[1::2] + [""] * count)[:count]


USUAL_NAMES = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot"}


def suggested_name(wanted: str, frame: FrameType) -> str:
    import builtins
    names = {**vars(builtins), **frame.f_globals, **frame.f_locals}
    near = did_you_mean(wanted, names)
    if near:
        return near
    from importlib.util import find_spec
    module = USUAL_NAMES.get(wanted, wanted)
    if module in USUAL_NAMES.values() and find_spec(module.partition(".")[0]):
        return f". Did you forget to import {module} as {wanted}?"
    return f". Did you forget to import {wanted!r}?" if wanted in sys.stdlib_module_names else ""


def module_names(error: BaseException) -> Iterator[str]:
    """Yields the modules that can be imported where the missing one was looked for."""
    import pkgutil
    parent = missing_name(error).rpartition(".")[0]
    if parent:
        if parent == "mcp.servers":
            yield from (f"{parent}.{alias}" for alias in sys.modules[parent].__all__)
        for module in pkgutil.iter_modules(getattr(sys.modules[parent], "__path__", [])):
            yield f"{parent}.{module.name}"
        return
    yield from ("mcp", "user_tools", *sys.stdlib_module_names)
    for module in pkgutil.iter_modules():
        yield module.name


def suggested_attribute(error: AttributeError, sources: Sources) -> str:
    wanted, holders = getattr(error, "name", None), []
    if wanted is not None:
        holders.append(error.obj)
    else:
        # Up to 3.12 only the message of an assignment has the attribute and the type: the object is in the line.
        kind, wanted = quoted_names(error, 2)
        if str(error).startswith("module "):
            holders.append(sys.modules.get(kind))
        frame, nodes = failing_line(error, sources)
        for node in nodes:
            if type(node).__name__ == "Attribute" and node.attr == wanted:
                holders += resolved(node.value, frame)
    for holder in holders:
        near = did_you_mean(wanted, dir(holder))
        if near and "Did you mean" not in str(error):
            return near
    return "" if is_dunder(wanted) else "".join(map(tools_of, holders[:1]))


def tools_of(holder: Any) -> str:
    """Returns what a server has, which may be a variable or a module, and nothing for any other object."""
    is_server = isinstance(holder, Server) or type(holder) is type(sys) and holder.__name__.startswith("mcp.servers.")
    return f"; there are: {shortened(dir(holder))}" if is_server else ""


def suggested_key(error: BaseException, sources: Sources) -> str:
    """Looks for the mapping in the line that failed: the error has the key alone."""
    wanted = error.args[0] if len(error.args) == 1 else None
    holder: Any = getattr(error, "holder", None)
    if isinstance(wanted, (int, slice)) and hasattr(holder, "keys"):
        return f": this is a mapping, not a list; its keys are: {shortened(holder.keys())}"
    if not isinstance(wanted, str):
        return ""
    if hasattr(holder, "keys"):
        return suggested_of(holder, wanted)
    frame, nodes = failing_line(error, sources)
    for node in nodes:
        if type(node).__name__ == "Subscript":
            holders = resolved(node.value, frame)
        elif type(node).__name__ == "Call" and getattr(node.func, "attr", "") in ("pop", "__getitem__"):
            holders = resolved(node.func.value, frame)
        else:
            continue
        for holder in holders:
            if hasattr(holder, "keys") and wanted not in holder.keys():
                return suggested_of(holder, wanted)
    return ""


def suggested_of(holder: Any, wanted: str) -> str:
    keys = list(holder.keys())
    return did_you_mean(wanted, keys) or (f"; there are: {shortened(keys)}" if keys else "")


def key_for_record(error: BaseException, sources: Sources) -> str:
    """Explains t["title"] and t.title in a loop over a mapping, where t is one of its keys.

    If the loop goes over what it awaits, as in `for t in await f()`, that is gone: it may have been a list of texts.
    """
    import ast
    if not str(error).startswith(("string indices must be", "'str' object has no attribute")):
        return ""
    frame, nodes = failing_line(error, sources)
    used = [node.value for node in nodes if isinstance(node, (ast.Subscript, ast.Attribute))]
    keys = {node.id: value for node in used if isinstance(node, ast.Name) for value in resolved(node, frame)
            if isinstance(value, str)}
    for node in ast.walk(ast.parse(sources.texts[frame.f_code.co_filename])) if keys else ():
        if isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.target, ast.Name):
            name, over = node.target.id, resolved(node.iter, frame)
            if name in keys and (isinstance(node.iter, ast.Await) or any(isinstance(value, dict) for value in over)):
                return f"; {name} is {keys[name][:60]!r}: a loop over a mapping gives its keys"
    return ""


def failing_line(error: BaseException, sources: Sources) -> tuple[Any, list[Any]]:
    """Returns the innermost frame of the code's own, and the syntax nodes on the line that it is at."""
    import ast
    own, entry = None, error.__traceback__
    while entry:
        if entry.tb_frame.f_code.co_filename in sources.texts:
            own = entry
        entry = entry.tb_next
    if own is None:
        return None, []
    tree = ast.parse(sources.texts[own.tb_frame.f_code.co_filename])
    return own.tb_frame, [node for node in ast.walk(tree) if isinstance(node, ast.expr)
                          and node.lineno <= own.tb_lineno <= (node.end_lineno or 0)]


def resolved(node: Any, frame: FrameType) -> list[Any]:
    """Returns, in a list, the object that an expression stands for, if it can be had without calling anything."""
    import ast
    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals):
            if node.id in names:
                return [names[node.id]]
    elif isinstance(node, ast.Constant):
        return [node.value]
    elif isinstance(node, ast.Attribute):
        return [getattr(holder, node.attr) for holder in resolved(node.value, frame) if hasattr(holder, node.attr)]
    elif isinstance(node, ast.Subscript):
        keys = [node.slice.value] if isinstance(node.slice, ast.Constant) else resolved(node.slice, frame)
        return [holder[key] for holder in resolved(node.value, frame) for key in keys if has_item(holder, key)]
    return []


def has_item(holder: Any, key: Any) -> bool:
    if isinstance(holder, (list, tuple)):
        return type(key) is int and -len(holder) <= key < len(holder)
    return isinstance(holder, dict) and key in holder
