"""Checks the arguments of the functions of mcp.runtime."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def searching(query: str, limit: int | None, detail: str) -> tuple[str, dict[str, Any]]:
    """Returns the request for a search. A limit of None is the usual one."""
    if isinstance(limit, bool) or limit is not None and not hasattr(type(limit), "__index__"):
        raise TypeError(f"search_tool_docs(): limit must be an int, not {type(limit).__name__}")
    most = None if limit is None else max(-1, min(limit.__index__(), 1 << 30))
    return "search_tool_docs", {"query": text(query, "search_tool_docs(): query"), "limit": most,
                                "detail": checked_detail(detail)}


def text(value: str, what: str) -> str:
    """Returns an argument that must be a text. The host would refuse others in words that are not Python's."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")
    return value


def texts(values: Sequence[str], what: str) -> list[str]:
    return [text(value, what) for value in values]


def checked_detail(detail: str) -> str:
    if detail not in ("summary", "full", "schema"):
        given = repr(detail) if isinstance(detail, str) else type(detail).__name__
        raise ValueError(f"detail is 'summary', 'full' or 'schema', not {given}")
    return detail
