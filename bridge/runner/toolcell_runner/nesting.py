"""What asyncio needs to be used at the top level of the code: a loop that is there without running, and loops that run
inside others.

It replaces a few functions of asyncio while a top level has an event loop, and none of them for good.
"""
from __future__ import annotations

import asyncio
import functools
import sys
from asyncio import base_events, events, runners, tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any

    from .eventloop import EventLoop

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
    """Returns a function that runs a loop, also inside of another one, which stands still meanwhile."""
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
