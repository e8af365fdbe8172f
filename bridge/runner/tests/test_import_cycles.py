"""What the modules of the package import of each other."""
from __future__ import annotations

import ast
import graphlib
from pathlib import Path

from conftest import PACKAGE


def imports_of(file: Path) -> set[str]:
    """Returns the modules that a module imports anywhere, also for its types."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            found.update([node.module] if node.module else [alias.name for alias in node.names])
    return found


def test_imports_have_no_cycle() -> None:
    graph = {file.stem: imports_of(file) for file in PACKAGE.glob("*.py")}
    assert {"process", "runtime", "values"} < graph.keys() == graph.keys() | set().union(*graph.values())
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, with the modules of the cycle
