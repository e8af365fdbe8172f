"""Starts toolcell as an MCP client does, from the entry in its config file, and calls its tool.

    client.py FILE

Prints the command of the entry and the version that it says it is. The environment is what a desktop program would pass on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


def main() -> None:
    with open(sys.argv[1]) as f:
        entry = json.load(f)["mcpServers"]["toolcell"]
    env = {name: os.environ[name] for name in ("HOME", "PATH", "LANG", "USER") if name in os.environ}
    env |= entry.get("env", {})
    server = subprocess.Popen(
        [entry["command"], *entry.get("args", [])], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True
    )
    assert server.stdin and server.stdout

    def send(message: dict[str, Any]) -> None:
        assert server.stdin
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        server.stdin.flush()

    def ask(id: int, method: str, params: dict[str, Any]) -> Any:
        assert server.stdout
        send({"id": id, "method": method, "params": params})
        for line in server.stdout:
            answer = json.loads(line)
            if answer.get("id") == id and "method" not in answer:
                return answer["result"]
        sys.exit(f"client: no answer to {method}")

    me = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    info = ask(1, "initialize", me)["serverInfo"]
    send({"method": "notifications/initialized"})
    tools = [tool["name"] for tool in ask(2, "tools/list", {})["tools"]]
    result = ask(3, "tools/call", {"name": "run_python", "arguments": {"code": "6 * 7"}})
    server.stdin.close()
    code = server.wait(30)
    text = "".join(part.get("text", "") for part in result["content"])
    got = (info["name"], tools, "42" in text, result.get("isError", False), code)
    if got != ("toolcell", ["run_python"], True, False, 0):
        sys.exit(f"client: {info['name']} has the tools {tools}, answered {text!r} and exited with {code}")
    print(entry["command"], info["version"])


main()
