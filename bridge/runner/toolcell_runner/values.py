"""What the values of tools are in Python, and what is shown of a value."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class Record(dict):  # type: ignore[type-arg]
    """A mapping whose keys also read as attributes: `issue["title"]` is `issue.title`.

    Methods of dict take precedence over keys of the same name. On the outermost value of a tool, `raw` is the whole
    answer.
    """

    def __missing__(self, key: Any) -> Any:
        error: Any = KeyError(key)
        error.holder = self  # for what is suggested: a value that was never in a variable is found nowhere else
        raise error

    def __getattr__(self, name: str) -> Any:
        if not is_dunder(name) and name in self:
            return self[name]
        raise AttributeError(f"no key {name!r}; " + known_names(name, self))

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        if name not in self:
            raise AttributeError(f"no key {name!r}; " + known_names(name, self))
        del self[name]


class Text(str):
    """A str with the tool's whole answer at `raw`."""


class Integer(int):
    """An int with the tool's whole answer at `raw`."""


class Number(float):
    """A float with the tool's whole answer at `raw`."""


class Sequence(list):  # type: ignore[type-arg]
    """A list with the tool's whole answer at `raw`."""


class Ready:
    """Makes a value that is already there awaitable: users write both f() and await f()."""

    def __await__(self) -> Any:
        return self
        yield  # never reached: it makes this a generator, as __await__ has to be


class ReadyTuple(Ready, tuple):  # type: ignore[type-arg]
    """A tuple that may also be awaited."""


class ReadyRecord(Ready, Record):
    """A Record that may also be awaited."""


class ReadyText(Ready, str):
    """A str that may also be awaited."""


MAX_RESULT = 64 << 10  # bytes of a value that is shown
CARRIERS = {str: Text, int: Integer, float: Number, list: Sequence}


def is_dunder(name: str) -> bool:
    return name.startswith("__")


def known_names(wanted: object, names: Iterable[Any]) -> str:
    """Returns the end of a message about a name that is missing: what there is, and what may have been meant."""
    def fold(name: object) -> str:
        return str(name).replace("_", "").replace("-", "").lower()

    # Not difflib: hasattr() on thousands of records comes through here.
    near = fold(wanted)
    meant = [n for n in names if fold(n) == near] or [n for n in names if near in fold(n) or fold(n) in near]
    hint = f". Did you mean {meant[0]!r}?" if meant and near else ""
    return "there are: " + shortened(names) + hint


def shortened(names: Iterable[Any], most: int = 20) -> str:
    names = [str(name)[:60] for name in names]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more


def hide_types(kind: type) -> None:
    """Takes the annotations from the methods of a class. They are for readers of this package: their names mean nothing
    in the code of users, whom help() would show them.
    """
    for member in vars(kind).values():
        if hasattr(member, "__code__"):
            member.__annotations__ = {}


# What of them is shown


def shown(value: Any) -> str:
    """Returns a value as a notebook would show it, cut to MAX_RESULT bytes with a note."""
    text = None
    if isinstance(value, (list, tuple, dict, set, frozenset)) or type(value).__name__ == "DataFrame":
        text = repr(value) if is_small(value) else None
        if text is None or len(text) > 100:
            try:
                from .pretty import show
                text = show(value)
            except OSError:
                pass  # the code has as many files open as there may be
    data = (repr(value) if text is None else text).encode("utf-8", "backslashreplace")
    if len(data) > MAX_RESULT:
        note = f" ... cut: {len(data)} bytes in all"
        return data[:MAX_RESULT - len(note)].decode("utf-8", "ignore") + note
    return data.decode("utf-8")


def is_small(value: Any, depth: int = 3) -> bool:
    """Reports whether a value may fit on a line, without writing out a large one to find out."""
    if type(value) in (list, tuple):
        return depth > 0 and len(value) <= 20 and all(is_small(item, depth - 1) for item in value)
    if type(value) in (dict, Record):
        return depth > 0 and len(value) <= 10 and all(is_small(item, depth - 1) for item in (*value, *value.values()))
    return type(value) in (int, float, bool, type(None)) or type(value) is str and len(value) <= 100
