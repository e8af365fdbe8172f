"""Converts the results of tools to Python values."""
from __future__ import annotations

from .errors import MCPError
from .jsontext import Strict, parse_json
from .values import CARRIERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .runtime import Runtime


def tool_value(answer: Any, server: str, tool: str, runtime: Runtime) -> Any:
    """Returns the answer of a tool as a plain value. Raises MCPError if the answer is the tool's error."""
    content = answer.get("content") or []
    if answer.get("isError"):
        text = "\n".join(str(item.get("text", "")) for item in content if item.get("type") == "text")
        raise MCPError(text or "the tool failed and gave no reason", server, tool, answer)
    structured = answer.get("structuredContent")
    if structured is not None:
        value = with_raw(unwrapped(structured), answer)
        files = [item for item in content if item.get("type") != "text"]
        return runtime.content().with_attachments(value, files, server) if files else value
    values = [item_value(item, server, runtime) for item in content]
    return with_raw(values[0] if len(values) == 1 else values or None, answer)


def unwrapped(structured: Any) -> Any:
    """Removes the {"result": …} that servers put around values that are not objects, as MCP allows objects only."""
    if isinstance(structured, dict) and list(structured) == ["result"] and not isinstance(structured["result"], dict):
        return structured["result"]
    return structured


def item_value(item: Any, server: str, runtime: Runtime) -> Any:
    if item.get("type") != "text":
        return runtime.content().content_value(item, server)
    text = item.get("text", "")
    try:
        return parse_json(text, Strict)
    except (ValueError, RecursionError):
        return text


def with_raw(value: Any, answer: Any) -> Any:
    """Returns value with the whole answer at .raw, where its type can carry one (True and None cannot)."""
    carrier = CARRIERS.get(type(value))
    if carrier:
        value = carrier(value)
    elif not hasattr(value, "__dict__"):
        return value
    value.__dict__["raw"] = answer
    return value
