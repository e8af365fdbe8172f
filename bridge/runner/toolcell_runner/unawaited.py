"""Coroutines that the code has made and never awaited."""
from __future__ import annotations

import builtins
import sys

from .tracebacks import is_runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType
    from typing import Any

    from .sources import Sources

BUILTINS = vars(builtins)
MAX_MEMBERS = 1000  # of a list or the like that are looked at
CAUSE = "unawaited "  # before the name of a call, in the cause of an error
MAX_NAME = 200  # characters
EXPLAINED = "explained"  # the __name__ of a call that a hint was given about; no tool is shown by it


async def nothing() -> None:
    pass


coroutine = nothing()
COROUTINE = type(coroutine)
coroutine.close()


class Unawaited:
    """Collects the calls of servers that were not awaited. For other coroutines there is Python's warning, which does
    not name a line of ours.
    """

    def __init__(self, sources: Sources) -> None:
        self._calls: list[tuple[str, Any]] = []  # with a traceback of the line that dropped it
        self.over = False
        sources.when_loaded("warnings", self._hook)

    def _hook(self, warnings: Any) -> None:
        warnings._warn_unawaited_coroutine = self._dropped  # which the interpreter calls (warnings.c)

    def _dropped(self, coroutine: Any) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame and is_runner(frame.f_code.co_filename):
            frame = frame.f_back
        if coroutine.__name__ == EXPLAINED:
            return  # in a session, the next run overwrites it with what it should have been
        if is_call(coroutine) and not self.over:
            self._calls.append((name_of(coroutine), entry_of(frame)))
        else:
            warn(coroutine, frame)

    def error(self) -> RuntimeError | None:
        """Returns the error about the calls that were dropped since the last one."""
        calls, self._calls = self._calls, []
        if not calls:
            return None
        name, entry = calls[0]
        others = len(calls) - 1
        more = f" ({others} more call{'s were' if others > 1 else ' was'} not awaited either)" if others else ""
        error = RuntimeError(f"{name}() was never awaited, so it did not run: write await {name}(…){more}")
        return error.with_traceback(entry)

    def cause_of(self, error: BaseException, sources: Sources) -> str | None:
        """Returns the cause of an error that treats a call as its value, for a hint; or None.

        The calls that were dropped before the error are not reported any more: the code failed before it could await
        them.
        """
        dropped, self._calls = [name for name, _ in self._calls], []
        try:
            if not isinstance(error, (AttributeError, TypeError)) or "coroutine" not in str(error):
                return None
            call = coroutine_of(error, sources)
            if call:
                if not is_call(call):
                    return None
                call.__name__ = EXPLAINED
                return CAUSE + name_of(call)[:MAX_NAME]
        except Exception:
            pass  # it looks into objects of the code's, which may do anything
        return CAUSE + dropped[0][:MAX_NAME] if dropped else None

    def end(self, values: Iterable[Any]) -> None:
        """Notes what the code holds at its end, when nothing can await it any more. What is dropped later can only
        be warned of.
        """
        for value in values:
            if type(value) is COROUTINE and has_not_begun(value):
                self._dropped(value)
                value.close()
        self.over = True


def is_call(value: Any) -> bool:
    return is_coroutine(value) and is_runner(value.cr_code.co_filename)


def name_of(call: Any) -> str:
    """Returns the name of what was called, as the code writes it."""
    name: str = call.__qualname__
    return name.replace("Runtime.", "runtime.", 1)


def warn(coroutine: Any, frame: FrameType | None) -> None:
    import warnings
    text = f"coroutine '{coroutine.__qualname__}' was never awaited"
    if frame is None:
        code = coroutine.cr_code
        file, line = ("sys", 1) if is_runner(code.co_filename) else (code.co_filename, code.co_firstlineno)
        warnings.warn_explicit(text, RuntimeWarning, file, line)
    else:
        warnings.warn_explicit(text, RuntimeWarning, frame.f_code.co_filename, frame.f_lineno or 1,
                               registry=frame.f_globals.setdefault("__warningregistry__", {}))


def entry_of(frame: FrameType | None) -> Any:
    """Returns a traceback of one frame, or None."""
    if frame is None:
        return None
    try:
        raise ValueError
    except ValueError as error:
        return type(error.__traceback__)(None, frame, -1, frame.f_lineno or 1)  # type: ignore[misc]


def is_coroutine(value: Any) -> bool:
    return type(value) is COROUTINE


def has_not_begun(coroutine: Any) -> bool:
    frame = coroutine.cr_frame
    if frame is None or coroutine.cr_running:
        return False
    suspended = getattr(coroutine, "cr_suspended", None)  # from 3.11 on; before, the instruction tells
    return bool(frame.f_lasti == -1 if suspended is None else not suspended)


def held(namespace: dict[str, Any], *more: Any) -> list[Any]:
    """Returns the values of a namespace and more, and those in lists, tuples, sets and mappings among them."""
    values = [*namespace.values(), *more]
    for value in values[:]:
        kind = type(value)
        if kind is list or kind is tuple or kind is set:
            values += [*value][:MAX_MEMBERS]
        elif kind is dict and value is not BUILTINS:
            values += [*value.values()][:MAX_MEMBERS]
    return values


def coroutine_of(error: BaseException, sources: Sources) -> Any:
    """Returns the coroutine that an error is about, if the error has it or the line that failed names it; or None."""
    import ast

    from .suggestions import failing_line, resolved
    frame, nodes = failing_line(error, sources)
    named = [value for node in nodes if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
             for value in resolved(node, frame)]
    for value in (getattr(error, "obj", None), *named, *held({}, *named)):
        if type(value) is COROUTINE and has_not_begun(value):
            return value
    return None
