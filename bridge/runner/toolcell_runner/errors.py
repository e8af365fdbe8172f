"""The exceptions that user code meets."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class MCPError(RuntimeError):
    """A server, or the connection to it, refused or failed.

    `message` is the text. `server` and `tool` are the names of the server and the tool, or None. `raw` is the tool's
    whole answer, if there was one.
    """

    def __init__(self, message: object, server: str | None = None, tool: str | None = None, raw: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.server = server
        self.tool = tool
        self.raw = raw
        self._stopped = False  # whether the user has stopped the run, whose result says so

    def __str__(self) -> str:
        return str(self.message)


class UnknownServerError(MCPError, KeyError):
    """No server of that name was discovered."""
