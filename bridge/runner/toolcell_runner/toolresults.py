"""Converts the results of tools to Python values."""
from __future__ import annotations

from .errors import MCPError
from .jsontext import Strict, encode, parse_json
from .values import CARRIERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


def tool_value(answer: Any, server: str, tool: str, content: Callable[[], ModuleType]) -> Any:
    """Returns the answer of a tool as a plain value. Raises MCPError if the answer is the tool's error.

    content() gives the module of content that is not text, where there is some.
    """
    if isinstance(answer, list):  # the call was only planned: the answer of a server is an object
        from .placeholder import placeholder
        number, shape = answer
        return placeholder(number, unwrapped(shape, []))
    items = items_of(answer.get("content"))
    texts = [text for text in map(text_of, items) if text is not None]
    if answer.get("isError") is True:
        reason = "\n".join(texts) or reason_in(answer.get("structuredContent")) or "the tool failed and gave no reason"
        raise MCPError(reason, server, tool, answer)
    structured = answer.get("structuredContent")
    if structured is not None:
        value = with_raw(unwrapped(structured, texts), answer)
        files = [item for item in items if text_of(item) is None]
        return content().with_attachments(value, files, server) if files else value
    values = [item_value(item, server, content) for item in items]
    return with_raw(values[0] if len(values) == 1 else values or None, answer)


def reason_in(structured: Any) -> str:
    """Returns the structured content of an error that has no text, as text."""
    if isinstance(structured, str):
        return structured
    return encode(structured, ":", ",").decode() if structured else ""


def items_of(content: Any) -> list[Any]:
    """Returns the items of what should be a list. Some servers write one item without it, or {} for an empty one."""
    if content is None or content == {}:
        return []
    return content if isinstance(content, list) else [content]


def text_of(item: Any) -> str | None:
    """Returns the text of an item that is one, or None. What is no text there is the JSON of it."""
    if isinstance(item, str):
        return item
    if not isinstance(item, dict):
        return None
    kind, text = item.get("type"), item.get("text")
    if kind != "text" and not (kind is None and isinstance(text, str)):
        return None
    if isinstance(text, str):
        return text
    return "" if text is None else encode(text, ":", ",").decode()


def unwrapped(structured: Any, texts: list[str]) -> Any:
    """Returns the value that a server has put into an object, as MCP allows objects only.

    It is in {"result": …}, or is a text in an object of one member that the texts of the answer repeat.
    """
    if isinstance(structured, dict) and len(structured) == 1:
        (name, value), = structured.items()
        if name == "result" and not isinstance(value, dict):
            return value
        if texts and isinstance(value, str) and value in ("\n".join(texts), "".join(texts)):
            return value
    return structured


def item_value(item: Any, server: str, content: Callable[[], ModuleType]) -> Any:
    """Returns an item of the content as a value. A text that reads as a number or the like may be meant as a text."""
    text = text_of(item)
    if text is None:
        return content().content_value(item, server)
    try:
        value = parse_json(text, Strict)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, (dict, list)) else text


def with_raw(value: Any, answer: Any) -> Any:
    """Returns value with the whole answer at .raw, where its type can carry one (True and None cannot)."""
    carrier = CARRIERS.get(type(value))
    if carrier:
        value = carrier(value)
    elif not hasattr(value, "__dict__"):
        return value
    value.__dict__["raw"] = answer
    return value
