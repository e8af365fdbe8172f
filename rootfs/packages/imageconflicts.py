"""Prints which modules of an image do not go together with some packages, a name a line.

The packages, as name==version, are the arguments; they will stand before the image's own in sys.path. What does not go
together is the image's own copy of such a package, of which parts would shine through where ours has none, and what was
compiled for a version of one that is not compatible.

It runs in a sandbox of the image.
"""
from __future__ import annotations

import os
import re
import sys
from importlib import metadata


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def needs(dist: metadata.Distribution) -> set[str]:
    """Returns the packages that a package needs in any case."""
    found = (re.match(r"[A-Za-z0-9._-]+", line) for line in dist.requires or () if "extra ==" not in line)
    return {plain(match.group()) for match in found if match}


def mentions(dist: metadata.Distribution, words: set[str]) -> bool:
    """Tells whether a package names one of these modules as it is imported. Distributions of Linux leave out needs."""
    for name in modules(dist):
        try:
            with open(str(dist.locate_file(name + "/__init__.py")), "rb") as file:
                if words & set(re.findall(r"\w+", file.read(1 << 20).decode("utf-8", "replace"))):
                    return True
        except OSError:
            pass
    return False


def modules(dist: metadata.Distribution) -> set[str]:
    """Returns the names at the top of what a package has."""
    text = dist.read_text("top_level.txt")
    if text:
        return set(text.split())
    return {file.parts[0].partition(".")[0] for file in dist.files or () if file.suffix in (".py", ".so")}


def compiled(dist: metadata.Distribution) -> bool:
    """Tells whether a package has modules that were compiled to machine code."""
    for name in modules(dist):
        for _, _, files in os.walk(str(dist.locate_file(name))):
            if any(file.endswith(".so") for file in files):
                return True
    return False


def breaks(built_for: str, found: str) -> bool:
    """Tells whether what was compiled for one version fails with another: an older one, or one of another major."""
    old, new = ([int(n) for n in re.findall(r"\d+", version)[:3]] for version in (built_for, found))
    return old[:1] != new[:1] or new < old


def main() -> None:
    chosen = dict(argument.split("==", 1) for argument in sys.argv[1:])
    image: dict[str, metadata.Distribution] = {}
    for dist in metadata.distributions():
        name = dist.metadata["Name"]
        if name:
            image.setdefault(plain(name), dist)
    ours = {name for name in image if name in chosen}
    other = {name for name in ours if breaks(image[name].version, chosen[name]) and compiled(image[name])}
    words: set[str] = set()
    for name in other:
        words |= modules(image[name])
    stale = {
        name for name, dist in image.items()
        if name not in ours and (needs(dist) & other or mentions(dist, words)) and compiled(dist)
    }
    hidden: set[str] = set()
    kept: set[str] = set()  # a namespace can be that of several packages
    for name, dist in image.items():
        names = hidden if name in ours | stale else kept
        names |= modules(dist)
    print("\n".join(sorted(hidden - kept)))


main()
