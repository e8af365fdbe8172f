"""The functions that earlier runs saved: the module user_tools."""
from __future__ import annotations

import _ast
import builtins
import sys

from .values import known_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .runtime import Runtime

Module = type(sys)


class SavedTools:
    """The functions that earlier runs saved: the module user_tools, each compiled when first used.

    They live in a namespace of their own, so that no name of the code can change what they do.
    """

    def __init__(self, runtime: Runtime, saved: Iterable[str], names: dict[str, Any]) -> None:
        self.saved = {name for name in saved if not is_builtin(name)}
        self.runtime = runtime
        self._tried: dict[str, str | None] = {}
        self.module = Module("user_tools", "Functions saved by runtime.save_tool.")
        self.module.__dict__.update(
            names, __builtins__=vars(builtins), __getattr__=self._attribute, __dir__=lambda: sorted(self.saved))
        sys.modules["user_tools"] = self.module

    def forget(self, name: str) -> None:
        """Drops a tool that was removed or saved again."""
        self.saved.discard(name)
        self._tried.pop(name, None)
        self.module.__dict__.pop(name, None)

    def bind_free_names(self, tree: Any, source: str, namespace: dict[str, Any]) -> None:
        """Puts names into namespace that the code uses without importing them: asyncio, and saved tools.

        Any earlier run may have saved a tool, so none takes the place of what the code would have without it.
        """
        if not self.saved and "asyncio" not in source:
            return
        names = unbound(tree)
        if "asyncio" in names:
            import asyncio
            namespace.setdefault("asyncio", asyncio)
        for name in names.intersection(self.saved).difference(namespace):
            if self._load(name):
                namespace[name] = self.module.__dict__[name]

    def _attribute(self, name: str) -> Any:
        if name == "__all__":
            return [saved for saved in sorted(self.saved) if self._load(saved)]
        if name not in self.saved:
            raise AttributeError(f"no saved tool {name!r}; " + known_names(name, sorted(self.saved)))
        if not self._load(name):
            raise AttributeError(f"the saved tool {name!r} does not run any more: {self._tried[name]}")
        return self.module.__dict__[name]

    def _load(self, name: str) -> bool:
        """Defines a saved tool, and reports whether it could."""
        if name not in self._tried:
            from .savetool import load
            self._tried[name] = "it needs itself"
            self._tried[name] = load(self.runtime, name)
        return not self._tried[name]


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
