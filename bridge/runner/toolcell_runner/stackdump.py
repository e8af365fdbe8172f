"""Sends the code's stack at a timeout, from a signal handler."""
from __future__ import annotations

import sys

from .sources import is_runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Any

    from .channel import Channel
    from .runtime import Runtime


MAX_FRAMES = 50  # of one stack
MAX_TASKS = 4


def send_stack(runtime: Runtime, channel: Channel, frame: FrameType) -> None:
    """Sends the stack of the main thread; while it waits for tasks, theirs."""
    texts = runtime.sources.texts
    places = without_runner(stack_of(frame, texts), texts)
    if not any(place["file"] in texts for place in places):
        places = stacks_of_tasks(texts) or places
    channel.send({"type": "where", "frames": places})


def stack_of(frame: FrameType | None, texts: dict[str, str]) -> list[dict[str, Any]]:
    """Returns the frames that lead to this one, outermost first: from the runner on, which has called the code."""
    places = []
    while frame:
        places.append(place_of(frame, texts))
        frame = frame.f_back
    places.reverse()
    first = next((number for number, place in enumerate(places) if is_runner(place["file"])), 0)
    return places[first:]


def without_runner(places: list[dict[str, Any]], texts: dict[str, str]) -> list[dict[str, Any]]:
    """Returns the frames without the runner's, and without those between it and the code; no more than are wanted."""
    places = [place for place in places if not is_runner(place["file"])]
    first = next((number for number, place in enumerate(places) if place["file"] in texts), 0)
    places = places[first:]
    return places if len(places) <= MAX_FRAMES else places[:MAX_FRAMES // 2] + places[-MAX_FRAMES // 2:]


def stacks_of_tasks(texts: dict[str, str]) -> list[dict[str, Any]]:
    """Returns where the tasks of the running loop wait, that of the code itself first."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return []
    waiting = []
    for task in asyncio.all_tasks():
        places = [place_of(frame, texts) for frame in awaited(task.get_coro())]
        is_main = any(is_runner(place["file"]) for place in places)
        places = without_runner(places, texts)
        if places:
            waiting.append((not is_main, task.get_name(), places))
    waiting.sort(key=lambda each: each[:2])
    del waiting[MAX_TASKS:]
    if len(waiting) > 1:
        for _, name, places in waiting:
            places[0]["task"] = name[:200]
    return [place for _, _, places in waiting for place in places]


def awaited(coroutine: Any) -> Iterator[FrameType]:
    """Yields the frames of a coroutine that waits, and of what it waits for."""
    for _ in range(MAX_FRAMES):
        kind = next((kind for kind in ("cr", "gi", "ag") if hasattr(coroutine, kind + "_frame")), None)
        if kind is None:
            return
        frame = getattr(coroutine, kind + "_frame")
        if frame is not None:
            yield frame
        coroutine = getattr(coroutine, "gi_yieldfrom" if kind == "gi" else kind + "_await")


def place_of(frame: FrameType, texts: dict[str, str]) -> dict[str, Any]:
    file, line = frame.f_code.co_filename, frame.f_lineno or 0
    place = {"file": file[-500:], "line": line, "func": frame.f_code.co_name[:200]}
    lines = texts.get(file, "").split("\n")
    if 0 < line <= len(lines):
        place["text"] = lines[line - 1].strip()[:200]
    return place
