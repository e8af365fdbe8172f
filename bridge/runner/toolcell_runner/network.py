"""The way out that a run was given: variables that clients read, and the certificates to trust."""
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .runtime import Runtime

ROOTS = "/tmp/toolcell/roots.pem"


def use_network(runtime: Runtime, network: dict[str, Any]) -> None:
    """Sets the variables of this run, and takes back those of the one before, whose way out the host has closed."""
    for name, value in runtime.replaced_variables.items():
        set_variable(name, value)
    variables: dict[str, str] = network.get("variables") or {}
    runtime.replaced_variables = {name: os.environ.get(name) for name in variables}
    for name, value in variables.items():
        set_variable(name, value)
    if network.get("roots"):
        write_roots(network["roots"])


def set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def write_roots(text: str) -> None:
    try:
        os.makedirs(os.path.dirname(ROOTS), exist_ok=True)
        with open(ROOTS, "w") as file:
            file.write(text)
    except OSError as error:
        print(f"{ROOTS} could not be written: {error}", file=sys.stderr)
