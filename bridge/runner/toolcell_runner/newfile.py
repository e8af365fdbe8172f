"""Files that the runner writes for the code, to places that are the code's own."""
from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

FOLDER = "/tmp/toolcell"


def new_file(path: str) -> BinaryIO:
    """Opens a new file, and makes its folder. Whatever earlier code has put there under its name is removed and never
    opened: a pipe would block, a link lead elsewhere, and an open file show what is written later. A folder in its
    place is an error.
    """
    at, name = os.path.split(path)
    try:
        os.mkdir(at)
    except FileExistsError:
        if os.path.islink(at) or not os.path.isdir(at):
            os.unlink(at)
            os.mkdir(at)
    folder = os.open(at, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        try:
            os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            pass
        # A thread that earlier code has left may be faster: what exists by now is an error too.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(name, flags, 0o644, dir_fd=folder), "wb")
    finally:
        os.close(folder)
