"""Describes and prints exceptions."""
from __future__ import annotations

import _thread
import os
import sys

from .sources import innermost, is_runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .sources import Sources

MAX_ERROR = 2000
WRITABLE = "/workspace", "/tmp", "/dev/shm"  # each with a limit of its own


def describe(error: BaseException) -> str:
    """Returns an exception as "Type: message", of bounded length."""
    try:
        text = str(error)
    except Exception:
        text = "<exception str() failed>"
    return (type(error).__name__ + (": " + text if text else ""))[:MAX_ERROR]


def described(error: BaseException, suggestion: str) -> str:
    """Returns an exception with what report has added to its text."""
    text = describe(error)
    return text if suggestion in text else text + suggestion


def cause_of(error: BaseException, sources: Sources) -> str | None:
    """Returns what the host should know of an error beyond its text, for a hint."""
    try:
        from .mistakenvalues import taken_for_json, taken_for_result
        return taken_for_json(error, sources) or ("tool value" if taken_for_result(error, sources) else None)
    except BaseException:
        return None  # it looks into objects of the code's, which may do anything


def limit_hit(error: BaseException, sources: Sources) -> str | None:
    """Returns the name of the limit that an exception comes from, or None."""
    if not isinstance(error, (MemoryError, RuntimeError, OSError)) or raised_by_code(error, sources):
        return None
    if isinstance(error, MemoryError):
        return "memory"
    if type(error) is RuntimeError and "start new thread" in str(error):
        return "pids"
    if not isinstance(error, OSError):
        return None
    import errno
    # A socket may have to be tried again too: only what forks has hit a limit.
    if error.errno == errno.EAGAIN and any("fork" in name or "spawn" in name for name in names_at(error)):
        return "pids"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return full_folder(error.filename) or "space"
    return "files" if error.errno in (errno.EMFILE, errno.ENFILE) else None


def raised_by_code(error: BaseException, sources: Sources) -> bool:
    """Reports whether a raise statement of the code has made an exception, which may say anything."""
    entry = innermost(error)
    if not entry or entry.tb_frame.f_code.co_filename not in sources.texts:
        return False
    try:
        import opcode
    except (MemoryError, OSError):  # so there is a limit
        return False
    return bool(entry.tb_frame.f_code.co_code[entry.tb_lasti] == opcode.opmap["RAISE_VARARGS"])


def full_folder(file: Any) -> str | None:
    """Returns which folder that code can write to is full, or None if that cannot be known, since it has room again."""
    try:
        at = os.path.abspath(file) if isinstance(file, str) else ""
        for folder in WRITABLE:
            if at.startswith(folder + "/") or not at and is_full(os.statvfs(folder)):
                return folder
    except OSError:  # the code may have removed its directory
        pass
    return None


def is_full(system: Any) -> bool:
    return bool(system.f_bavail == 0 or (system.f_files > 0 and system.f_favail == 0))


def names_at(error: BaseException) -> tuple[str, ...]:
    """Returns the global names and attributes that the code uses in which an exception arose."""
    entry = innermost(error)
    return entry.tb_frame.f_code.co_names if entry else ()


def report(error: BaseException, sources: Sources) -> str:
    """Prints an uncaught exception, without our frames. Returns what may have been meant. Never raises."""
    try:
        hide_runner(error)
        if isinstance(error, SyntaxError):
            add_source_line(error, sources)
        if sys.excepthook is not sys.__excepthook__:
            sys.excepthook(type(error), error, error.__traceback__)
            return ""
        from .errorreport import print_report
        return print_report(error, sources)
    except BaseException:
        try:
            os.write(2, (describe(error) + "\n").encode("utf-8", "backslashreplace"))
        except OSError:
            pass
        return ""


def hide_runner(error: BaseException) -> None:
    """Removes our frames from the tracebacks of an exception and of its causes and contexts."""
    seen: set[int] = set()
    todo: list[Any] = [error]
    while todo:
        error = todo.pop()
        if not isinstance(error, BaseException) or id(error) in seen:
            continue
        seen.add(id(error))
        error.__traceback__ = without_runner(error.__traceback__)
        todo += [error.__cause__, error.__context__]
        group = getattr(error, "exceptions", ())
        todo += group if isinstance(group, (list, tuple)) else ()


def without_runner(entry: Any) -> Any:
    while entry and is_ours(entry):
        entry = entry.tb_next
    at = entry
    while at:
        while at.tb_next and is_ours(at.tb_next):
            at.tb_next = at.tb_next.tb_next
        at = at.tb_next
    return entry


def hide_from(traceback: Any) -> None:
    """Has the module traceback leave out our frames, also where the code itself prints a stack."""
    for name in ("walk_tb", "walk_stack", "_walk_tb_with_full_positions"):  # the last from 3.11 on
        walk = getattr(traceback, name, None)
        if walk and not is_runner(walk.__code__.co_filename):
            setattr(traceback, name, leaving_out_runner(walk))


def leaving_out_runner(walk: Callable[[Any], Iterable[tuple[Any, Any]]]) -> Callable[[Any], Iterable[tuple[Any, Any]]]:
    def walk_code(start: Any) -> Iterable[tuple[Any, Any]]:
        frames = walk(start)
        # Without a start they look for it among their callers, when they are asked for the first frame.
        return frames if start is None else (each for each in frames if not is_runner(each[0].f_code.co_filename))

    return walk_code


def report_in_threads(threading: Any, sources: Sources) -> None:
    """Has errors that end a thread reported as those of the code. The interpreter shows frames of ours."""
    def excepthook(args: Any) -> None:
        if args.exc_type is not SystemExit and sys.stderr is not None:
            name = args.thread.name if args.thread else _thread.get_ident()
            print(f"Exception in thread {name}:", file=sys.stderr)
            report(args.exc_value, sources)

    threading.excepthook = excepthook


def is_ours(entry: Any) -> bool:
    return is_runner(entry.tb_frame.f_code.co_filename)


def add_source_line(error: SyntaxError, sources: Sources) -> None:
    # The compiler looks for the line in a file, and there is none.
    lines = sources.texts.get(error.filename or "", "").split("\n")
    if error.text is None and error.lineno and error.lineno <= len(lines):
        error.text = lines[error.lineno - 1] + "\n"
