"""A server of the official Python SDK whose tools ask the user, in the two ways that it has.

    asking.py                  over stdio
    asking.py PORT             over HTTP
    asking.py PORT stateless   over HTTP, without sessions
"""

import sys
from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from pydantic import BaseModel

server = MCPServer("asking")


class Answer(BaseModel):
    choice: str


@server.tool()
async def during(context: Context) -> str:
    """Ask while it works: the SDK can do so only by a request, as before 2026-07-28."""
    result = await context.elicit("During?", Answer)
    return result.data.choice if result.action == "accept" else result.action


def ask() -> Elicit[Answer]:
    return Elicit("Before?", Answer)


@server.tool()
async def before(answer: Annotated[Answer, Resolve(ask)]) -> str:
    """Ask before it works: the SDK does so in each protocol's way."""
    return answer.choice


if sys.argv[1:]:
    server.run("streamable-http", port=int(sys.argv[1]), stateless_http=len(sys.argv) > 2)
else:
    server.run()
