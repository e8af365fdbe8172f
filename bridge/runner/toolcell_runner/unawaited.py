"""Coroutines that the code has made and never awaited."""
from __future__ import annotations

import builtins
import sys

from .sources import is_runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType
    from typing import Any

    from .sources import Sources

BUILTINS = vars(builtins)
CO_NEWLOCALS, CO_COROUTINE, CO_ASYNC_GENERATOR = 0x2, 0x80, 0x200
MAX_MEMBERS = 1000  # of a list or the like that are looked at
CAUSE = "unawaited "  # before the name of a call, in the cause of an error
CAUSE_IN_DEF = "unawaited in def "  # the same where the code wants no coroutine, and cannot await one
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
        self._calls: list[tuple[Call, Any]] = []  # with a traceback of the line that dropped it
        self.over = False
        self._sources = sources
        sources.when_loaded("warnings", self._hook)

    def _hook(self, warnings: Any) -> None:
        warnings._warn_unawaited_coroutine = self._dropped  # which the interpreter calls (warnings.c)

    def _dropped(self, coroutine: Any) -> None:
        frame: FrameType | None = sys._getframe().f_back
        while frame and is_runner(frame.f_code.co_filename):
            frame = frame.f_back
        if coroutine.__name__ == EXPLAINED:
            return  # in a session, the next run overwrites it with what it should have been
        if is_call(coroutine) and not self.over:
            self._calls.append((Call(coroutine), entry_of(frame)))
        else:
            warn(coroutine, frame)

    def error(self) -> RuntimeError | None:
        """Returns the error about the calls that were dropped since the last one."""
        calls, self._calls = self._calls, []
        if not calls:
            return None
        call, entry = calls[0]
        others = len(calls) - 1
        more = f" ({others} more call{'s were' if others > 1 else ' was'} not awaited either)" if others else ""
        name = call.real_name()
        right = f"write await {name}(…)"
        if name != call.name:
            of_code = entry and entry.tb_frame.f_code.co_filename in self._sources.texts
            right = "tools have no _sync form: " + (
                f"write asyncio.run({name}(…))" if of_code and in_def(entry.tb_frame) else right)
        error = RuntimeError(f"{call.name}() was never awaited, so it did not run: {right}{more}")
        return error.with_traceback(entry)

    def cause_of(self, error: BaseException, sources: Sources) -> str | None:
        """Returns the cause of an error that treats a call as its value, for a hint; or None.

        The calls that were dropped before the error are not reported any more: the code failed before it could await
        them.
        """
        dropped, self._calls = [call for call, _ in self._calls], []
        try:
            if not isinstance(error, (AttributeError, TypeError)) or "coroutine" not in str(error):
                return None
            found = coroutine_of(error, sources)
            if found:
                if not is_call(found):
                    return None
                found.__name__ = EXPLAINED
                return named_cause(Call(found), error, sources)
        except Exception:
            pass  # it looks into objects of the code's, which may do anything
        try:
            return named_cause(dropped[0], error, sources) if dropped else None
        except Exception:
            return None  # the source of the code cannot be had

    def end(self, values: Iterable[Any]) -> None:
        """Notes what the code holds at its end, when nothing can await it any more. What is dropped later can only
        be warned of.
        """
        for value in values:
            if type(value) is COROUTINE and has_not_begun(value):
                self._dropped(value)
                value.close()
        self.over = True


class Call:
    """What is known of a call that was not awaited."""

    def __init__(self, coroutine: Any) -> None:
        self.name: str = coroutine.__qualname__.replace("Runtime.", "runtime.", 1)  # as the code writes it
        frame = coroutine.cr_frame if coroutine.cr_code.co_name == "call" else None
        arguments = frame.f_locals if frame else {}  # those of Calls.call
        self._runtime: Any
        self._runtime, self._server, self._tool = (arguments.get(key) for key in ("self", "name", "tool"))

    def real_name(self) -> str:
        """Returns the name that the call should have: a tool has no _sync form, unless its server names it so."""
        runtime, server, tool = self._runtime, self._server, self._tool
        if not tool or not tool.endswith("_sync"):
            return self.name
        from .suggestions import fold
        try:  # as the host does, which takes any case, and - for _
            known = {fold(name): each["alias"] for each in runtime.list_tools_sync(server)
                     for name in (each["name"], each["alias"])}
        except Exception:
            return self.name
        meant = known.get(fold(tool[:-len("_sync")]))
        return runtime.name_in_code(server, meant) if meant and fold(tool) not in known else self.name


def in_def(frame: FrameType | None) -> bool:
    """Reports whether a frame is that of a function in which await is a syntax error."""
    if frame is None:
        return False
    code = frame.f_code
    if code.co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR) or not code.co_flags & CO_NEWLOCALS:
        return False
    return code.co_name[:1] != "<" or code.co_name == "<lambda>"


def named_cause(call: Call, error: BaseException, sources: Sources) -> str:
    """Returns the cause with the name that the call should have. Who writes _sync in a plain function cannot await."""
    from .suggestions import failing_line
    name = call.real_name()
    sync = name != call.name and in_def(failing_line(error, sources)[0])
    return (CAUSE_IN_DEF if sync else CAUSE) + name[:MAX_NAME]


def is_call(value: Any) -> bool:
    return is_coroutine(value) and is_runner(value.cr_code.co_filename)


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
