"""Reports an uncaught error: the frames of the code, the line that failed, and what may have been meant."""
from __future__ import annotations

import os
import sys

from .suggestions import is_about_runtime, suggestion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from .sources import Sources


MAX_MESSAGE = 4_000  # characters of an error's own text
MAX_CHAINED = 4  # errors that led to another


def print_report(error: BaseException, sources: Sources) -> str:
    """Prints an error. Returns the suggestion that was added to its text."""
    import linecache
    import traceback
    sources.fill(linecache)  # again: the code may have cleared it
    cut_chain(error)
    try:
        hint = suggestion(error, sources)
    except Exception:  # it looks into objects of the code's, which may do anything
        hint = ""
    summary = traceback.TracebackException(type(error), error, error.__traceback__)
    shorten(summary, sources, shortened_stack(traceback))
    lines = [bounded_message(line) for line in summary.format()]
    offered = offer_in(lines[-1])
    if offered and is_about_runtime(error):
        lines[-1], offered = lines[-1].replace(offered, ""), ""
    if hint and not offered:
        lines[-1] = lines[-1].rstrip("\n") + hint + "\n"
    sys.stderr.write("".join(lines))
    return offered or hint


def cut_chain(error: BaseException) -> None:
    """Drops the oldest errors of a chain: a loop of retries can chain hundreds of them."""
    for _ in range(MAX_CHAINED):
        following = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if following is None:
            return
        error = following
    error.__cause__ = error.__context__ = None


def bounded_message(text: str) -> str:
    if len(text) <= MAX_MESSAGE:
        return text
    half = MAX_MESSAGE // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def offer_in(line: str) -> str:
    """Returns what Python itself, from 3.12 on, suggests."""
    for start in (". Did you mean", ". Did you forget", "; did you mean", "? Did you mean"):
        if start in line:
            return line[line.index(start):].rstrip("\n")
    return ""


def shorten(summary: Any, sources: Sources, kind: Callable[[Any, Sources], Any]) -> None:
    """Takes the frames of libraries out of the stacks of an error, and of all that hang on it. An error that no frame
    of the code's own led to keeps them.
    """
    seen: set[int] = set()
    todo = [summary]
    while todo:
        summary = todo.pop()
        if summary is None or id(summary) in seen:
            continue
        if seen or any(library_of(frame.filename, sources) is None for frame in summary.stack):
            summary.stack = kind(summary.stack, sources)
        seen.add(id(summary))
        todo += [summary.__cause__, summary.__context__, *(getattr(summary, "exceptions", None) or ())]


def shortened_stack(traceback: Any) -> Any:
    """Returns the type of a stack that says of libraries only that the error went through them."""

    class Shortened(traceback.StackSummary):  # type: ignore[misc] # whose module is imported late
        def __init__(self, frames: Any, sources: Sources) -> None:
            super().__init__(frames)
            self._sources = sources

        def format(self, **options: Any) -> Iterator[str]:
            for libraries, frames in stretches(self, self._sources):
                if libraries is None:
                    yield from traceback.StackSummary.from_list(frames).format(**options)
                else:
                    yield f"  [{len(frames)} frame{'s' if len(frames) > 1 else ''} inside {libraries}]\n"

    return Shortened


def stretches(frames: Any, sources: Sources) -> Iterator[tuple[str | None, list[Any]]]:
    """Yields (libraries or None, frames) for runs of frames of the code's own, and of libraries."""
    import itertools
    libraries = [library_of(frame.filename, sources) for frame in frames]
    for own, pairs in itertools.groupby(zip(libraries, frames), lambda pair: pair[0] is None):
        stretch = list(pairs)
        yield None if own else library_list(library for library, _ in stretch), [frame for _, frame in stretch]


def library_list(inside: Iterable[Any]) -> str:
    """Names libraries, each once. Python's own import machinery says nothing beside others."""
    names = list(dict.fromkeys(inside))
    names = [name for name in names if name != "Python"] or names
    more = f"{len(names) - 3} more" if len(names) > 3 else names.pop()
    return ", ".join(names[:3]) + (" and " if names else "") + more


def library_of(file: str, sources: Sources) -> str | None:
    """Returns the library that a file belongs to, or None for the code's own files."""
    if file in sources.texts or file == "<string>":
        return None
    if file.startswith("<"):
        return "Python" if file.startswith("<frozen") else file.strip("<>").split(" ")[0]
    if "/" in file and file[0] != "/":
        return file.partition("/")[0]  # what Cython has compiled names its source so
    for folder in ("/site-packages/", "/dist-packages/", os.path.dirname(os.__file__) + "/"):
        if folder in file:
            return file[file.index(folder) + len(folder):].partition("/")[0].partition(".")[0]
    return None
