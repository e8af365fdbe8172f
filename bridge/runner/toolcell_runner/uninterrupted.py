"""What signal handlers of the code do not interrupt: messages to the host between the runs of a session, and waits."""
from __future__ import annotations

import _thread

from .tracebacks import report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable
    from typing import Any

    from .channel import Channel
    from .runtime import Runtime


class UninterruptedChannel:
    """A channel whose messages are sent whole, whatever signal comes."""

    def __init__(self, channel: Channel, runtime: Runtime) -> None:
        self._channel, self._runtime = channel, runtime

    def send(self, message: Any) -> None:
        uninterrupted(self._runtime, self._channel.send, message)


def uninterrupted(runtime: Runtime, do: Callable[..., Any], *args: Any) -> Any:
    """Returns do(*args), from a thread: in the main one a signal handler of the code may raise at any time."""
    gate = _thread.allocate_lock()
    outcome: list[tuple[Any, BaseException | None]] = []

    def work() -> None:
        try:
            outcome.append((do(*args), None))
        except BaseException as error:
            outcome.append((None, error))
        gate.release()

    gate.acquire()
    try:
        _thread.start_new_thread(work, ())
    except RuntimeError:  # the code has as many threads as there may be
        return do(*args)
    wait_gate(gate, lambda: outcome, runtime)
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


def wait_gate(gate: LockType, came: Callable[[], Any], runtime: Runtime) -> None:
    """Waits at the gate until something came. What a signal handler of the code raises meanwhile is printed."""
    while True:
        try:
            while not came():  # a handler may also raise when the gate is passed already
                gate.acquire()
            return
        except BaseException as error:
            report(error, runtime.sources)
