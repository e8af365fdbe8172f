"""What servers list, without what only the protocol needs."""
from __future__ import annotations

from .toolresults import with_raw
from .values import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROTOCOL = "_meta", "resultType", "nextCursor", "ttlMs", "cacheScope", "icons"  # icons are for people


def listed(answer: Any, key: str) -> list[Any]:
    """Returns the items in an answer, which is the list itself or has it under key. The whole item is at its .raw."""
    return [with_raw(plain(item), item) for item in (answer if isinstance(answer, list) else answer.get(key) or [])]


def plain(value: Any, depth: int = 4) -> Any:
    """Returns a record of the protocol without fields that are empty, or that only the protocol needs."""
    if isinstance(value, list) and depth:
        return [plain(item, depth - 1) for item in value]
    if not isinstance(value, dict) or not depth:
        return value
    fields = {name: plain(item, depth - 1) for name, item in value.items() if name not in PROTOCOL}
    return Record((name, item) for name, item in fields.items() if item is not None and item not in ("", [], {}))
