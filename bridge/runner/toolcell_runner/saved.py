"""The functions that earlier runs saved: the module user_tools."""
from __future__ import annotations

import builtins
import sys

from .sources import AST_ONLY, is_builtin, unbound
from .tracebacks import describe
from .values import known_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .calls import Calls

Module = type(sys)


class SavedTools:
    """The functions that earlier runs saved: the module user_tools, each compiled when first used.

    They live in a namespace of their own, so that no name of the code can change what they do.
    """

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.here: dict[str, Any] = {}  # what the code itself has saved, by name

    def renew(self, saved: Iterable[str], names: dict[str, Any]) -> None:
        """Takes in what is saved when a run begins. names are those that each tool can use."""
        self.saved = {name for name in saved if not is_builtin(name)}
        self._tried: dict[str, str | None] = {}
        self.module = Module("user_tools", "Functions saved by runtime.save_tool.")
        self.module.__dict__.update(
            names, __builtins__=vars(builtins), __getattr__=self._attribute, __dir__=lambda: sorted(self.saved))
        sys.modules["user_tools"] = self.module

    def add(self, name: str, thing: Any) -> None:
        """Takes in what the code has just saved."""
        self.forget(name)
        self.saved.add(name)
        self.here[name] = thing

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
        """Defines a saved tool, and those that it uses. Reports whether it could."""
        if name not in self._tried:
            self._tried[name] = "it needs itself"
            why = f"{name} is the name of a module here" if is_module(name) else self._define(name)
            self._tried[name] = why
            if why:
                self.calls.host.ask("saved_failed", {"name": name, "source": why})
        return not self._tried[name]

    def _define(self, name: str) -> str | None:
        """Returns why a saved tool cannot be defined, or None once it is."""
        namespace, file = self.module.__dict__, f"<user_tools.{name}>"
        try:
            source = self.calls.host.ask("saved_source", {"name": name})
            tree = compile(source, file, "exec", AST_ONLY, dont_inherit=True)
            self.calls.sources.add(file, source)
            self.bind_free_names(tree, source, namespace)
            exec(compile(tree, file, "exec", dont_inherit=True), namespace)
        except (Exception, SystemExit) as error:
            return describe(error)
        return None if name in namespace else f"its source does not define {name}"


def is_module(name: str) -> bool:
    """Reports whether a module of this name can be imported: code that uses it and forgot to must get a NameError.

    Nothing is imported, and only Python's own finder is asked, since others run code. A folder without __init__.py
    does not count: /workspace may have any.
    """
    if name in sys.modules or name in sys.builtin_module_names or name in sys.stdlib_module_names:
        return True
    from _frozen_importlib_external import PathFinder
    try:
        spec = PathFinder.find_spec(name)
    except Exception:  # a path of the code's own may be anything
        return False
    return spec is not None and spec.origin is not None
