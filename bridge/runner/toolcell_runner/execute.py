"""Runs the code, and shows the value of its last expression."""
from __future__ import annotations

import _ast
import _thread
import sys

from .errors import MCPError
from .sources import AST_ONLY
from .tracebacks import cause_of, described, hide_runner, limit_hit, report
from .unawaited import Unawaited, held, is_coroutine
from .values import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from .eventloop import EventLoop
    from .runtime import Runtime

CODE_FILE = "<run_python>"
RESULT = "<result>"  # no identifier, so it cannot clash with a name of the code
TOP_LEVEL_AWAIT, CO_COROUTINE = 0x2000, 0x80


class Executor:
    """Runs pieces of code in a namespace, one after the other."""

    def __init__(self, runtime: Runtime, namespace: dict[str, Any], session: bool = False) -> None:
        self.file = CODE_FILE  # where tracebacks say that the code is
        self.cause: str | None = None  # of the error of the last run, as cause_of gives it
        self._runtime, self._namespace, self._session = runtime, namespace, session
        self._unawaited = Unawaited(runtime.sources)
        self._thread = _thread.get_ident()
        self._loop: EventLoop | None = None  # once the code has use for it

    def run(self, source: str, begins: Callable[[], None] | None = None) -> tuple[
            int, str | None, str | None, str | None]:
        """Returns exit code, repr of the last expression, error, limit hit: all but the first may be None.

        An interrupt of this run comes after begins() was called.
        """
        self.cause = None
        try:
            if begins:
                begins()
            tree = parse(source, self.file)
            self._runtime.tools.bind_free_names(tree, source, self._namespace)
            value = self._execute(compile(tree, self.file, "exec", TOP_LEVEL_AWAIT, dont_inherit=True))
            value, failed = self._finish(value)
            if failed:
                self.cause = cause_of(failed[0], self._runtime.sources)
                return 1, None, described(failed[0], ""), limit_hit(failed[0], self._runtime.sources)
            return 0, None if value is None or drawn(value, self._runtime) else shown(value), None, None
        except SystemExit as stop:
            hide_runner(stop)  # asyncio prints it, if it came from a task
            return exit_code(stop), None, None, None
        except BaseException as error:
            suggestion = report(error, self._runtime.sources)
            self.cause = (self._unawaited.cause_of(error, self._runtime.sources)
                          or cause_of(error, self._runtime.sources))
            return 1, None, described(error, suggestion), limit_hit(error, self._runtime.sources)
        finally:
            if not self._continues():
                self._close()

    def _continues(self) -> bool:
        return self._session and not self._runtime.ending

    def _execute(self, code: CodeType) -> Any:
        """Runs the code object, in an event loop if it awaits. Returns the value of its last expression."""
        value = None
        if code.co_flags & CO_COROUTINE:
            value = self._event_loop().run(eval(code, self._namespace))
        else:
            if self._runtime.sources.name_asyncio:
                self._runtime.sources.when_loaded("asyncio", self._offer_loop)
            exec(code, self._namespace)
        value = self._namespace.pop(RESULT, value)
        if is_coroutine(value):
            return self._event_loop().run(value)
        if type(value) in (list, tuple) and value and all(map(is_coroutine, value)):
            from .eventloop import all_of
            return self._event_loop().run(all_of(value))
        return value

    def _offer_loop(self, asyncio: Any) -> None:
        """Gives the code that does not await an event loop, if it runs in this thread."""
        if _thread.get_ident() == self._thread:
            try:
                self._event_loop()
            except OSError:
                pass  # an earlier run of the session has left too many files open

    def _event_loop(self) -> EventLoop:
        if self._loop is None:
            from .eventloop import EventLoop
            self._loop = EventLoop(self._runtime.sources)
        return self._loop

    def _finish(self, value: Any) -> tuple[Any, list[BaseException]]:
        """Waits for the tasks that are left; in a session they live on. Returns the value, which may be one of them,
        and the errors of what the code has left. They are reported.
        """
        failed: list[BaseException] = []
        if self._continues():
            failed += self._loop.failed() if self._loop else ()
        else:
            if self._loop:
                failed += self._loop.finish(held(self._namespace, value))
                value = result_of(value)
            self._unawaited.end(held(self._namespace, value))
        never_awaited = self._unawaited.error()
        if never_awaited:
            report(never_awaited, self._runtime.sources)
            failed.append(never_awaited)
        return value, failed

    def _close(self) -> None:
        if not self._unawaited.over:
            self._unawaited.end(held(self._namespace))
        self._runtime.sources.hooks.pop("asyncio", None)
        if self._loop:
            self._loop.close()
            self._loop = None


def parse(source: str, file: str) -> _ast.Module:
    """Returns the syntax tree of the code; if an expression stands last, its value goes to the name RESULT."""
    tree: _ast.Module = compile(source, file, "exec", AST_ONLY | TOP_LEVEL_AWAIT, dont_inherit=True)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, _ast.Expr):
        # An assignment, and not a second piece of code: __future__ imports and line numbers stay as they are.
        place: Any = {"lineno": last.lineno, "col_offset": last.col_offset}
        target = _ast.Name(RESULT, _ast.Store(), **place)
        tree.body[-1] = _ast.Assign([target], last.value, **place)
    return tree


def result_of(value: Any) -> Any:
    """Returns what a task has returned, and any other value as it is."""
    import asyncio
    if not isinstance(value, asyncio.Future) or not value.done() or value.cancelled():
        return value
    return None if value.exception() else value.result()


def drawn(value: Any, runtime: Runtime) -> bool:
    """Shows a value that a notebook would show as a picture. Returns False for others; pictures in them are shown."""
    kind = type(value)
    draws_itself = kind is not type and any(hasattr(kind, name) for name in (
        "savefig", "_repr_png_", "_repr_jpeg_", "_repr_svg_", "_repr_mimebundle_", "_repr_markdown_"))
    if not draws_itself and not runtime.has_content:
        return False
    try:
        from .display import draws, show_parts
        if draws_itself and draws(runtime, value):
            return True
        show_parts(runtime, value)
        return False
    except (MCPError, OSError):
        return False  # the host is gone, this is another process, or the code has all files open that there may be


def exit_code(stop: SystemExit) -> int:
    """Returns the exit status of a SystemExit, as Python has it: a text is printed and means 1."""
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    try:
        print(stop.code, file=sys.stderr)
    except Exception:
        pass
    return 1
