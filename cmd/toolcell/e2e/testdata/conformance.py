"""The client that the conformance suite drives: toolcell, as a user would type it.

    conformance.py URL

The suite starts it once for each scenario, with the address of a server. It writes a
config file that has this server and lets code in a sandbox call its tools. When
toolcell says that a login is needed, it types the command that toolcell names, and
opens the address as a browser would. Where servers ask the user, it is an MCP client
whose user leaves forms as they are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any

TOOLCELL = os.environ["TOOLCELL"]
SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
KNOWN: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))

# Their servers answer tools/list and nothing else.
LISTED = {"json-schema-ref-no-deref"}

# Their servers ask the user.
ASKING = {"elicitation-sep1034-client-defaults", "sep-2322-client-request-state"}

LOGIN = "toolcell servers login conf"

# A user logs in when asked, but gives up when asked again and again.
MOST_LOGINS = 4

# Calls each tool of the server, with the arguments of the suite, or with some that fit.
CODE = """
import json, sys
from mcp import runtime
calls, failed = json.loads(CALLS), False
docs = await runtime.query_tool_docs("conf", detail="full")
for doc in docs if CALLING else []:
    fitting = {
        "string": "text", "integer": 2, "number": 2, "boolean": True, "array": [], "null": None, "object": docs[0]["inputSchema"],
    }
    schema = doc["inputSchema"]
    some = {name: fitting[schema["properties"][name].get("type", "string")] for name in schema.get("required", [])}
    for arguments in [call["arguments"] for call in calls if call["name"] == doc["tool"]] or [some]:
        try:
            print(doc["tool"], await runtime.call_tool("conf", doc["tool"], arguments))
        except Exception as e:
            print(e, file=sys.stderr)
            failed = True
sys.exit(failed)
"""


def entry(url: str) -> dict[str, object]:
    """Returns the server's entry, with what the suite says that the user knows."""
    oauth = {name: KNOWN[name] for name in ("client_id", "client_secret", "issuer") if name in KNOWN}
    if "private_key_pem" in KNOWN:
        oauth["private_key"] = KNOWN["private_key_pem"]
    if SCENARIO.startswith("auth/client-credentials"):
        oauth["grant_type"] = "client_credentials"
    if SCENARIO == "auth/basic-cimd":
        oauth["client_metadata_url"] = "https://conformance-test.local/client-metadata.json"
    return {"type": "http", "url": url} | ({"oauth": oauth} if oauth else {})


def call_tools(env: dict[str, str]) -> tuple[bool, str]:
    """Calls the tools, and returns whether all could be called, and what was said."""
    code = CODE.replace("CALLS", repr(json.dumps(KNOWN.get("toolCalls", []))))
    code = code.replace("CALLING", repr(SCENARIO not in LISTED))
    if SCENARIO in ASKING:
        return call_as_client(env, code), ""
    command = [TOOLCELL, "exec", "--server", "conf", "-c", code]
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    sys.stderr.write(done.stdout + done.stderr)
    return done.returncode == 0, done.stderr


def call_as_client(env: dict[str, str], code: str) -> bool:
    """Runs code as an MCP client that shows forms. Returns whether the run succeeded."""
    client = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "suite", "version": "1"}}
    run = {"name": "run_python", "arguments": {"code": code, "servers": ["conf"]}}
    with subprocess.Popen([TOOLCELL, "serve"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as serve:
        assert serve.stdin and serve.stdout
        send(serve.stdin, id=1, method="initialize", params=client)
        for line in serve.stdout:
            sys.stderr.write(line)
            message = json.loads(line)
            if message.get("method") == "elicitation/create":
                fields = message["params"]["requestedSchema"]["properties"]
                entered = {name: field["default"] for name, field in fields.items() if "default" in field}
                send(serve.stdin, id=message["id"], result={"action": "accept", "content": entered})
            elif message.get("id") == 1:
                send(serve.stdin, method="notifications/initialized")
                send(serve.stdin, id=2, method="tools/call", params=run)
            elif message.get("id") == 2:
                serve.stdin.close()
                return "result" in message and not message["result"].get("isError")
    return False


def send(to: IO[str], **message: object) -> None:
    """Sends a message of JSON-RPC."""
    to.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
    to.flush()


def log_in(env: dict[str, str]) -> tuple[bool, str]:
    """Types the command and is the browser. Returns whether it worked, and what was said."""
    said = ""
    command = [TOOLCELL, "servers", "login", "--no-browser", "conf"]
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as login:
        assert login.stderr
        for line in login.stderr:
            sys.stderr.write(line)
            said += line
            if line.strip().startswith("http"):
                try:
                    urllib.request.urlopen(line.strip()).close()
                except urllib.error.HTTPError as e:
                    sys.stderr.write(f"the browser shows {e}\n")
    return login.returncode == 0, said


def use(env: dict[str, str]) -> bool:
    """Calls the tools, after a login if toolcell says that one is needed."""
    for _ in range(MOST_LOGINS):
        called, said = call_tools(env)
        if called:
            return True
        if LOGIN not in said:
            return False
        worked, said = log_in(env)
        if not worked and LOGIN not in said:
            return False
    return False


def main() -> int:
    with tempfile.TemporaryDirectory() as home:
        config = Path(home, "servers.json")
        config.write_text(json.dumps({"mcpServers": {"conf": entry(sys.argv[1])}}))
        env = os.environ | {"HOME": home, "TOOLCELL_SERVERS_CONFIG": str(config), "TOOLCELL_STATE_DIR": home + "/state"}
        return 0 if use(env) else 1


if __name__ == "__main__":
    sys.exit(main())
