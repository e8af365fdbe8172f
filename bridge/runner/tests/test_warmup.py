"""What a template does ahead of runs."""
from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pythons import NEWEST, Python

# As oci/fork/fork.py loads and calls the program.
CODE = """
import sys, types
if sys.argv[2:]:
    import asyncio
sys.modules["mcp"] = types.ModuleType("mcp")  # one that the user has preloaded
with open(sys.argv[1], "rb") as file:
    names = {"__name__": "program", "__builtins__": __builtins__, "__file__": sys.argv[1]}
    exec(compile(file.read(), sys.argv[1], "exec", dont_inherit=True), names)
found, argv, finders = dict(sys.modules), list(sys.argv), list(sys.meta_path)
for again in range(3):
    names["warm_up"]()
    changed = [name for name in {**found, **sys.modules} if found.get(name) is not sys.modules.get(name)]
    assert not {"__main__", "mcp", "mcp.runtime", "mcp.servers"} & set(changed), changed
    assert sys.argv == argv and sys.meta_path == finders
    if again:
        assert not changed, changed
    found = dict(sys.modules)
"""


@pytest.mark.parametrize("asyncio", [(), ("asyncio",)])
def test_warm_up_leaves_nothing(asyncio: tuple[str, ...], program_for: Callable[[Python], Path]) -> None:
    """But what it has imported the first time."""
    done = subprocess.run(
        [NEWEST.path, "-s", "-c", CODE, str(program_for(NEWEST)), *asyncio], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
