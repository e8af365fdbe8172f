"""MCP_AVAILABLE_SERVERS in the environment of the code."""
from __future__ import annotations

import json
from typing import Any

import pytest

TOOL = {
    "name": "create-issue", "alias": "create_issue", "description": "Creates an issue.",
    "input_schema": {"type": "object"},
}


def describe(method: str, params: Any) -> Any:
    assert method == "describe_server"
    if params["server"] == "file-system":
        raise RuntimeError("it does not start")
    return {"name": "github", "alias": "github", "description": "issues and code", "cwd": "/home/me", "tools": [TOOL]}


def test_code_that_names_it_gets_the_tools_of_granted_servers(run: Any) -> None:
    result = run("import os; print(os.environ['MCP_AVAILABLE_SERVERS'])", describe)
    assert json.loads(result.stdout) == [
        {"name": "github", "alias": "github", "description": "issues and code", "tools": [TOOL]},
        {"name": "file-system", "alias": "file_system", "description": "", "tools": [], "error": "it does not start"},
    ]


def test_other_code_gets_the_names_and_asks_the_host_nothing(run: Any) -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', "\
        "'import os; print(os.environ[\"MCP_AVAILABLE_\" + \"SERVERS\"])'])"
    result = run(code, describe)
    assert json.loads(result.stdout) == [
        {"name": "github", "alias": "github", "description": "issues and code"},
        {"name": "file-system", "alias": "file_system"},
    ]
    assert result.calls == []


def test_each_run_of_a_session_has_its_own(start: Any) -> None:
    from conftest import SERVERS, Run, echo
    runner, result = start(), Run()
    runner.start("import os", session="s")
    runner.serve(result, echo)
    code = "print(os.environ['MCP_AVAILABLE_' + 'SERVERS']); os.environ = None"
    runner.send({"type": "start", "code": code, "servers": [{**SERVERS[2], "granted": True}], "session": "s"})
    runner.serve(result, echo)
    runner.start("1", session="s")  # the session outlives what the code did to os.environ
    runner.serve(result, echo)
    assert [message["exitCode"] for message in result.done] == [0, 0, 0]
    runner.socket.close()
    assert json.loads(runner.finish(result).stdout) == [{"name": "jira", "alias": "jira"}]


@pytest.mark.parametrize(("tools", "servers", "shows"), [
    ([{**TOOL, "input_schema": {"description": "x" * 70_000}}], 1, {"name", "alias", "description"}),
    ([{**TOOL, "description": "ä" * 4_000}] * 20, 1, {"name", "alias"}),
    ([TOOL] * 3_000, 1, None),
    ([], 3_000, None),
])
def test_it_is_bounded(run: Any, tools: list[Any], servers: int, shows: set[str] | None) -> None:
    def answer(method: str, params: Any) -> Any:
        return {"name": params["server"], "alias": params["server"], "tools": tools}

    code = "import os, subprocess; print(os.environ['MCP_AVAILABLE_SERVERS'], flush=True); subprocess.run(['true'])"
    many = [{"name": f"server-{n}", "alias": f"server_{n}", "granted": True} for n in range(servers)]
    result = run(code, answer, servers=many)
    assert result.exit == 0, result.stderr
    assert len(result.stdout) <= 64 << 10
    first = json.loads(result.stdout)[0]
    assert first["name"] == "server-0"
    assert [set(tool) for tool in first.get("tools", [])] == ([shows] * len(tools) if shows else [])
