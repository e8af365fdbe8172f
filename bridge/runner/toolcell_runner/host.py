"""Calls to the host."""
from __future__ import annotations

import _thread
import os
import sys

from .errors import MCPError
from .jsontext import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from .channel import Channel

READER_STACK = 8 << 20  # glibc's usual size
SIGNAL_PATIENCE = 0.5  # seconds
MAX_FRAMES = 40  # that are looked at for the line of a call
HUNG_UP = "the host closed the connection"


class Host:
    """Sends requests to the host, from any thread or task, and passes each reply to the caller that waits for it.

    The event loop that asks reads the replies, which saves a switch of threads. If other threads ask too, or the host
    does not take what is sent, a thread reads them from then on.
    """

    # Whether the code has something of a planned result that does not show it, such as an error that it has caught.
    # Then nothing is read for it any more.
    derived = False
    code_file = ""  # the name of the file that the code of this run is in

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._pid = os.getpid()
        self._lock = _thread.allocate_lock()
        self._waiting: dict[Any, tuple[Callable[[Any], None], Any]] = {}
        self._count = 0
        self._reader: Any = None  # the event loop that reads, or _thread where a thread does
        self._receiving = _thread.allocate_lock()
        self._closed = False
        channel.when_full = self._read_by_thread

    def ask(self, method: str, params: Any) -> Any:
        """Returns the host's answer; blocks this thread only. Raises MCPError if the host refuses or is gone."""
        return self.begin(method, params)()

    def begin(self, method: str, params: Any) -> Callable[[], Any]:
        """Sends a request. Returns a function that waits for its reply."""
        gate = _thread.allocate_lock()
        gate.acquire()
        replies = []

        def deliver(reply: Any) -> None:
            replies.append(reply)
            gate.release()

        def wait() -> Any:
            # A signal that comes as the wait begins is handled only when it ends: it may not be for ever.
            while not gate.acquire(True, SIGNAL_PATIENCE):
                pass
            return result_of(replies[0])

        self._post(method, params, deliver)
        return wait

    async def ask_async(self, method: str, params: Any) -> Any:
        """ask for tasks: the event loop keeps running meanwhile."""
        import asyncio

        from . import looptime  # noqa: F401  # before the user can be asked
        loop = asyncio.get_running_loop()
        if method == "call_tool" and getattr(loop, "_ready", None):
            params["more"] = True  # other tasks go on at once: the user is asked about the calls of a gather together
        future = loop.create_future()

        def resolve(reply: Any) -> None:
            if not future.done():  # a cancelled task left it
                future.set_result(reply)

        def deliver(reply: Any) -> None:
            if asyncio._get_running_loop() is loop:
                return resolve(reply)
            try:
                loop.call_soon_threadsafe(resolve, reply)
            except RuntimeError:
                pass  # the loop was closed: no task waits any more

        number = self._post(method, params, deliver, loop)
        try:
            return result_of(await future)
        except asyncio.CancelledError:
            self._cancel(number)
            raise

    def _cancel(self, number: int) -> None:
        """Tells the host that nothing waits for the reply of a call."""
        if os.getpid() == self._pid and self._waiting.pop(number, None) is not None:
            try:
                self._channel.send({"type": "cancel", "id": number})
            except OSError:
                pass  # it is gone

    def _post(self, method: str, params: Any, deliver: Callable[[Any], None], loop: Any = None) -> int:
        """Sends a request, and returns its number."""
        if self.derived and isinstance(params, dict):
            params["derived"] = True
        if isinstance(params, dict) and (line := self.line()):
            params["line"] = line
        # A forked process shares the socket: what it read would be missing here.
        if os.getpid() != self._pid:
            raise MCPError("tools can only be called from the main process")
        with self._lock:
            if self._closed:
                raise MCPError(HUNG_UP)
            self.listen(loop)
            self._count += 1
            number = self._count
            self._waiting[number] = deliver, names_in(params)
        try:
            self._channel.send({"type": "call", "id": number, "method": method, "params": params})
        except BaseException as error:
            self._waiting.pop(number, None)
            if isinstance(error, OSError):
                raise MCPError(HUNG_UP) from None
            raise
        return number

    def line(self) -> int:
        """Returns the line of the code that runs now, 0 if that is not in the first frames."""
        frame: FrameType | None = sys._getframe(1)
        for _ in range(MAX_FRAMES):
            if frame is None:
                break
            if frame.f_code.co_filename == self.code_file:
                return frame.f_lineno
            frame = frame.f_back
        return 0

    def tell_begun(self) -> None:
        """Tells the host that the code begins. An interrupt that comes now is the code's, also in here."""
        self._channel.send({"type": "begun"})

    def listen(self, loop: Any = None) -> None:
        """Ensures that replies of the host are read. The caller holds the lock."""
        if self._reader is _thread or loop is not None and self._reader is loop:
            return
        if loop is not None and (self._reader is None or self._reader.is_closed()):
            try:
                loop.add_reader(self._channel.fd, self._readable, loop)
            except Exception:
                pass  # not every kind of loop can
            else:
                self._reader = loop
                os.set_blocking(self._channel.fd, False)
                return
        os.set_blocking(self._channel.fd, True)
        start_reader(self._read)
        self._reader = _thread

    def _read_by_thread(self) -> None:
        os.set_blocking(self._channel.fd, True)
        # If the lock is taken, another thread asks, and starts the reader, or our signal handler has interrupted this.
        if self._lock.acquire(False):
            try:
                self.listen()
            except RuntimeError:
                pass  # the code has as many threads as there may be: what is being sent just waits
            finally:
                self._lock.release()

    def _readable(self, loop: Any) -> None:
        """Called by the event loop when the socket is readable."""
        if self._reader is not loop or not self._receiving.acquire(False):
            loop.remove_reader(self._channel.fd)
            return
        try:
            go_on = self._hand_out(self._channel.read())
        except BlockingIOError:
            go_on = True
        except (OSError, MemoryError):
            go_on = False
        finally:
            self._receiving.release()
        if not go_on:
            loop.remove_reader(self._channel.fd)
            self._close()

    def _read(self) -> None:
        """Runs in its own thread: delivers replies until the host hangs up."""
        with self._receiving:
            try:
                while self._hand_out(self._channel.read()):
                    pass
            except (OSError, MemoryError):
                pass
        self._close()

    def _hand_out(self, go_on: bool) -> bool:
        """Delivers every reply that has been read whole. Returns go_on."""
        while go_on:
            body = self._channel.message()
            if body is None:
                break
            try:
                reply = decode(body)
                deliver, _ = self._waiting.pop(reply.get("id"), (None, None))
            except (ValueError, AttributeError, TypeError, RecursionError, MemoryError) as error:
                self._fail(body, error)
                continue
            if deliver:
                deliver(reply)
        return go_on

    def _fail(self, body: bytes | bytearray, error: Exception) -> None:
        """Fails the call that a reply answers which cannot be read, or all: no call may wait for ever."""
        number = number_in(body)
        if number is None:
            self._fail_all("the host's answer cannot be read: " + in_words(error))
            return
        unknown: dict[str, Any] = {}
        deliver, names = self._waiting.pop(number, (None, unknown))
        if deliver:
            whose = f"the answer of server {names['server']!r}" if "server" in names else "the host's answer"
            deliver({"error": {"message": f"{whose} cannot be read: {in_words(error)}", **names}})

    def _close(self) -> None:
        with self._lock:
            self._closed = True
        self._fail_all(HUNG_UP)

    def _fail_all(self, message: str) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for deliver, _ in waiting.values():
            deliver({"error": {"message": message}})


HEAD = b'{"type":"reply","id":'  # of each reply, as the host writes it


def number_in(body: bytes | bytearray) -> int | None:
    """Returns the number of the call that a reply is for, though the rest of it may be unreadable."""
    if not body.startswith(HEAD):
        return None
    digits, comma, _ = bytes(body[len(HEAD):len(HEAD) + 20]).partition(b",")
    return int(digits) if comma and digits.isdigit() else None


def names_in(params: Any) -> dict[str, Any]:
    """Returns the server and the tool that a request is about."""
    return {name: params[name] for name in ("server", "tool") if name in params} if isinstance(params, dict) else {}


def in_words(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it nests too deep for Python"
    if isinstance(error, MemoryError):
        return "it needs more memory than there is"
    return str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"


def start_reader(read: Callable[[], None]) -> None:
    """Starts a thread with as much stack as Python counts on: musl gives less, and deep JSON would be a segfault."""
    usual = _thread.stack_size(READER_STACK)
    try:
        _thread.start_new_thread(read, ())
    finally:
        _thread.stack_size(usual)


def result_of(reply: Any) -> Any:
    error = reply.get("error")
    if error is None:
        return reply.get("result")
    message = error.get("message", "the host gave no reason")
    kind = {"TypeError": TypeError, "ValueError": ValueError}.get(error.get("kind"))
    if kind:
        raise kind(message)
    failure = MCPError(message, error.get("server"), error.get("tool"))
    failure._stopped = error.get("stopped", False)
    raise failure
