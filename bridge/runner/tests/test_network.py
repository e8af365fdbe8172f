"""The way out that the host gives a run, and the files that it has for one."""
from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from toolcell_runner import hostfiles, network
from toolcell_runner.errors import MCPError

SHOWN = "import os\n[os.environ.get(n) for n in ('https_proxy', 'no_proxy', 'TOKEN')]"


def test_variables_last_for_one_run_of_a_session(start: Any) -> None:
    runner = start()

    def run(**more: Any) -> str:
        run = Run()
        runner.start(**{"code": SHOWN, "session": True, **more})
        runner.serve(run, lambda method, params: None)
        done, = run.done
        return str(done.get("result"))

    given = {"variables": {"https_proxy": "http://127.0.0.1:1", "TOKEN": "tc_1"}}
    assert run(network=given) == "['http://127.0.0.1:1', None, 'tc_1']"
    assert run() == "[None, None, None]"
    run(code="os.environ.update(no_proxy='mine', https_proxy='own')")
    other = {"variables": {"https_proxy": "http://127.0.0.1:2", "no_proxy": "x"}}
    assert run(network=other) == "['http://127.0.0.1:2', 'x', None]"
    # One run with it after the other: what the code itself has set is kept.
    assert run(network=given) == "['http://127.0.0.1:1', 'mine', 'tc_1']"
    assert run(code="os.environ['https_proxy'] = 'changed'\n" + SHOWN, network=given) == "['changed', 'mine', 'tc_1']"
    assert run() == "['own', 'mine', None]"
    runner.socket.close()
    runner.process.communicate(timeout=30)


def test_a_run_without_the_network_has_no_variables(run: Any) -> None:
    assert run(SHOWN).done[0]["result"] == "[None, None, None]"


class FakeRuntime:
    """Has a host with files, which it gives in pieces of 3 bytes."""

    def __init__(self, **files: bytes) -> None:
        self.files, self.host = files, self
        self.replaced_variables: dict[str, str | None] = {}

    def ask(self, method: str, params: Any) -> str:
        assert method == "read_printed"
        if params["name"] not in self.files:
            raise MCPError("there is no such file")
        at = params["offset"]
        return base64.b64encode(self.files[params["name"]][at:at + 3]).decode()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.setattr(hostfiles, "FOLDER", os.fspath(tmp_path / "files"))
    return tmp_path / "files"


def test_files_of_the_host_arrive_whole(folder: Path) -> None:
    hostfiles.fetch(FakeRuntime(roots=b"certificates", empty=b""), ["roots", "empty"])  # type: ignore[arg-type]
    assert (folder / "roots").read_bytes() == b"certificates"
    assert (folder / "empty").read_bytes() == b""


def test_a_file_that_cannot_be_had_is_reported(folder: Path, capsys: Any) -> None:
    hostfiles.fetch(FakeRuntime(), ["roots"])  # type: ignore[arg-type]
    assert "roots could not be written: there is no such file" in capsys.readouterr().err
    assert not (folder / "roots").exists()


def test_the_network_brings_its_files(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("TOKEN", raising=False)
    runtime: Any = FakeRuntime(roots=b"r")
    network.use_network(runtime, {"variables": {"TOKEN": "tc_1"}, "files": ["roots"]})
    assert (folder / "roots").read_bytes() == b"r"
    assert os.environ["TOKEN"] == "tc_1"
    network.use_network(runtime, {})
    assert "TOKEN" not in os.environ
