"""Standard input that a person types: the host reads a line when the code asks for one."""
from __future__ import annotations

import io

from .errors import MCPError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .host import Host


class TypedInput(io.RawIOBase):
    """Gives at most one line per read, and nothing at the end of the input, as a terminal does."""

    def __init__(self, host: Host) -> None:
        self._host, self._rest = host, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = self._line()
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def _line(self) -> bytes:
        try:
            line = self._host.ask("read_input", {})
        except MCPError as error:
            if str(error) == "KeyboardInterrupt":
                raise KeyboardInterrupt from None
            return b""  # the host is gone, or this is another process
        return line.encode("utf-8", "surrogatepass") if isinstance(line, str) else b""


def open_typed_input(host: Host) -> io.TextIOWrapper:
    """Returns the stream to be sys.stdin."""
    return io.TextIOWrapper(io.BufferedReader(TypedInput(host)), encoding="utf-8", errors="surrogateescape")
