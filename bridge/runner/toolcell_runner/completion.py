"""The names that may continue what is typed at a prompt."""
from __future__ import annotations

import builtins
import inspect
import keyword

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MAX_NAMES = 500
MISSING = object()


def names_for(text: str, namespace: dict[str, Any]) -> list[str]:
    """Returns what may stand in place of the last part of a dotted name, sorted; private names only if asked for."""
    head, dot, prefix = text.rpartition(".")
    candidates: Iterable[str] = dir(value_of(head, namespace)) if dot else {
        *namespace, *vars(builtins), *keyword.kwlist}
    names = {name for name in candidates if isinstance(name, str) and name.startswith(prefix) and name.isidentifier()}
    if not prefix.startswith("_"):
        names = {name for name in names if not name.startswith("_")}
    return sorted(names)[:MAX_NAMES]


def value_of(dotted: str, namespace: dict[str, Any]) -> Any:
    """Returns the value of a dotted name. Raises AttributeError rather than run a property to get it."""
    first, *rest = dotted.split(".")
    value = namespace[first] if first in namespace else vars(builtins)[first]
    for name in rest:
        static = inspect.getattr_static(value, name, MISSING)
        # Functions bind to the object, and slots read from it. Other descriptors run code.
        if static is MISSING or hasattr(type(static), "__get__") and not (
                inspect.isroutine(static) or inspect.ismemberdescriptor(static)
                or isinstance(static, (type, staticmethod, classmethod))):
            raise AttributeError(name)
        value = getattr(value, name)
    return value
