"""What the code of a dry run gets for the results of calls that were not made."""
from __future__ import annotations

from .toolresults import unwrapped, with_raw
from .values import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class StandIn:
    """Makes a number show as the result that it stands for."""

    stands_for = ""

    def __repr__(self) -> str:
        return self.stands_for

    __str__ = __repr__

    def __format__(self, how: str) -> str:
        return self.stands_for


class StandInInteger(StandIn, int):
    """A 1 that stands for an int or a bool."""


class StandInNumber(StandIn, float):
    """A 1.0 that stands for a float."""


NUMBERS = {"int": StandInInteger, "bool": StandInInteger, "float": StandInNumber}


def stand_in(number: int, shape: Any) -> Any:
    """Returns what stands for the result of the planned call of that number, as far as the shape of it is known."""
    return with_raw(filled(unwrapped(shape, []), f"<result {number}>"), Record())


def filled(shape: Any, path: str) -> Any:
    if isinstance(shape, dict):
        return Record((name, filled(part, path + step(name))) for name, part in shape.items())
    if isinstance(shape, list):
        return [filled(part, f"{path}[{index}]") for index, part in enumerate(shape)]
    if shape == "str":
        return path
    kind: Any = NUMBERS.get(shape)
    if kind is None:
        return None
    value = kind(1)
    value.stands_for = path
    return value


def step(name: str) -> str:
    return "." + name if name.isidentifier() else f"[{name!r}]"
