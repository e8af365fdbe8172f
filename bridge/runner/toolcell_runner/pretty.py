"""Pretty-prints containers and tables as a notebook would: over several lines, and within bounds."""
from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


WIDTH = 100  # of lines, in characters
MAX_SHOWN = 20_000  # characters of a container
MAX_ITEMS = 200  # of one container
MAX_TEXT = 2_000  # characters of a text in a container
MAX_DEPTH = 12

BRACKETS: dict[Any, tuple[str, str]] = {
    list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), frozenset: ("frozenset({", "})"), dict: ("{", "}")}


def show(value: Any) -> str:
    """Returns the text of a value, with notes where it is cut."""
    if is_frame(value):
        return frame_text(value)
    if container_of(value):
        text = PrettyPrinter().lines(value, 0, 0)
        if len(text) > MAX_SHOWN:
            text = f"{text[:MAX_SHOWN]}\n… cut: {len(text):,} characters as it is shown; print the part that you need"
        return text
    return repr(value)


def container_of(value: Any) -> Any:
    """Returns the builtin type that a value is shown as, or None: a type with a repr of its own is shown by that."""
    kind: Any
    for kind in BRACKETS:
        if isinstance(value, kind) and type(value).__repr__ is kind.__repr__:
            return kind
    return None


def is_frame(value: Any) -> bool:
    kind = type(value)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pandas.")


def frame_text(frame: Any) -> str:
    """Returns a data frame as a table: a notebook's choice of rows and columns, and no line that wraps."""
    option = sys.modules["pandas"].get_option
    rows, columns = option("display.max_rows"), option("display.max_columns") or 20
    text: str = frame.to_string(max_rows=rows, min_rows=option("display.min_rows"), max_cols=columns,
                           max_colwidth=option("display.max_colwidth"), show_dimensions=False)
    height, width = frame.shape
    if height > (rows or height) or width > columns or not height:
        text += f"\n\n[{height:,} rows x {width:,} columns]"
    return text


class PrettyPrinter:
    """Writes containers over as many lines as they need, each as short as it may be."""

    def __init__(self) -> None:
        self._inside: set[int] = set()  # containers that are being written, by id
        self._left = 2 * MAX_SHOWN  # what is written beyond it is cut anyway

    def lines(self, value: Any, indent: int, depth: int) -> str:
        """Returns the text of a value whose first line starts at column indent."""
        text = self.line(value, max(WIDTH - indent, 20), depth)
        if text is None:
            text = self._broken(value, indent, depth)
        return text

    def line(self, value: Any, room: int, depth: int) -> str | None:
        """Returns the value on one line, or None if that does not fit into room."""
        kind = container_of(value)
        if kind is None:
            text = atom(value)
            return text if len(text) <= room and "\n" not in text else None
        if id(value) in self._inside or depth > MAX_DEPTH:
            return "…"
        if len(value) * 2 > room:
            return None
        opening, closing = BRACKETS[kind]
        if not value:
            return repr(value)
        self._inside.add(id(value))
        try:
            parts, used = [], len(opening) + len(closing)
            for item in value.items() if kind is dict else value:
                part = self._item(kind, item, lambda each: self.line(each, room - used, depth + 1))
                if part is None or used + len(part) > room:
                    return None
                parts.append(part)
                used += len(part) + 2
        finally:
            self._inside.discard(id(value))
        ending = "," if kind is tuple and len(parts) == 1 else ""
        return opening + ", ".join(parts) + ending + closing

    def _item(self, kind: type, item: Any, write: Callable[[Any], str | None]) -> str | None:
        if kind is not dict:
            return write(item)
        key, value = item
        text = write(value)
        return None if text is None else f"{atom(key)}: {text}"

    def _broken(self, value: Any, indent: int, depth: int) -> str:
        """Returns the value over several lines."""
        kind = container_of(value)
        if kind is None:
            return atom(value).replace("\n", "\n" + " " * indent)
        opening, closing = BRACKETS[kind]
        inner = indent + len(opening)
        self._inside.add(id(value))
        try:
            parts = list(self._parts(kind, value, inner, depth + 1))
        finally:
            self._inside.discard(id(value))
        if len(value) > len(parts):
            parts.append(f"… {len(value) - len(parts):,} more, {len(value):,} in all")
        return opening + self._joined(kind, parts, inner) + closing

    def _parts(self, kind: type, value: Any, inner: int, depth: int) -> Iterator[str]:
        """Yields the text of the items, no more than can be shown."""
        for number, item in enumerate(value.items() if kind is dict else value):
            if number == MAX_ITEMS or self._left < 0:
                return
            if kind is dict:
                key = atom(item[0]) + ": "
                part = key + self.lines(item[1], inner + min(len(key), WIDTH // 2), depth)
            else:
                part = self.lines(item, inner, depth)
            self._left -= len(part)
            yield part

    def _joined(self, kind: type, parts: list[str], inner: int) -> str:
        """Puts the items below each other, or side by side where all are short."""
        between = ",\n" + " " * inner
        if kind is dict or any(len(part) > 20 or "\n" in part for part in parts[:-1]):
            return between.join(parts)
        rows: list[list[str]] = [[]]
        used = inner
        for part in parts:
            if rows[-1] and used + len(part) + 2 > WIDTH:
                rows.append([])
                used = inner
            rows[-1].append(part)
            used += len(part) + 2
        return between.join(", ".join(row) for row in rows)


def atom(value: Any) -> str:
    """Returns the text of a value that is not a container; a long text is cut, with a note of its length."""
    if isinstance(value, (str, bytes)) and len(value) > MAX_TEXT:
        unit = "characters" if isinstance(value, str) else "bytes"
        return f"{value[:MAX_TEXT]!r}… ({len(value):,} {unit})"
    text = repr(value)
    return text if len(text) <= 2 * MAX_TEXT else f"{text[:2 * MAX_TEXT]}… ({len(text):,} characters)"
