"""Places where code may have put anything."""
from __future__ import annotations

import os
import signal
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from toolcell_runner.newfile import new_file


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(os.fspath(path))


# What earlier code may have put in a place, beside a file of its own that it would have written to or see.
IN_THE_WAY: dict[str, Callable[[Path, Path], object]] = {
    "nothing": lambda path, own: None,
    "a pipe": lambda path, own: os.mkfifo(path),
    "a link": lambda path, own: path.symlink_to(own),
    "a link to nothing": lambda path, own: path.symlink_to(own.parent / "new"),
    "a link to itself": lambda path, own: path.symlink_to(path),
    "a link to a device": lambda path, own: path.symlink_to("/dev/full"),
    "a link to a pipe": lambda path, own: (os.mkfifo(own.parent / "pipe"), path.symlink_to(own.parent / "pipe")),
    "a hard link": lambda path, own: os.link(own, path),
    "a socket": lambda path, own: a_socket(path),
    "a file without rights": lambda path, own: path.touch(0o000),
}


@pytest.mark.parametrize("what", IN_THE_WAY)
@pytest.mark.parametrize("place", ["file", "folder"])
def test_what_is_in_the_way_is_never_opened(tmp_path: Path, what: str, place: str) -> None:
    own, path = tmp_path / "own", tmp_path / "toolcell" / "stdout.txt"
    own.write_text("mine")
    if place == "file":
        path.parent.mkdir()
    IN_THE_WAY[what](path if place == "file" else path.parent, own)
    signal.alarm(20)  # to wait for a pipe is what must not be
    with new_file(os.fspath(path)) as file:
        file.write(b"printed")
    signal.alarm(0)
    assert stat.S_ISREG(path.lstat().st_mode) and path.read_bytes() == b"printed"
    assert own.read_text() == "mine" and not (tmp_path / "new").exists()


def test_an_open_file_does_not_see_the_next(tmp_path: Path) -> None:
    path = tmp_path / "toolcell" / "stdout.txt"
    with new_file(os.fspath(path)) as file:
        file.write(b"first")
    with path.open("r+b") as kept:
        with new_file(os.fspath(path)) as file:
            file.write(b"second")
        assert kept.read() == b"first"
        kept.write(b"changed")
    assert path.read_bytes() == b"second"


def test_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "toolcell" / "stdout.txt" / "kept").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        new_file(os.fspath(tmp_path / "toolcell" / "stdout.txt"))
    assert (tmp_path / "toolcell" / "stdout.txt" / "kept").is_dir()
