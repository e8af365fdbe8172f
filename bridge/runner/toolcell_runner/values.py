"""What the values of tools are in Python."""
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
