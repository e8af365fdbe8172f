"""What the code of a dry run gets for the results of calls that were not made."""
from __future__ import annotations

from .host import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    Shape = Any

MOST_SHOWN = 200  # characters of where a part is


class PlannedResult:
    """A placeholder for the result of a planned call, or for a part of it.

    It can be passed on and written into texts, where the host finds it. Its attributes and items are placeholders
    too. All else that Python can do with a value raises TypeError, so that nothing is computed from a result that is
    not there.
    """

    __slots__ = ("_root", "_shape", "stands_for")

    def __init__(self, text: str, root: str, shape: Shape = None) -> None:
        self.stands_for, self._root, self._shape = text, root, shape or None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        Host.derived = True  # isinstance(): the code asks what the result is
        return PlannedResult

    def __repr__(self) -> str:
        return self.stands_for

    __str__ = __repr__

    def __format__(self, how: str) -> str:
        return self.stands_for

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # Python and others ask what it can do
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        shape = self._shape
        if isinstance(shape, dict) and not hasattr(dict, name):
            if name not in shape and name != "raw":
                raise AttributeError(f"no key {name!r}; {known(name, shape)}")
            return self._part(f".{name}", shape.get(name))
        if isinstance(shape, (list, str)) and name != "raw" and not hasattr(PYTHON.get(str(shape), list), name):
            raise AttributeError(f"{self} has no attribute {name!r}")
        return self._part(f".{name}", None)

    def __getitem__(self, key: Any) -> Any:
        shape = self._shape
        if isinstance(key, slice):
            refuse(self, "its slices are")
        if isinstance(shape, dict) and isinstance(key, str):
            if key not in shape:
                raise KeyError(key)
            return self._part(f".{key}" if key.isidentifier() else f"[{key!r}]", shape[key])
        return self._part(f"[{key!r}]", shape[0] if isinstance(shape, list) and shape else None)

    def _part(self, step: str, shape: Shape) -> PlannedResult:
        text = self.stands_for + step
        return PlannedResult(text if len(text) <= MOST_SHOWN else f"… {self._root}", self._root, shape)


def refuse(result: PlannedResult, unknown: str) -> NoReturn:
    Host.derived = True  # the code may catch it
    raise TypeError(f"{result} stands for the result of a call that was only planned: {unknown} not known. "
                    "Pass it or an item of it on, or write it into a text with an f-string")


def refusal(unknown: str) -> Callable[..., NoReturn]:
    return lambda self, *args, **named: refuse(self, unknown)


PYTHON: dict[Any, type] = {"str": str, "int": int, "float": float, "bool": bool}  # the types of leaves
OPERATORS = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and",
             "or", "xor")
REFUSED = {
    "what is computed with it is": [*OPERATORS, *(f"r{operator}" for operator in OPERATORS), "neg", "pos", "invert",
                                    "abs", "round", "trunc", "floor", "ceil"],
    "its number is": ["int", "float", "complex", "index"],
    "whether it is true is": ["bool"],
    "its length is": ["len"],
    "how many items it has is": ["iter", "reversed"],
    "what is in it is": ["contains"],
    "what it equals is": ["eq", "ne", "hash"],
    "how it compares is": ["lt", "le", "gt", "ge"],
    "what its methods return is": ["call"],
    "its bytes are": ["bytes"],
    "which path it is is": ["fspath"],
}
for unknown, operations in REFUSED.items():
    for operation in operations:
        setattr(PlannedResult, f"__{operation}__", refusal(unknown))


def known(wanted: str, shape: dict[str, Any]) -> str:
    from .values import known_names
    return known_names(wanted, shape)


def placeholder(number: int, shape: Shape = None) -> PlannedResult:
    """Returns what stands for the result of the planned call of that number, as far as the shape of it is known."""
    root = f"<result {number}>"
    return PlannedResult(root, root, shape)
