"""Converts the arguments of a tool to JSON."""
from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def jsonable(value: Any, path: str) -> Any:
    """Returns value in JSON's types. Raises TypeError or ValueError that names the path of the offending part."""
    if value is None or type(value) in (str, bool, int):
        return value
    if is_planned(value):
        return value.stands_for
    if hasattr(type(value), "_member_map_"):  # an Enum's
        return jsonable(value.value, path)
    if isinstance(value, float):
        if value - value != 0:
            raise ValueError(f"argument {path}: {value} is not a JSON number")
        return float(value)
    if isinstance(value, (str, int)):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"argument {path}: {type(value).__name__} is not JSON: decode() it to text, or base64 it")
    if isinstance(value, (list, tuple)):
        return [jsonable(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        return jsonable(in_order(value), path)
    if hasattr(value, "keys") and hasattr(value, "__getitem__") and not hasattr(value, "to_numpy"):
        return {str(key): jsonable(value[key], f"{path}.{key}") for key in value.keys()}
    return jsonable_object(value, path)


def is_planned(value: object) -> bool:
    """Reports whether a value stands for the result of a planned call."""
    return hasattr(type(value), "stands_for")


def jsonable_object(value: Any, path: str) -> Any:
    """jsonable for objects: their methods say what they are, so that no module has to be imported to ask."""
    kind = type(value)
    if isinstance(value, type):
        raise TypeError(f"argument {path}: the class {value.__name__} is not JSON")
    if hasattr(kind, "__dataclass_fields__"):
        return {name: jsonable(getattr(value, name), f"{path}.{name}") for name in kind.__dataclass_fields__}
    if hasattr(kind, "isoformat"):  # date, time, datetime
        return value.isoformat()
    if hasattr(kind, "__fspath__"):
        return jsonable(os.fspath(value), path)
    if hasattr(kind, "tolist"):  # numpy's arrays and scalars
        return jsonable(value.tolist(), path)
    if any((base.__module__, base.__name__) in (("decimal", "Decimal"), ("uuid", "UUID")) for base in kind.__mro__):
        return str(value)
    hint = ": await it first" if hasattr(kind, "__await__") else ""
    raise TypeError(f"argument {path}: {kind.__name__} is not JSON{hint}")


def in_order(items: Iterable[Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:
        return list(items)


def arguments_of(given: Any) -> dict[str, Any]:
    """Returns the arguments of a tool call as a JSON object."""
    if not hasattr(given, "keys") or is_planned(given):
        raise TypeError(f"a tool takes a mapping or keyword arguments, not {type(given).__name__}")
    return {str(name): jsonable_argument(given[name], str(name)) for name in given.keys()}


def jsonable_argument(value: Any, path: str) -> Any:
    try:
        return jsonable(value, path)
    except RecursionError:
        raise ValueError("the arguments contain themselves, or are nested too deeply for JSON") from None
