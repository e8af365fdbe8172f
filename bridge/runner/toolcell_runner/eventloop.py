"""The event loop of the code's top level.

Code that awaits runs in a task of it. Other code runs beside it: asyncio.run and the like are Python's own there, and
what it gives to the loop waits until the loop runs.

For that, a loop is there without running, and loops run inside others: a few functions of asyncio are replaced while a
top level has an event loop.
"""
from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import signal
import sys
import threading
from asyncio import base_events, events, runners, tasks

from .tracebacks import report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType
    from typing import Any

    from .sources import Sources

MISSING = object()


class EventLoop:
    """One loop for all runs of a session: tasks of a run continue when a later run awaits."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._pid, self._thread = os.getpid(), threading.get_ident()
        self._loop = self._chosen = asyncio.SelectorEventLoop()
        # The code may close what get_event_loop gave it; other code of the run goes on with it.
        self._loop.close = nothing  # type: ignore[method-assign]
        self._loop.set_exception_handler(self._handle_exception)
        self._failed: list[BaseException] = []
        self._context: contextvars.Context | None = None
        install(self)
        asyncio.set_event_loop(self._loop)

    def waiting_loop(self) -> Any:
        """Returns the loop for what the code starts at its top level, or None where this is not the top level."""
        if self._is_elsewhere():
            return None
        return self._loop if self._chosen.is_closed() else self._chosen

    def choose(self, loop: Any) -> Any:
        """Notes the loop that this thread is to have as its current one. Returns the loop to set in its place."""
        if self._is_elsewhere():
            return loop
        if loop is None:
            loop = self._loop
        if hasattr(loop, "is_closed"):  # else asyncio refuses it
            self._chosen = loop
        return loop

    def _is_elsewhere(self) -> bool:
        return threading.get_ident() != self._thread or os.getpid() != self._pid

    def run(self, coroutine: Any) -> Any:
        """Runs a coroutine in a task, and returns its value. Errors have no frames of asyncio."""
        value, error = None, None

        async def main() -> None:
            nonlocal value, error
            try:
                value = await coroutine
            except BaseException as raised:
                error = raised
            self._context = contextvars.copy_context()

        task = self._loop.create_task(main())
        interrupted = self._run_task(task, self._loop)
        if self._context is not None:  # what the code has set stays, as if it had not run in a task
            for variable, is_now in self._context.items():
                if variable.get(MISSING) is not is_now:
                    variable.set(is_now)
            self._context = None
        if interrupted and isinstance(error, asyncio.CancelledError):
            error = KeyboardInterrupt().with_traceback(error.__traceback__)
        if error is not None:
            try:
                raise error
            finally:
                error = None  # its traceback has this frame
        return value

    def _run_task(self, task: Any, loop: Any) -> bool:
        """Runs a loop until a task of it has ended. Returns whether an interrupt has cancelled it."""
        interrupts = 0

        def interrupt(signum: int, frame: Any) -> None:
            nonlocal interrupts
            interrupts += 1
            # Code that is at work is interrupted as any other; where all tasks wait there is only this one to tell.
            elsewhere = asyncio._get_running_loop() is not loop
            if interrupts > 1 or elsewhere or asyncio.current_task(loop):
                raise KeyboardInterrupt
            task.cancel()
            loop.call_soon_threadsafe(nothing)

        handles = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if handles:
            signal.signal(signal.SIGINT, interrupt)
        try:
            self._run_until(loop, task)
        except BaseException:
            # SystemExit or the like from another task: what the code was doing must not go on in the next run.
            task.cancel()
            self._run_until(loop, task)
            raise
        finally:
            if handles and signal.getsignal(signal.SIGINT) is interrupt:
                signal.signal(signal.SIGINT, signal.default_int_handler)
        return interrupts > 0

    def _run_until(self, loop: Any, task: Any) -> None:
        def stop(_: Any) -> None:
            loop.stop()

        task.add_done_callback(stop)
        while not task.done():  # the code may stop the loop too
            loop.run_forever()

    def finish(self, values: Iterable[Any]) -> list[BaseException]:
        """Waits for the tasks that are left. Returns the errors of tasks that no code has taken, among them those of
        the given values; they are reported.
        """
        if os.getpid() != self._pid:
            return []  # the parent waits
        for loop in {self._loop, self._chosen}:
            if not loop.is_closed() and not loop.is_running():
                self._run_out(loop)
        for value in values:
            if isinstance(value, asyncio.Future) and value.done() and getattr(value, "_log_traceback", False):
                self._take_error(value)
        return self.failed()

    def _run_out(self, loop: Any) -> None:
        """Runs a loop until it has no tasks, and what they have called for at their end is done."""
        while True:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.remove_done_callback(self._take_error)
                task.add_done_callback(self._take_error)
            if left:
                self._run_task(left.pop(), loop)
                continue
            loop.call_soon(loop.stop)
            loop.run_forever()
            if not asyncio.all_tasks(loop):
                return

    def failed(self) -> list[BaseException]:
        """Returns the errors of tasks that no code can take any more, each once. They are reported."""
        failed, self._failed = self._failed, []
        return failed

    def _take_error(self, task: Any) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._fail(error)

    def _handle_exception(self, loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None and "never retrieved" in context.get("message", ""):
            self._fail(error)
        else:
            loop.default_exception_handler(context)

    def _fail(self, error: BaseException) -> None:
        if getattr(error, "_stopped", False):
            return  # a task of a run that was stopped: the next one did nothing wrong
        if not isinstance(error, (SystemExit, KeyboardInterrupt)) and all(error is not each for each in self._failed):
            report(error, self._sources)
            self._failed.append(error)

    def close(self) -> None:
        """Cancels the tasks that are left, as asyncio.run does."""
        uninstall()
        if os.getpid() != self._pid:
            return  # the parent uses what is shared with it
        loop: Any = self._loop
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            self._quietly(lambda: loop.run_until_complete(asyncio.gather(*left, return_exceptions=True)))
        if loop._asyncgens:
            self._quietly(lambda: loop.run_until_complete(loop.shutdown_asyncgens()))
        if loop._default_executor:
            self._quietly(lambda: loop.run_until_complete(loop.shutdown_default_executor()))
        asyncio.set_event_loop(None)
        del loop.close
        self._quietly(loop.close)

    def _quietly(self, do: Callable[[], Any]) -> None:
        """Does it though the run has ended; an error is printed."""
        try:
            do()
        except BaseException as error:
            report(error, self._sources)


async def all_of(values: Any) -> Any:
    """Awaits a list or tuple of coroutines, all at the same time."""
    return type(values)(await asyncio.gather(*values))


# What of asyncio is replaced

current: EventLoop | None = None
replaced: list[tuple[Any, str, Any, Any]] = []  # owner, name, what was there, what is there now


def install(top_level: EventLoop) -> None:
    """Makes asyncio use the loop of a top level where none runs."""
    global current
    current = top_level
    if not replaced:
        for owners, name, new in replacements():
            for owner in owners:
                replaced.append((owner, name, getattr(owner, name), new))
                setattr(owner, name, new)


def uninstall() -> None:
    global current
    current = None
    while replaced:
        owner, name, old, new = replaced.pop()
        if getattr(owner, name, None) is new:  # and not one of the code's
            setattr(owner, name, old)


def replacements() -> Iterator[tuple[tuple[Any, ...], str, Any]]:
    yield (asyncio, events), "get_running_loop", get_running_loop
    yield (asyncio, events), "set_event_loop", set_event_loop_of(events.set_event_loop)
    for name in ("all_tasks", "current_task"):
        yield (asyncio, tasks), name, of_running_loop(getattr(tasks, name))
    yield (asyncio, runners), "run", suspending(runners.run)
    if hasattr(runners, "Runner"):  # from 3.11 on
        yield (runners.Runner,), "run", suspending(runners.Runner.run)
    loop = base_events.BaseEventLoop
    yield (loop,), "run_forever", reentrant(suspending(loop.run_forever), run_forever_again)
    yield (loop,), "run_until_complete", reentrant(suspending(loop.run_until_complete), run_until_complete_again)


# A loop that is there without running


def get_running_loop() -> Any:
    """Returns the running event loop. At the top level of the code, where none runs, that of the next one to run."""
    loop = loop_for(sys._getframe(1))
    if loop is None:
        raise RuntimeError("no running event loop")
    return loop


def loop_for(caller: FrameType) -> Any:
    """Returns the loop as a caller is to see it. Libraries ask whether one runs, and then start none."""
    loop = events._get_running_loop()
    if loop is None and current is not None and "-packages/" not in caller.f_code.co_filename:
        loop = current.waiting_loop()
    return loop


def set_event_loop_of(original: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(original)
    def set_event_loop(loop: Any) -> None:
        # asyncio.run takes the current loop away when it ends.
        original(current.choose(loop) if current is not None else loop)

    return set_event_loop


def of_running_loop(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(original)
    def function(loop: Any = None) -> Any:
        return original(loop_for(sys._getframe(1)) if loop is None else loop)

    return function


# Loops that run inside others


def suspending(original: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that runs a loop, also inside of another one, which is paused meanwhile."""
    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        outer = events._get_running_loop()
        if outer is None:
            return original(*args, **kwargs)
        task = leave_task(outer)
        events._set_running_loop(None)
        try:
            return original(*args, **kwargs)
        finally:
            events._set_running_loop(outer)
            enter_task(outer, task)

    return run


def reentrant(original: Callable[..., Any], again: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method of a loop that may also be called while that loop runs."""
    @functools.wraps(original)
    def run(self: Any, *args: Any) -> Any:
        return again(self, *args) if events._get_running_loop() is self else original(self, *args)

    return run


def run_until_complete_again(loop: Any, future: Any) -> Any:
    future = tasks.ensure_future(future, loop=loop)
    stopped = go_on(loop, future.done)
    loop._stopping = loop._stopping or stopped  # that is for the one around this one
    return future.result()


def run_forever_again(loop: Any) -> None:
    go_on(loop, lambda: False, stops=True)


def go_on(loop: Any, done: Callable[[], bool], stops: bool = False) -> bool:
    """Goes on with a running loop until done, or until it is stopped if that stops it. Reports whether it was."""
    task = leave_task(loop)
    ready, stopped = len(loop._ready), False
    try:
        while not done() and not (stops and stopped):
            loop._run_once()
            if loop._stopping:
                loop._stopping, stopped = False, True
    finally:
        enter_task(loop, task)
        # The _run_once around this one has counted what was ready, and takes as many.
        while len(loop._ready) < ready:
            loop.call_soon(nothing)
    return stopped


def leave_task(loop: Any) -> Any:
    task = tasks.current_task(loop)
    if task is not None:
        tasks._leave_task(loop, task)
    return task


def enter_task(loop: Any, task: Any) -> None:
    if task is not None:
        tasks._enter_task(loop, task)


def nothing() -> None:
    pass
