"""A client of the official Python SDK: it calls run_python with each line of its input.

    asked.py ERA CHOICE COMMAND…

ERA is "legacy" or a version of the protocol. CHOICE is what its user answers to each form, or
"none" if it has no forms.
"""

import asyncio
import json
import os
import sys
from typing import Any

from mcp import Client, StdioServerParameters, types
from mcp.client.stdio import stdio_client

era, choice, *command = sys.argv[1:]
forms: list[str] = []


async def show(_context: Any, form: types.ElicitRequestParams) -> types.ElicitResult:
    forms.append(form.message)
    if choice == "decline":
        return types.ElicitResult(action="decline")
    return types.ElicitResult(action="accept", content={"choice": choice})


async def main() -> None:
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    callback = None if choice == "none" else show
    async with Client(stdio_client(server), mode=era, elicitation_callback=callback) as client:
        while line := await asyncio.to_thread(sys.stdin.readline):
            result = await client.call_tool("run_python", json.loads(line))
            answer = {"text": result.content[0].text, "fields": result.structured_content, "forms": forms}
            print(json.dumps(answer), flush=True)


asyncio.run(main())
