"""Recognizes code that takes the value of a tool for the result that the protocol wraps it in."""
from __future__ import annotations

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
