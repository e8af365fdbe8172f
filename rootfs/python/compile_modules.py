"""Compiles what Python may import in this image, and writes the bytecode to standard output.

With an argument, a folder, it compiles what is in there alone, and the paths that it writes are within the folder.

Runs once per image, in a sandbox. The host puts the files into their places, so the sandbox's root stays read-only.
Each file is four bytes of big-endian length of its path, four of its content, then the path and the content.

The files are hash-based and unchecked (PEP 552): Python takes them whatever the times of the sources are.
"""
from __future__ import annotations

import importlib.util
import marshal
import os
import sys
from collections.abc import Iterator

UNCHECKED_HASH = (1).to_bytes(4, "little")
TIMESTAMP = bytes(4)
# Suites of tests are large, and are hardly ever imported.
SKIPPED = {"__pycache__", "test", "tests", "idle_test"}


def sources() -> Iterator[str]:
    """Yields the path of each module that can be imported, the standard library's first."""
    roots = sys.argv[1:] or [path for path in sys.path if os.path.isdir(path)]
    for root in roots:
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(f for f in folders if f not in SKIPPED and os.path.join(folder, f) not in roots)
            for name in sorted(files):
                if name.endswith(".py"):
                    yield os.path.join(folder, name)


def usable(cached: str, source: str) -> bool:
    """Tells whether Python would take a file of bytecode that the image has."""
    try:
        with open(cached, "rb") as f:
            head = f.read(16)
        if head[:4] != importlib.util.MAGIC_NUMBER:
            return False
        status = os.stat(source)
    except OSError:
        return False
    words = [int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF]
    return head[4:8] != TIMESTAMP or head[8:] == b"".join(w.to_bytes(4, "little") for w in words)


def compiled(source: str) -> bytes | None:
    """Returns the bytecode of a module as a file would have it, or None if it does not compile."""
    try:
        with open(source, "rb") as f:
            text = f.read()
        code = compile(text, source, "exec", dont_inherit=True)
        return importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + importlib.util.source_hash(text) + marshal.dumps(code)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None  # an example of bad code, or of another version


def main() -> None:
    try:
        os.nice(19)  # concurrent runs come first
    except OSError:
        pass
    out = sys.stdout.buffer
    for source in sources():
        cached = importlib.util.cache_from_source(source)
        if usable(cached, source):
            continue
        content = compiled(source)
        if content is not None:
            name = os.fsencode(os.path.relpath(cached, sys.argv[1]) if sys.argv[1:] else cached)
            out.write(len(name).to_bytes(4, "big") + len(content).to_bytes(4, "big") + name + content)
    out.flush()


main()
