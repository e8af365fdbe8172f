"""What the code of a dry run gets for the results of calls that were not made."""
from __future__ import annotations

import operator

from .toolresults import unwrapped, with_raw
from .values import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_SHOWN = 200  # characters of what was computed


class StandIn:
    """Makes a number show as the result that it stands for, or as what was computed from that."""

    stands_for = ""
    source = ""  # the result, or the first of several
    computed = False

    def __repr__(self) -> str:
        return self.stands_for

    __str__ = __repr__

    def __format__(self, how: str) -> str:
        return self.stands_for

    def __add__(self, other: Any) -> Any:
        return self.with_other(operator.add, "+", other)

    def __radd__(self, other: Any) -> Any:
        return self.with_other(operator.add, "+", other, swapped=True)

    def __sub__(self, other: Any) -> Any:
        return self.with_other(operator.sub, "-", other)

    def __rsub__(self, other: Any) -> Any:
        return self.with_other(operator.sub, "-", other, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self.with_other(operator.mul, "*", other)

    def __rmul__(self, other: Any) -> Any:
        return self.with_other(operator.mul, "*", other, swapped=True)

    def __truediv__(self, other: Any) -> Any:
        return self.with_other(operator.truediv, "/", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.with_other(operator.truediv, "/", other, swapped=True)

    def __floordiv__(self, other: Any) -> Any:
        return self.with_other(operator.floordiv, "//", other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self.with_other(operator.floordiv, "//", other, swapped=True)

    def __mod__(self, other: Any) -> Any:
        return self.with_other(operator.mod, "%", other)

    def __rmod__(self, other: Any) -> Any:
        return self.with_other(operator.mod, "%", other, swapped=True)

    def __neg__(self) -> Any:
        return self.becomes(-self.plain(), f"-{term(self)}")

    def __abs__(self) -> Any:
        return self.becomes(abs(self.plain()), f"abs({self})")

    def __round__(self, *digits: Any) -> Any:
        return self.becomes(round(self.plain(), *digits), f"round({', '.join(map(str, [self, *digits]))})")

    def plain(self) -> Any:
        """Returns the number that it counts as."""
        return float(self) if isinstance(self, float) else int(self)  # type: ignore[call-overload]

    def with_other(self, compute: Any, sign: str, other: Any, *, swapped: bool = False) -> Any:
        if not isinstance(other, (int, float)):  # a list or a Decimal, say: what they make of a number
            return compute(other, self.plain()) if swapped else compute(self.plain(), other)
        number = other.plain() if isinstance(other, StandIn) else other
        if swapped:
            return self.becomes(compute(number, self.plain()), f"{term(other)} {sign} {term(self)}")
        return self.becomes(compute(self.plain(), number), f"{term(self)} {sign} {term(other)}")

    def becomes(self, value: float, text: str) -> Any:
        if len(text) > MOST_SHOWN:  # a sum over a long loop, say
            text = f"… {self.source}"
        return standing_for(value, text, self.source, computed=True)


class StandInInteger(StandIn, int):
    """A number that stands for an int or a bool."""


class StandInNumber(StandIn, float):
    """A number that stands for a float."""


NUMBERS = {"int": 1, "bool": 1, "float": 1.0}


def standing_for(value: float, text: str, source: str, *, computed: bool = False) -> Any:
    number: Any = StandInInteger(value) if isinstance(value, int) else StandInNumber(value)
    number.stands_for, number.source, number.computed = text, source, computed
    return number


def term(number: Any) -> str:
    """Writes a number as a part of what is computed from it."""
    return f"({number})" if getattr(number, "computed", False) else str(number)


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
    value = NUMBERS.get(shape)
    return None if value is None else standing_for(value, path, path)


def step(name: str) -> str:
    return "." + name if name.isidentifier() else f"[{name!r}]"
