"""What servers list without what only the protocol needs, and the values of resources and prompts."""
from __future__ import annotations

from .content import ResourceLink, content_value, resource_item
from .toolresults import items_of, text_of, with_raw
from .values import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROTOCOL = "_meta", "resultType", "nextCursor", "ttlMs", "cacheScope", "icons"  # icons are for people


def listed(answer: Any, key: str) -> list[Any]:
    """Returns the items in an answer, which is the list itself or has it under key. The whole item is at its .raw."""
    return [with_raw(plain(item), item) for item in (answer if isinstance(answer, list) else answer.get(key) or [])]


def links(answer: Any, server: str) -> list[Any]:
    """Returns the resources in an answer, which can be read."""
    return [ResourceLink.of(item, server) for item in listed(answer, "resources")]


def plain(value: Any, depth: int = 4) -> Any:
    """Returns a record of the protocol without fields that are empty, or that only the protocol needs."""
    if isinstance(value, list) and depth:
        return [plain(item, depth - 1) for item in value]
    if not isinstance(value, dict) or not depth:
        return value
    fields = {name: plain(item, depth - 1) for name, item in value.items() if name not in PROTOCOL}
    return Record((name, item) for name, item in fields.items() if item is not None and item not in ("", [], {}))


def resource_value(answer: Any, server: str) -> Any:
    """Returns what resources/read answered: the one content, or a list of several."""
    if isinstance(answer, list):
        return planned(answer)
    values = [resource_item(item) for item in items_of(answer.get("contents"))]
    return with_raw(values[0] if len(values) == 1 else values, answer)


def prompt_value(answer: Any, server: str) -> Any:
    """Returns what prompts/get answered, the content of its messages as values."""
    if isinstance(answer, list):
        return planned(answer)

    def content(item: Any) -> Any:
        if isinstance(item, list):
            return [content(each) for each in item]
        text = text_of(item)
        return content_value(item, server) if text is None else text

    def plain_with(record: Any, name: str, value: Any) -> Record:
        return Record(plain({key: record[key] for key in record if key != name}), **{name: value})

    def message(each: Any) -> Any:
        if not isinstance(each, dict):
            return Record(content=content(each))
        return plain_with(each, "content", content(each.get("content")))

    messages = [message(each) for each in items_of(answer.get("messages"))]
    return with_raw(plain_with(answer, "messages", messages), answer)


def planned(answer: list[Any]) -> Any:
    from .placeholder import placeholder
    return placeholder(*answer)
