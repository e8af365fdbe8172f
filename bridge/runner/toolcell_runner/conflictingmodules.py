"""Modules of the image that do not go together with the packages of the script."""
from __future__ import annotations

import sys
from _frozen_importlib_external import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any


class HiddenModules:
    """Finds modules with these names among the packages alone."""

    def __init__(self, names: Iterable[str], packages: str) -> None:
        self._names, self._packages = frozenset(names), packages

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if path is not None or name not in self._names:
            return None
        spec = PathFinder.find_spec(name, [self._packages])
        if spec is None:
            raise ModuleNotFoundError(
                f"No module named {name!r}: the one of the image does not go together with the packages of the script; "
                f"name it in the header too", name=name)
        return spec


def hide(names: Sequence[str], packages: str) -> None:
    """Makes these modules come from the packages or not at all."""
    for name in names:
        sys.modules.pop(name, None)  # a .pth file of the image may have made a namespace
    sys.meta_path.insert(0, HiddenModules(names, packages))
