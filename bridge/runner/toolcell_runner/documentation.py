"""The documentation of servers and tools, as it is shown."""
from __future__ import annotations

from .values import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ToolDoc(Record):
    """The documentation of a tool. Printed, it is its signature and description; inputSchema is there too."""

    def __repr__(self) -> str:
        if self.get("serverAlias") == "user_tools":
            text = f"# from user_tools import {self.get('tool')}\n{self.get('signature')}"
        else:
            text = f"mcp_{self.get('serverAlias')}.{self.get('signature')}"
        if self.get("tool") != self.get("toolAlias"):
            text = f"# tool {self.get('tool')!r}\n{text}"
        return text + quoted_text(self.get("description") or "")


class ToolSummary(Record):
    """The short documentation of a tool. Printed, it is one line: the signature, and what the tool does."""

    def __repr__(self) -> str:
        text = f"mcp_{self.get('serverAlias')}.{self.get('signature')}"
        if self.get("serverAlias") == "user_tools":
            text = str(self.get("signature"))
        about = " ".join((self.get("description") or "").split())
        return f"{text}  # {about}" if about else text


class Docs(list):  # type: ignore[type-arg]
    """Documentation of several tools, one below the other when it is printed."""

    def __repr__(self) -> str:
        short = all(isinstance(doc, ToolSummary) for doc in self)
        return ("\n" if short else "\n\n").join(map(repr, self)) or "[]"


def quoted_text(text: str) -> str:
    """Returns the words of a server as a docstring that they cannot end."""
    if not text:
        return ""
    text, end = cut(text.strip()).replace("\\", "\\\\"), ""
    if text.endswith('"'):
        text, end = text[:-1], '\\"'
    text = text.replace('"""', '\\"\\"\\"') + end
    return '\n    """' + text.replace("\n", "\n    ") + '"""'


def cut(text: str, most: int = 4000) -> str:
    return text if len(text) <= most else f"{text[:most]}… cut: {len(text)} characters in all"


def shown_docs(docs: Any, full: bool) -> Any:
    """Returns docs so that they print as signatures, if they have some."""
    kind = ToolDoc if full else ToolSummary
    if not full and not any("signature" in doc for doc in docs):
        return docs
    return Docs(kind(doc) if "signature" in doc else doc for doc in docs)


def tool_help(about: Any) -> str:
    return f"{about['doc']}\n\n{cut(about.get('description') or '')}".strip()


def server_help(title: str, tools: list[Any], most: int = 100) -> str:
    lines = [title, ""]
    for tool in tools[:most]:
        words = " ".join((tool.get("description") or "").split())
        lines.append(f"    {tool['alias']}" + (f": {words[:100]}" if words else ""))
    if len(tools) > most:
        lines.append(f"    and {len(tools) - most} more: runtime.query_tool_docs lists all")
    return "\n".join([*lines, "", "help() of a tool and runtime.query_tool_docs show the parameters."])
