"""The way out that a run was given: variables that clients read, and the certificates to trust."""
from __future__ import annotations

import os
import sys

from .newfile import FOLDER, new_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .runtime import Runtime

ROOTS = FOLDER + "/roots.pem"


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
    renew_opener()


def set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def write_roots(text: str) -> None:
    try:
        with new_file(ROOTS) as file:
            file.write(text.encode())
    except OSError as error:
        print(f"{ROOTS} could not be written: {error}", file=sys.stderr)


def renew_opener() -> None:
    """Has urlopen look for its proxy and certificates anew: it keeps what it found when it was first called."""
    request: Any = sys.modules.get("urllib.request")
    opener = getattr(request, "_opener", None)
    if opener is None:
        return
    found = (request.ProxyHandler, request.HTTPSHandler)  # once, when they were made
    renewed = request.build_opener(*(handler for handler in opener.handlers if type(handler) not in found))
    renewed.addheaders = opener.addheaders
    request.install_opener(renewed)
