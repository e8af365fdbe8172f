"""The texts behind file names that are no files, and the files of the runner."""
from __future__ import annotations

import _ast
import builtins
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

FOLDER = __file__.rpartition("/")[0] + "/"  # the runner's own
AST_ONLY = 0x400  # for compile()


class Sources:
    """The texts behind file names that are no files, for tracebacks and save_tool.

    linecache has to hold them, but takes longer to import than most runs take: they wait here, as an import hook,
    until it is imported.
    """

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        # What is to be done once a module was loaded.
        self.hooks: dict[str, Callable[[Any], None]] = {"linecache": self.fill}
        sys.meta_path.insert(0, self)
        self.name_asyncio = False  # it, or what may use it

    def when_loaded(self, name: str, hook: Callable[[Any], None]) -> None:
        """Calls the hook with a module: now, or once the code imports it."""
        if name in sys.modules:
            hook(loaded(name))
        else:
            self.hooks[name] = hook

    def add(self, file: str, text: str) -> None:
        self.texts[file] = text
        self.name_asyncio = self.name_asyncio or "asyncio" in text or "user_tools" in text
        if "linecache" in sys.modules:
            self.fill(loaded("linecache"))

    def fill(self, linecache: Any) -> None:
        """Gives linecache our texts; without a time stamp it never checks the disk for them."""
        for file, text in self.texts.items():
            linecache.cache[file] = len(text), None, [line + "\n" for line in text.split("\n")], file

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The import hook: leaves finding to the others, and calls a module's hook after it was loaded."""
        hook = self.hooks.pop(name, None)
        if hook is None:
            return None
        spec: Any = next(filter(None, (finder.find_spec(name, path) for finder in sys.meta_path)), None)
        if spec is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                hook(module)

            spec.loader.exec_module = exec_module
        return spec


def loaded(name: str) -> Any:
    """Returns a module of sys.modules. If another thread is importing it, such as one that the last run of a session
    has left, it waits for that: half of the module is missing."""
    __import__(name)
    return sys.modules[name]


def is_runner(file: str) -> bool:
    return file.startswith(FOLDER)


def innermost(error: BaseException) -> Any:
    """Returns the entry of the traceback at which an exception arose, or None if it was not raised."""
    entry = error.__traceback__
    while entry and entry.tb_next:
        entry = entry.tb_next
    return entry


def unbound(tree: Any) -> set[str]:
    """Returns the names that a syntax tree reads and binds nowhere, builtins left out."""
    read: set[str] = set()
    bound: set[Any] = set()
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, _ast.Name):
            (read if isinstance(node.ctx, _ast.Load) else bound).add(node.id)
        elif isinstance(node, _ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, _ast.arg):
            bound.add(node.arg)
        else:
            bound.add(getattr(node, "name", None))  # of a function, class, exception or pattern
        for field in node._fields:
            value = getattr(node, field, None)
            todo += [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, _ast.AST)]
    return {name for name in read - bound if not is_builtin(name)}


def is_builtin(name: str) -> bool:
    return hasattr(builtins, name)
