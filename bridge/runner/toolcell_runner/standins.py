"""What the code of a dry run gets for the results of calls that were not made."""
from __future__ import annotations

from .host import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

    Shape = Any

MOST_SHOWN = 200  # characters of what was computed


class PlannedResult:
    """Stands for the result of a planned call, or for what was made of it.

    What is made of one shows how, in texts too, and so the host finds it. What would have to be a real value, such as
    its length, whether it is true, or its bytes, raises TypeError.
    """

    __slots__ = ("_computed", "_root", "_shape", "stands_for")

    def __init__(self, text: str, root: str, shape: Shape = None, *, computed: bool = False) -> None:
        self.stands_for, self._root, self._shape, self._computed = text, root, shape or None, computed

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        lose()  # isinstance(): the code asks what the result is
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
        if isinstance(shape, dict) and isinstance(key, str):
            if key not in shape:
                raise KeyError(key)
            return self._part(step(key), shape[key])
        if isinstance(key, slice):
            bounds = ":".join("" if each is None else str(each) for each in (key.start, key.stop, key.step))
            return self._part(f"[{bounds.removesuffix(':') if key.step is None else bounds}]", shape)
        return self._part(f"[{shown(key)}]", shape[0] if isinstance(shape, list) and shape else None)

    def __call__(self, *args: Any, **named: Any) -> Any:
        given = [*map(shown, args), *(f"{name}={shown(value)}" for name, value in named.items())]
        return self._part(f"({', '.join(given)})", None)

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self._shape, str):
            self._refuse("its items are")
        lose()  # how many there are
        return iter([self[0]])

    def _part(self, text: str, shape: Shape) -> PlannedResult:
        return self._becomes(term(self) + text, shape)

    def _becomes(self, text: str, shape: Shape, *, computed: bool = False) -> PlannedResult:
        if len(text) > MOST_SHOWN:  # a sum over a long loop, say
            text, computed = f"… {self._root}", False
        return PlannedResult(text, self._root, shape, computed=computed)

    def _refuse(self, what: str) -> NoReturn:
        lose()
        raise TypeError(f"{self} stands for the result of a call that was only planned: {what} not known")

    def _with(self, sign: str, other: Any, *, swapped: bool = False) -> Any:
        """Returns what an operator makes of it and a number or a text, or of two results."""
        mine, others = kind_of(self), kind_of(other)
        text = "str" in (mine, others)
        if others is None or text and (sign not in "+%*" or sign == "+" and "number" in (mine, others)):
            lose()
            return NotImplemented
        first, second = (other, self) if swapped else (self, other)
        if sign == "+" and text:
            return PlannedResult(f"{first}{second}", self._root, "str")
        shape = "float" if mine == others == "number" else None
        return self._becomes(f"{term(first)} {sign} {term(second)}", shape, computed=True)

    def __add__(self, other: Any) -> Any:
        return self._with("+", other)

    def __radd__(self, other: Any) -> Any:
        return self._with("+", other, swapped=True)

    def __sub__(self, other: Any) -> Any:
        return self._with("-", other)

    def __rsub__(self, other: Any) -> Any:
        return self._with("-", other, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self._with("*", other)

    def __rmul__(self, other: Any) -> Any:
        return self._with("*", other, swapped=True)

    def __truediv__(self, other: Any) -> Any:
        return self._with("/", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with("/", other, swapped=True)

    def __floordiv__(self, other: Any) -> Any:
        return self._with("//", other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._with("//", other, swapped=True)

    def __mod__(self, other: Any) -> Any:
        return self._with("%", other)

    def __rmod__(self, other: Any) -> Any:
        return self._with("%", other, swapped=True)

    def __neg__(self) -> Any:
        return self._becomes(f"-{term(self)}", "float", computed=True)

    def __abs__(self) -> Any:
        return self._becomes(f"abs({self})", "float")

    def __round__(self, *digits: Any) -> Any:
        return self._becomes(f"round({', '.join(map(shown, (self, *digits)))})", "float")

    def __bool__(self) -> bool:  # noqa: PLE0304
        self._refuse("whether it is true is")

    def __len__(self) -> int:  # noqa: PLE0303
        self._refuse("its length is")

    def __int__(self) -> int:
        self._refuse("its number is")

    __index__ = __int__

    def __float__(self) -> float:
        self._refuse("its number is")

    def __complex__(self) -> complex:
        self._refuse("its number is")

    def __bytes__(self) -> bytes:  # noqa: PLE0308
        self._refuse("its bytes are")

    def __fspath__(self) -> str:
        self._refuse("which path it is is")

    def __contains__(self, item: object) -> bool:
        self._refuse("what is in it is")

    def __eq__(self, other: object) -> bool:
        self._refuse("what it equals is")

    def __lt__(self, other: Any) -> bool:
        self._refuse("how it compares is")

    __le__ = __gt__ = __ge__ = __lt__

    def __hash__(self) -> int:  # noqa: PLE0309
        self._refuse("what it equals is")


PYTHON: dict[Any, type] = {"str": str, "int": int, "float": float, "bool": bool}  # the types of leaves


def lose() -> None:
    Host.derived = True


def kind_of(value: Any) -> str | None:
    """Returns what an operand is: number, str, unknown, or None for what goes together with no result."""
    if isinstance(value, PlannedResult):
        shape = value._shape
        return "unknown" if shape is None else "str" if shape == "str" else "number" if isinstance(shape, str) else None
    return "number" if isinstance(value, (int, float)) else "str" if isinstance(value, str) else None


def term(value: Any) -> str:
    """Writes a value as a part of what is computed from it."""
    return f"({value})" if isinstance(value, PlannedResult) and value._computed else shown(value)


def shown(value: Any) -> str:
    """Writes an argument. A result shows in its representation, also inside of others."""
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "…"


def known(wanted: str, shape: dict[str, Any]) -> str:
    from .values import known_names
    return known_names(wanted, shape)


def stand_in(number: int, shape: Shape) -> Any:
    """Returns what stands for the result of the planned call of that number, as far as the shape of it is known."""
    root = f"<result {number}>"
    return PlannedResult(root, root, shape)


def step(name: str) -> str:
    return "." + name if name.isidentifier() else f"[{name!r}]"
