"""Sends functions to the host for runtime.save_tool."""
from __future__ import annotations

import sys

from .saved import is_module
from .servers import Server, Tool
from .sources import is_builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .saved import SavedTools

Module = type(sys)


def save_tool(tools: SavedTools, thing: Any) -> None:
    """Sends a function or class to the host, with everything needed to define it again."""
    about = ToolSource(thing, tools).about()
    tools.calls.host.ask("save_tool", about)
    tools.add(about["name"], thing)


class ToolSource:
    """The text of a function or class that the code defines, so that another run can define it again."""

    def __init__(self, thing: Any, tools: SavedTools) -> None:
        self._tools = tools
        while hasattr(thing, "__wrapped__"):
            thing = thing.__wrapped__
        self._thing = thing
        self._name = getattr(thing, "__name__", "")
        if not self._name.isidentifier():
            raise ValueError("save_tool takes a function or a class that has a name")
        if isinstance(thing, type):
            self._module_names = vars(sys.modules.get(thing.__module__, sys))
        elif hasattr(thing, "__code__"):
            self._module_names = thing.__globals__
            if thing.__code__.co_freevars:
                needed = ", ".join(thing.__code__.co_freevars)
                raise ValueError(f"{self._name} needs variables of an enclosing function ({needed}): pass them in")
        else:
            raise ValueError(f"{self._name} is not written in Python: save a function that calls it")
        self._lines, self._node = self._find(thing, tools.calls.sources.texts)
        if is_builtin(self._name):
            raise ValueError(
                f"{self._name!r} is the name of a builtin; a saved tool of that name would never be called")
        if is_module(self._name):
            raise ValueError(f"{self._name!r} is the name of a module, and code that forgot to import it would call "
                             "the tool; give the function another name")

    def about(self) -> dict[str, Any]:
        """Returns the description of the tool that the host keeps."""
        import inspect
        doc = inspect.cleandoc(self._thing.__doc__ or "") if isinstance(self._thing.__doc__, str) else ""
        signature, schema = described_parameters(self._thing)
        return {"name": self._name, "signature": signature, "doc": doc, "imports": self._modules(),
                "schema": schema, "source": self._text()}

    def _text(self) -> str:
        """Returns the source, with what it needs in front of it."""
        import textwrap
        skip = {line for decorator in self._node.decorator_list if is_save_tool(decorator)
                for line in range(decorator.lineno, decorator.end_lineno + 1)}
        wanted = range(first_line(self._node), self._node.end_lineno + 1)
        body = textwrap.dedent("\n".join(self._lines[line - 1] for line in wanted if line not in skip))
        source = "\n".join([*self._future(), *self._needs(), body, ""])
        try:
            compile(source, self._name, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise ValueError(f"the source of {self._name} does not stand alone: {error}") from None
        return source

    def _find(self, thing: Any, texts: dict[str, str]) -> tuple[list[str], Any]:
        """Returns the lines of the text that defines thing, and its node there."""
        import ast
        kinds = ast.ClassDef if isinstance(thing, type) else (ast.FunctionDef, ast.AsyncFunctionDef)
        file, line = None, None
        if not isinstance(thing, type):
            file, line = thing.__code__.co_filename, thing.__code__.co_firstlineno
        found = [(text, node) for name, text in texts.items() if file in (None, name)
                 for node in ast.walk(ast.parse(text)) if isinstance(node, kinds) and node.name == self._name
                 and line in (None, first_line(node))]
        if not found:
            raise ValueError(f"the source of {self._name} is not in this code: save_tool takes what the code defines")
        # A class does not know its line: the last definition of its name is the one in force.
        text, node = max(found, key=lambda pair: pair[1].lineno)
        return text.split("\n"), node

    def _future(self) -> list[str]:
        """Without it, annotations that the code may write as it likes would be evaluated."""
        import __future__
        feature = self._module_names.get("annotations")
        return ["from __future__ import annotations"] if feature is __future__.annotations else []

    def _needs(self) -> list[str]:
        """Returns lines that give the source again what the code has outside of it: imports, and plain constants.

        Raises ValueError for what cannot be had again.
        """
        undefined = self._undefined()
        if undefined:
            raise ValueError(f"{self._name} uses {', '.join(undefined)}, which is not defined yet: define it above")
        lines, missing = [], []
        for name in sorted(self._free_names()):
            value = self._module_names[name]
            line = import_line(name, value) or constant_line(name, value)
            if line:
                lines.append(line)
            elif not self._comes_by_itself(name, value):
                missing.append(name)
        if missing:
            raise ValueError(f"{self._name} uses {', '.join(missing)}, which only this code has: "
                             "save what it calls first, pass the rest in, or define it inside")
        return lines

    def _free_names(self) -> set[str]:
        """Returns the names of the code outside that the source reads when it is defined or called."""
        names = names_read(self._node, skip_annotations=bool(self._future()))
        return names.intersection(self._module_names).difference([self._name])

    def _undefined(self) -> list[str]:
        """Returns the names that the source reads and nothing has defined yet, without its own globals."""
        import ast
        made = {name for node in ast.walk(self._node) if isinstance(node, ast.Global) for name in node.names}
        names = names_read(self._node, skip_annotations=bool(self._future())) - made - {self._name, "__class__"}
        return sorted(name for name in names if name not in self._module_names and not is_builtin(name))

    def _comes_by_itself(self, name: str, value: Any) -> bool:
        given = vars(self._tools.module)
        return name == "asyncio" or any(name in has and has[name] is value for has in (given, self._tools.here))

    def _modules(self) -> list[str]:
        """Returns the modules, without their parts, that the source imports, and those it is given."""
        import ast
        found: set[str] = set()
        for node in ast.walk(self._node):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
        for name in self._free_names():
            line = import_line(name, self._module_names[name])
            if line and " = " not in line:
                found.add(line.split()[1].partition(".")[0])
        return sorted(found)


def names_read(definition: Any, skip_annotations: bool) -> set[str]:
    """Returns the names that a definition reads and does not bind itself; those of save_tool do not count."""
    import ast
    read: set[str] = set()
    bound: set[Any] = set()
    outer: set[str] = set()
    todo = [definition]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.Global):
            outer.update(node.names)
        else:
            bound.add(getattr(node, "name", None))  # of a function, class, exception or pattern
        for field, value in ast.iter_fields(node):
            if not (skip_annotations and field in ("annotation", "returns")):
                todo += [each for each in (value if isinstance(value, list) else [value])
                         if isinstance(each, ast.AST) and not (field == "decorator_list" and is_save_tool(each))]
    return read - bound | outer


def is_save_tool(decorator: Any) -> bool:
    return getattr(decorator, "attr", getattr(decorator, "id", "")) == "save_tool"


def first_line(node: Any) -> Any:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def import_line(name: str, value: Any) -> str | None:
    """Returns the import statement that binds name to value, or None if there is none."""
    if isinstance(value, Module):
        return None if value.__name__ == "mcp" else f"import {value.__name__} as {name}"
    if isinstance(value, Tool):
        return f"{name} = mcp_servers[{value._server!r}][{value._name!r}]"
    if isinstance(value, Server):
        return f"{name} = mcp_servers[{value._name!r}]"
    module = getattr(value, "__module__", None)
    origin = getattr(value, "__name__", None) or getattr(value, "_name", None)
    if module in (None, "__main__", "builtins") or not isinstance(origin, str):
        return None
    if origin == name and module == "user_tools":
        return None
    if getattr(sys.modules.get(module), origin, None) is not value:
        return None
    return f"from {module} import {origin} as {name}"


def constant_line(name: str, value: Any, most: int = 2000) -> str | None:
    """Returns the assignment of a value that reads as it is written, or None."""
    if not plain(value):
        return None
    text = repr(value)
    return f"{name} = {text}" if len(text) <= most else None


def plain(value: Any, depth: int = 5) -> bool:
    if value is None or type(value) in (str, int, bool, bytes):
        return True
    if type(value) is float:
        return value - value == 0
    if type(value) in (list, tuple, set):
        return depth > 0 and bool(value or type(value) is not set) and all(plain(each, depth - 1) for each in value)
    return type(value) is dict and depth > 0 and all(
        plain(each, depth - 1) for pair in value.items() for each in pair)


# The description of the parameters

JSON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array",
              "dict": "object"}


def described_parameters(thing: Any) -> tuple[str, dict[str, Any] | None]:
    """Returns the signature of a function or class as text, and the JSON schema of its parameters."""
    import inspect
    try:
        signature = inspect.signature(thing)
    except Exception:  # annotations that cannot be evaluated may raise anything
        return "(...)", None
    properties: dict[str, dict[str, Any]] = {}
    required = []
    for name, each in signature.parameters.items():
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            continue
        properties[name] = {}
        kind = JSON_TYPES.get(str(getattr(each.annotation, "__name__", each.annotation)))
        if kind:
            properties[name]["type"] = kind
        if each.default is each.empty:
            required.append(name)
        elif each.default is None or type(each.default) in (str, int, bool):
            properties[name]["default"] = each.default
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return str(signature), schema
