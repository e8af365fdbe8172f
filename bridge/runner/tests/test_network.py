"""The way out that the host gives a run."""
from __future__ import annotations

import os
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from toolcell_runner import network

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
    runner.finish(Run())


def test_a_run_without_the_network_has_no_variables(run: Any) -> None:
    assert run(SHOWN).done[0]["result"] == "[None, None, None]"


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.setattr(network, "ROOTS", os.fspath(tmp_path / "toolcell" / "roots.pem"))
    return tmp_path / "toolcell" / "roots.pem"


class FakeRuntime:
    def __init__(self) -> None:
        self.replaced_variables: dict[str, str | None] = {}


def test_the_network_brings_its_certificates(roots: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("TOKEN", raising=False)
    runtime: Any = FakeRuntime()
    network.use_network(runtime, {"variables": {"TOKEN": "tc_1"}, "roots": "certificates\n"})
    assert roots.read_text() == "certificates\n"
    assert os.environ["TOKEN"] == "tc_1"
    network.use_network(runtime, {"roots": "others"})
    assert roots.read_text() == "others"
    assert "TOKEN" not in os.environ


def test_urlopen_finds_the_proxy_of_each_run(monkeypatch: Any) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(urllib.request, "_opener", None)
    runtime: Any = FakeRuntime()

    def proxies() -> list[dict[str, str]]:
        return [h.proxies for h in urllib.request._opener.handlers if isinstance(h, urllib.request.ProxyHandler)]

    network.use_network(runtime, {})
    assert urllib.request._opener is None  # code that opens nothing does not wait for it
    cookies = urllib.request.HTTPCookieProcessor()
    opener = urllib.request.build_opener(cookies)
    opener.addheaders = [("User-agent", "mine")]
    urllib.request.install_opener(opener)
    assert proxies() == []
    for port in (1, 2):
        network.use_network(runtime, {"variables": {"http_proxy": f"http://127.0.0.1:{port}"}})
        assert proxies() == [{"http": f"http://127.0.0.1:{port}"}]
    network.use_network(runtime, {})
    assert proxies() == []
    assert cookies in urllib.request._opener.handlers
    assert urllib.request._opener.addheaders == [("User-agent", "mine")]


def test_certificates_that_cannot_be_written_are_reported(roots: Path, capsys: Any) -> None:
    roots.mkdir(parents=True)
    runtime: Any = FakeRuntime()
    network.use_network(runtime, {"roots": "certificates"})
    assert "roots.pem could not be written: [Errno 21]" in capsys.readouterr().err
