"""The time of event loops, which is paused while the user is asked about a call.

Their timers must not run out then: a loop that goes on looks at the time before anything else. So the host says how
long the code stood still before it lets it go on, where code can look it up at any time, and no message has to be read
first: as the limit on file locks of this process, in microseconds. Linux has not used it since 2.4.25 (getrlimit(2)).
"""
from __future__ import annotations

from asyncio.base_events import BaseEventLoop
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RLIMIT_LOCKS = 10
NOTICEABLE = 0.001  # seconds: looking takes ten times as long as reading the clock


def told() -> float:
    """Returns what the host has said, in seconds."""
    limit, _ = getrlimit(RLIMIT_LOCKS)
    return 0.0 if limit == infinity else limit / 1e6


def loop_time(loop: Any) -> float:
    """Stands in for BaseEventLoop.time."""
    global last, held
    now = monotonic()
    if now - last > NOTICEABLE:  # the code may have stood still since the last time
        held = told() - before
    last = now
    return now - held


before, held, last = 0.0, 0.0, monotonic()
try:
    from resource import RLIM_INFINITY as infinity
    from resource import getrlimit
except Exception:
    pass  # a Python that was built without, or a module of the code's that has its name
else:
    before = told()
    BaseEventLoop.time = loop_time  # type: ignore[assignment,method-assign]
