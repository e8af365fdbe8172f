"""The Pythons of this machine, and tables of code that they run."""
from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

OLDEST_MINOR, NEWEST_MINOR = 10, 14  # of what the package is written for


class Python(NamedTuple):
    minor: int
    path: str


def find() -> list[Python]:
    """Returns one interpreter of each minor version, oldest first: all, or only the newest where tests are to be short.
    A command in TOOLCELL_TEST_RUNNER_PYTHON is the only one.
    """
    only = os.environ.get("TOOLCELL_TEST_RUNNER_PYTHON")
    names = [only] if only else [
        "python3", "/usr/bin/python3", *(f"python3.{minor}" for minor in range(OLDEST_MINOR, NEWEST_MINOR + 1)),
        *map(str, Path.home().glob(".pyenv/versions/*/bin/python3"))]
    found: dict[int, Python] = {}
    for name in names:
        try:
            said = subprocess.run([name, "-c", "import sys; print(sys.version_info[1], sys.executable)"],
                                  capture_output=True, text=True).stdout
        except OSError:
            continue
        version = re.fullmatch(r"(\d+) (.+)\n", said)  # a shim without a version behind it prints nothing
        if version and int(version[1]) >= OLDEST_MINOR:
            found[int(version[1])] = Python(int(version[1]), only or version[2])
    pythons = [found[minor] for minor in sorted(found)]
    return pythons[-1:] if os.environ.get("TOOLCELL_TEST_SHORT") else pythons


PYTHONS = find()
NEWEST = PYTHONS[-1]
each_python = pytest.mark.parametrize("python", PYTHONS, indirect=True, ids=lambda python: f"3.{python.minor}")


@dataclass
class Case:
    """A piece of code, and what has to come of it."""

    name: str
    code: str = ""
    stdout: str = ""
    stderr: Sequence[str] = ()  # each contained, in this order; none: there is none
    hidden: Sequence[str] = ()  # none contained in stderr
    exit: int = 0
    result: str | None = None
    error: str | None = None
    since: int = OLDEST_MINOR

    def check(self, run: Any) -> None:
        assert run.stdout == self.stdout, run.stderr
        rest = run.stderr
        for want in self.stderr:
            assert want in rest, run.stderr
            rest = rest.partition(want)[2]
        assert self.stderr or not rest
        assert [text for text in self.hidden if text in run.stderr] == []
        assert (run.exit, run.said("exitCode")) == (self.exit, self.exit)
        assert (run.said("result"), run.said("error")) == (self.result, self.error)


def table(cases: Iterable[Case], since: int = OLDEST_MINOR) -> Any:
    """Has the oldest and the newest Python run all cases. Those between share them: what differs between versions shows
    at the ends first.
    """
    ends = PYTHONS[0], PYTHONS[-1]
    return pytest.mark.parametrize(("case", "python"), [
        pytest.param(case, python, id=f"{case.name}-3.{python.minor}") for number, case in enumerate(cases)
        for python in PYTHONS if python.minor >= case.since and (python in ends or number % 3 == python.minor % 3)
    ], indirect=["python"])
