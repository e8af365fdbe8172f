"""Whole messages over the socket to the host."""
from __future__ import annotations

import _thread
import os

from .jsontext import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_FRAME = 256 << 20  # from the host
MAX_CALL = 48 << 20  # to it: it ends a run that sends more
READ_SIZE = 16 << 10  # bytes at once, except of a large message


class Channel:
    """Whole messages over one stream socket. Any thread may send; only one at a time may receive."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        os.set_inheritable(fd, False)
        os.set_blocking(fd, True)
        self._identity = self._identify()
        self._writing = _thread.allocate_lock()
        self._held, self._at = b"", 0  # what was read and not yet given
        self._body: bytearray | None = None  # a message that takes more than one read
        self._filled = 0  # of it
        self.when_full: Callable[[], None] | None = None  # called where a socket that does not block takes no more

    def send(self, message: Any) -> None:
        """Writes one message. Raises OSError if the host is gone, ValueError if the message is too large."""
        body = encode(message)
        if len(body) > MAX_CALL:
            raise ValueError(f"the arguments are {len(body)} bytes of JSON; one call can carry {MAX_CALL}")
        rest = memoryview(len(body).to_bytes(4, "big") + body)
        with self._writing:
            while rest:
                self._check()
                try:
                    rest = rest[os.write(self.fd, rest):]
                except BlockingIOError:
                    if self.when_full is None:
                        raise
                    self.when_full()

    def receive(self) -> bytes | bytearray | None:
        """Returns the bytes of the next message, or None when the host has hung up."""
        while True:
            body = self.message()
            if body is not None:
                return body
            if not self.read():
                return None

    def message(self) -> bytes | bytearray | None:
        """Returns the bytes of the next message if they have been read, or None. Raises OSError if it is too large."""
        if self._body is not None:
            if self._filled < len(self._body):
                return None
            body, self._body = self._body, None
            return body
        start = self._at + 4
        if len(self._held) < start:
            return None
        end = start + int.from_bytes(self._held[self._at:start], "big")
        if end - start > MAX_FRAME:
            raise OSError(f"a frame of {end - start} bytes")
        if end <= len(self._held):
            self._at = end
            return self._held[start:end]
        self._body, self._filled = bytearray(end - start), len(self._held) - start
        self._body[:self._filled] = self._held[start:]
        self._held, self._at = b"", 0
        return None

    def read(self) -> bool:
        """Reads more bytes, or the whole of a large message. Returns False if the host has hung up."""
        if self._body is None:
            self._check()
            more = os.read(self.fd, READ_SIZE)
            self._held, self._at = self._held[self._at:] + more, 0
            return len(more) > 0
        while self._filled < len(self._body):
            self._check()
            count = os.readv(self.fd, [memoryview(self._body)[self._filled:]])
            if not count:
                return False
            self._filled += count
        return True

    def _check(self) -> None:
        # The code may close our fd and open a file that gets its number: never read or write that.
        if self._identify() != self._identity:
            raise OSError("the control socket was closed by the code")

    def _identify(self) -> tuple[int, int]:
        stat = os.fstat(self.fd)
        return stat.st_dev, stat.st_ino
