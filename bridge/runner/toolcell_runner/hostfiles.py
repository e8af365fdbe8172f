"""Files that the host has for a run: what the last one printed, and the certificates to trust."""
from __future__ import annotations

import os
import sys
from binascii import a2b_base64

from .errors import MCPError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .runtime import Runtime

FOLDER = "/tmp/toolcell"


def fetch(runtime: Runtime, names: Iterable[str]) -> None:
    """Writes them to FOLDER."""
    for name in names:
        path = f"{FOLDER}/{name}"
        try:
            os.makedirs(FOLDER, exist_ok=True)
            with open(path, "wb") as file:
                while chunk := a2b_base64(runtime.host.ask("read_printed", {"name": name, "offset": file.tell()})):
                    file.write(chunk)
        except (OSError, MCPError) as error:
            print(f"{path} could not be written: {error}", file=sys.stderr)
            try:
                os.unlink(path)
            except OSError:
                pass  # it is not there
