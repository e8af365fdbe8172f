"""Recognizes code that takes the value of a tool for something else: the result that the protocol wraps it in, or what
the JSON in a text says.
"""
from __future__ import annotations

from .jsontext import Strict, parse_json
from .suggestions import failing_line, resolved
from .values import CARRIERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .sources import Sources

# Members of CallToolResult and of its content, as SDKs name them.
MEMBERS = {"content", "contents", "isError", "is_error", "structuredContent", "structured_content", "text"}


def taken_for_result(error: BaseException, sources: Sources) -> bool:
    """Reports whether an error arose where the code looked for a member of the result in a tool's value."""
    import ast
    if not isinstance(error, (AttributeError, IndexError, KeyError, TypeError)):
        return False
    frame, nodes = failing_line(error, sources)
    for node in nodes:
        if isinstance(node, ast.Attribute):
            member: Any = node.attr
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            member = node.slice.value
        else:
            continue
        if isinstance(member, str) and member in MEMBERS and is_tool_value(base_of(node), frame, sources):
            return True
    return False


MAX_JSON = 8 << 20  # characters of a text that is looked at
JSON_TEXT = "json text "  # before the name of the text, in the cause of an error


def taken_for_json(error: BaseException, sources: Sources) -> str | None:
    """Returns the cause of an error that arose where the code uses a text as the JSON that it holds, or None.

    Servers say that a tool returns a text, and give JSON in it.
    """
    import ast
    if not str(error).startswith(("string indices must be", "'Text' object has no", "'str' object has no")):
        return None
    frame, nodes = failing_line(error, sources)
    for node in nodes:
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            name = text_at(node.value, frame, sources)
            if name:
                return JSON_TEXT + name
    return JSON_TEXT if holds_json(getattr(error, "obj", None)) else None


def text_at(node: Any, frame: Any, sources: Sources) -> str | None:
    """Returns what the code calls a text of JSON: that of an expression, or what a loop over it takes letters from."""
    import ast
    if any(holds_json(value) for value in resolved(node, frame)):
        return ast.unparse(node)
    if not isinstance(node, ast.Name):
        return None
    for loop in ast.walk(ast.parse(sources.texts[frame.f_code.co_filename])):
        if (isinstance(loop, (ast.For, ast.comprehension)) and isinstance(loop.target, ast.Name)
                and loop.target.id == node.id and any(holds_json(value) for value in resolved(loop.iter, frame))):
            return ast.unparse(loop.iter)
    return None


def holds_json(value: Any) -> bool:
    """Reports whether a value is a text that is a JSON object or list."""
    if not isinstance(value, str) or len(value) > MAX_JSON or value.lstrip()[:1] not in ("{", "["):
        return False
    try:
        parse_json(value, Strict)
    except (ValueError, RecursionError):
        return False
    return True


def base_of(node: Any) -> Any:
    """Returns what stands before all attributes and items of an expression: x of x.content[0].text."""
    import ast
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node


def is_tool_value(node: Any, frame: Any, sources: Sources) -> bool:
    import ast
    if is_tool_call(node):
        return True
    if not isinstance(node, ast.Name):
        return False
    for value in resolved(node, frame):
        if type(value) in CARRIERS.values() or "raw" in getattr(value, "__dict__", ()):
            return True
    # True and None cannot carry the answer of the tool.
    tree = ast.parse(sources.texts[frame.f_code.co_filename])
    return any(isinstance(each, ast.Assign) and is_tool_call(each.value)
               and any(isinstance(target, ast.Name) and target.id == node.id for target in each.targets)
               for each in ast.walk(tree))


def is_tool_call(node: Any) -> bool:
    """Reports whether an expression awaits a tool: await mcp_x.tool(…), or await runtime.call_tool(…)."""
    import ast
    if not isinstance(node, ast.Await) or not isinstance(node.value, ast.Call):
        return False
    called = node.value.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name == "call_tool" or getattr(base_of(called), "id", "").startswith("mcp_")
