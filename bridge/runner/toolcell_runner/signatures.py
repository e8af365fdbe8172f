"""The signatures of tools, as inspect has them."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Annotation:
    """A type that Python has no object for, such as a dictionary with certain fields."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return self.text == (other.text if isinstance(other, Annotation) else other)

    def __hash__(self) -> int:
        return hash(self.text)


PLAIN_TYPES = {"str": str, "int": int, "float": float, "bool": bool, "None": None, "dict": dict, "list": list}


def signature_of(about: Any) -> Any:
    """Returns the inspect.Signature of a tool."""
    import inspect
    kind, empty = inspect.Parameter, inspect.Parameter.empty
    parameters = []
    for index, each in enumerate(about["parameters"], 1):
        name = each.get("alias") or each["name"]
        parameters.append(kind(
            name if name.isidentifier() else f"arg{index}", kind.POSITIONAL_OR_KEYWORD,
            default=empty if each.get("required") else each.get("default"),
            annotation=annotation_of(each)))
    if about.get("extra"):
        parameters.append(kind(about.get("extraName", "more"), kind.VAR_KEYWORD))
    returns = about.get("returns")
    return inspect.Signature(parameters, return_annotation=annotation_of(returns) if returns else empty)


def annotation_of(each: Any) -> Any:
    try:
        kind = type_of(each["type"])
    except (KeyError, TypeError):
        return Annotation(each["annotation"])
    # inspect writes Literal, but list[typing.Literal[…]]: one signature would have both.
    text = repr(kind)
    return Annotation(each["annotation"]) if "typing." in text and not text.startswith("typing.") else kind


def type_of(tree: Any) -> Any:
    import typing
    if isinstance(tree, str):
        return typing.Any if tree == "Any" else PLAIN_TYPES[tree]
    kind, *parts = tree
    if kind == "literal":
        literal: Any = typing.Literal
        return literal[tuple(parts)]
    parts = [type_of(part) for part in parts]
    if kind == "union":
        return typing.Union[tuple(parts)]  # noqa: UP007 # of types that are known at run time
    generic: Any = list if kind == "list" else dict
    return generic[parts[0]] if generic is list else generic[str, parts[0]]
